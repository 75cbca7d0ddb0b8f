#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "client/cli/texts/answer_texts.h"

#include "server/local/recording_report.h"
#include "stepcast/json.h"
#include "tests/client/support/tiny_profile.h"

namespace stepcast::client::check_report_test {
namespace {

using testing::AllOf;
using testing::EndsWith;
using testing::HasSubstr;
using testing::Not;

server::LinkReport Link() {
  return {.direction = "DOWNLINK",
          .bandwidth_bytes_per_second = 119e6,
          .bandwidth_interval = {.lower = 118e6, .upper = 120e6},
          .stated_bytes_per_second = 125e6,
          .start_seconds = 250e-6,
          .start_interval = {.lower = 200e-6, .upper = 300e-6},
          .window_upper_bytes = 2 << 20,
          .largest_transfer_bytes = 2 << 20,
          .disciplines = {{.name = "PROFILE",
                           .plain_name = "as the profile says",
                           .window_bytes = 5,
                           .errors = {0.1, 0.02, 0.3, 1}},
                          {.name = "WHOLE_STREAM",
                           .plain_name = "whole streams",
                           .errors = {0.05, 0.01, 0.2, 0.9}},
                          {.name = "WINDOW",
                           .plain_name = "window",
                           .window_bytes = 65536,
                           .errors = {0.5, 0.5, 0.5, 2}}},
          .nearest = "WHOLE_STREAM",
          .with_start = {0.04, 0.005, 0.1, 0.8}};
}

// As the profile says it is.
server::LinkReport AsStated() {
  server::LinkReport link = Link();
  link.stated_bytes_per_second = 119.5e6;
  return link;
}

TEST(CheckReportTest, FirstComesHowMuchIsExplainedAndThatNothingIsToBeDone) {
  EXPECT_EQ(CheckSummary({.replay = {.recorded_step_seconds = 0.1,
                                     .replayed_step_seconds = 0.0995,
                                     .fitted_transfer_seconds = 1e-6},
                          .links = {AsStated()}}),
            "explained: 99.5% of one worker's step, which was recorded with 100 ms and takes 99.5 "
            "ms in the model (-0.5%)\n"
            "downlink: 119 MB/s of payload, as the profile says; shared as the profile says, its "
            "streams end as recorded to 2.00% (median)\n"
            "to do: nothing: the model explains the recording as it is\n");
}

TEST(CheckReportTest, AFasterReplayComesWithTheCostThatWouldExplainIt) {
  EXPECT_EQ(CheckSummary({.replay = {.recorded_step_seconds = 0.1,
                                     .replayed_step_seconds = 0.09,
                                     .fitted_transfer_seconds = 42e-6}}),
            "explained: 90.0% of one worker's step, which was recorded with 100 ms and takes 90 ms "
            "in the model (-10.0%)\n"
            "to do: give predict and the others --parsing-seconds 4.2e-05: a cost of 42 us a "
            "transfer would explain the rest of the step\n");
}

TEST(CheckReportTest, ASlowerReplayComesWithItsUsualCauses) {
  EXPECT_THAT(
      CheckSummary({.replay = {.recorded_step_seconds = 0.1, .replayed_step_seconds = 0.11}}),
      HasSubstr("\nto do: look at the recording: it is faster"));
}

TEST(CheckReportTest, StepsThatTakeNoTimeAreNoDivision) {
  EXPECT_THAT(CheckSummary({}), HasSubstr("the recorded steps take no time"));
}

TEST(CheckReportTest, ABandwidthThatIsNotTheProfilesIsToBeGiven) {
  EXPECT_THAT(CheckSummary({.replay = {.recorded_step_seconds = 0.1, .replayed_step_seconds = 0.1},
                            .links = {Link(), Link()}}),
              EndsWith("\nto do: give predict and the others --bandwidth 119MB/s: the recording's "
                       "downlink was as fast as that\n"));
}

TEST(CheckReportTest, StreamsThatSharedTheLinkOtherwiseComeWithTheFlagsForThat) {
  server::LinkReport link = AsStated();
  link.disciplines[0].errors.median = 0.2;
  link.disciplines[2].errors.median = 0.005;
  link.nearest = "WINDOW";
  EXPECT_THAT(
      CheckSummary({.replay = {.recorded_step_seconds = 0.1, .replayed_step_seconds = 0.1},
                    .links = {link}}),
      AllOf(HasSubstr("; shared by window (64.00 KiB), its streams end as recorded to 0.50% "
                      "(median), as the profile says to 20.00%\n"),
            EndsWith("\nto do: give predict and the others --multiplexing window --window 65536B: "
                     "so the downlink's streams shared it\n")));
}

TEST(CheckReportTest, EachLinkHasItsBandwidthItsWindowAndATable) {
  server::LinkReport link = Link();
  link.window_lower_bytes = 1 << 20;
  EXPECT_EQ(
      CheckDetails({.links = {link, {.direction = "UPLINK", .unavailable_reason = "because"}}}),
      "downlink: 119 MB/s of payload (118 to 120), the profile says 125; an idle link takes 250.0 "
      "us (200.0 us to 300.0 us) to start\n"
      "  window: not identifiable: no tensor is larger than 2.000 MiB, and whole streams explain "
      "the ends as well as any window from 1.000 MiB on\n"
      "  error of end times, as a share of the time since the phase began:\n"
      "  streams                     average  median    95th  maximum\n"
      "  as the profile says          10.00%   2.00%  30.00%  100.00%\n"
      "* whole streams                 5.00%   1.00%  20.00%   90.00%\n"
      "    and an idle link's start    4.00%   0.50%  10.00%   80.00%\n"
      "  window (64.00 KiB)           50.00%  50.00%  50.00%  200.00%\n"
      "uplink: because\n");
}

TEST(CheckReportTest, AWindowThatWasFoundIsSaidWithItsRange) {
  server::LinkReport link = Link();
  link.window_identified = true;
  link.window_bytes = 3 << 10;
  link.window_lower_bytes = 2 << 10;
  link.window_upper_bytes = 4 << 10;
  EXPECT_THAT(CheckDetails({.links = {link}}),
              HasSubstr("window: a window of 3.000 KiB explains the ends best; 2.000 KiB to 4.000 "
                        "KiB do about as well"));
}

TEST(CheckReportTest, ClocksAreSpokenOfWhereTheyDisagree) {
  const server::ClockReport clocks{.orders = 100,
                                   .impossible_orders = 10,
                                   .worst_seconds = 0.002,
                                   .server_ahead_seconds = -0.0015,
                                   .clamped_orders = 1,
                                   .worst_clamped_seconds = 0.0005};
  EXPECT_THAT(CheckSummary({.replay = {.recorded_step_seconds = 0.1, .replayed_step_seconds = 0.1},
                            .clocks = clocks}),
              HasSubstr("\nclocks: 10 of 100 recorded orders are impossible, by up to 2.000 ms; "
                        "the server's clock is taken to be 1.500 ms behind; 1 "
                        "clamped, by up to 500.0 us\n"));
  EXPECT_THAT(
      CheckSummary({.replay = {.recorded_step_seconds = 0.1, .replayed_step_seconds = 0.1}}),
      Not(HasSubstr("clocks")));
}

using Json = nlohmann::json;

const server::RecordingReport kRecording = {
    .replay = {.recorded_step_seconds = 0.1,
               .replayed_step_seconds = 0.2,
               .fitted_transfer_seconds = 0.3},
    .clocks = {.orders = 1,
               .impossible_orders = 2,
               .worst_seconds = 3,
               .server_ahead_seconds = 4,
               .clamped_orders = 5,
               .worst_clamped_seconds = 6},
    .links = {{.direction = "DOWNLINK",
               .bandwidth_bytes_per_second = 1,
               .bandwidth_interval = {2, 3, 0.95},
               .stated_bytes_per_second = 4,
               .start_seconds = 5,
               .start_interval = {6, 7, 0.95},
               .busy_periods = 8,
               .outlier_periods = 9,
               .window_identified = true,
               .window_bytes = 10,
               .window_lower_bytes = 11,
               .window_upper_bytes = 12,
               .largest_transfer_bytes = 13,
               .disciplines = {{.name = "WINDOW",
                                .bandwidth_bytes_per_second = 14,
                                .window_bytes = 15,
                                .quantum_bytes = 16,
                                .errors = {17, 18, 19, 20}}},
               .nearest = "WINDOW",
               .with_start = {21, 22, 23, 24}},
              {.direction = "UPLINK", .unavailable_reason = "because"}}};

TEST(CheckJsonTest, TheProfilesFieldsStayWhereTheyWere) {
  Json check = Json::parse(CheckJson(TinyProfile(), kRecording));
  check.erase("recording");
  EXPECT_EQ(check, Json::parse(ToJson(TinyProfile())));
}

TEST(CheckJsonTest, EverythingIsCarried) {
  EXPECT_EQ(Json::parse(CheckJson(TinyProfile(), kRecording))["recording"], Json::parse(R"json({
    "replay": {"recordedStepSeconds": 0.1, "replayedStepSeconds": 0.2, "fittedTransferSeconds": 0.3},
    "clocks": {"orders": "1", "impossibleOrders": "2", "worstSeconds": 3.0, "serverAheadSeconds": 4.0, "clampedOrders": "5", "worstClampedSeconds": 6.0},
    "links": [{
      "direction": "DOWNLINK", "unavailableReason": "",
      "bandwidthBytesPerSecond": 1.0, "bandwidthInterval": {"lower": 2.0, "upper": 3.0, "level": 0.95}, "statedBytesPerSecond": 4.0,
      "startSeconds": 5.0, "startInterval": {"lower": 6.0, "upper": 7.0, "level": 0.95}, "busyPeriods": 8, "outlierPeriods": 9,
      "windowIdentified": true, "windowBytes": "10", "windowLowerBytes": "11", "windowUpperBytes": "12", "largestTransferBytes": "13",
      "disciplines": [{"discipline": "WINDOW", "bandwidthBytesPerSecond": 14.0, "windowBytes": "15", "quantumBytes": "16",
                       "endTimeError": {"average": 17.0, "median": 18.0, "p95": 19.0, "maximum": 20.0}}],
      "nearest": "WINDOW", "nearestWithStart": {"average": 21.0, "median": 22.0, "p95": 23.0, "maximum": 24.0}
    }, {"direction": "UPLINK", "unavailableReason": "because"}]
  })json"));
}

server::RecordingReport OfCollectives() {
  using Verdict = server::BucketRuleReport::Verdict;
  return {.replay = {.recorded_step_seconds = 0.1, .replayed_step_seconds = 0.1},
          .all_reduce = server::AllReduceReport{
              .shares = {.computation = 0.7, .host = 0.2, .communication = 0.06, .gaps = 0.04},
              .knows_host = true,
              .buckets = {{.size_bytes = 2 << 20, .gradients = 3, .ready_seconds = 0.05},
                          {.size_bytes = 5 << 20, .gradients = 1, .ready_seconds = 0.09}},
              .rule = {.verdict = Verdict::kOtherLimits,
                       .first = {.least_bytes = 1 << 20, .most_bytes = 2 << 20},
                       .cap = {.least_bytes = 1}},
              .default_buckets = {{.size_bytes = 7 << 20, .gradients = 4, .ready_seconds = 0.09}},
              .other_collectives = 2}};
}

TEST(CheckReportTest, OfCollectivesComeSharesBucketsAndTheRule) {
  EXPECT_EQ(
      CheckSummary(OfCollectives()),
      "explained: 100.0% of one worker's step, which was recorded with 100 ms and takes 100 "
      "ms in the model (+0.0%)\n"
      "step: 70.0% computation, 20.0% in which the device waits for the host, 6.0% "
      "collectives alone, 4.0% nothing recorded\n"
      "buckets: 2: 2.000 MiB at 50.00 ms, 5.000 MiB at 90.00 ms, ready so long after the step "
      "began\n"
      "rule: DistributedDataParallel's with a first bucket of 1.000 MiB to 2.000 MiB and a cap of "
      "1 "
      "B or more\n"
      "by default, 1 MiB first and then 25 MiB, DistributedDataParallel sends 1: 7.000 MiB at "
      "90.00 ms\n"
      "to do: make the host faster (data loading, Python, launches): the device waits for it "
      "for 20.0% of a step, which no network makes shorter\n");
}

TEST(CheckReportTest, OfBucketsByDefaultNothingIsToBeDone) {
  server::RecordingReport report = OfCollectives();
  report.all_reduce->rule.verdict = server::BucketRuleReport::Verdict::kByDefault;
  report.all_reduce->shares = {.computation = 1};
  report.all_reduce->knows_host = false;
  const std::string text = CheckSummary(report);
  EXPECT_THAT(text, HasSubstr("step: 100.0% computation, 0.0% collectives alone"));
  EXPECT_THAT(text, HasSubstr("rule: DistributedDataParallel's by default"));
  EXPECT_THAT(text, Not(HasSubstr("DistributedDataParallel sends")));
  EXPECT_THAT(text, EndsWith("to do: nothing: the model explains the recording as it is\n"));
}

TEST(CheckReportTest, GradientsWithoutBucketsComeWithTheFlagForThem) {
  server::RecordingReport report = OfCollectives();
  report.all_reduce->rule = {};
  report.all_reduce->shares = {.computation = 1};
  const std::string text = CheckSummary(report);
  EXPECT_THAT(text, HasSubstr("\nbuckets: none, 2 all-reduces of 7.000 MiB are sent one by one\n"));
  EXPECT_THAT(text, Not(HasSubstr("\nrule: ")));
  EXPECT_THAT(text, HasSubstr("DistributedDataParallel sends 1: 7.000 MiB at 90.00 ms, ready"));
  EXPECT_THAT(text, HasSubstr("to do: give predict and the others --bucket-cap 25MiB: "));
  // Predictions of what PyTorch recorded have them by themselves.
  report.all_reduce->assumes_defaults = true;
  const std::string assumed = CheckSummary(report);
  EXPECT_THAT(assumed, HasSubstr("\nbuckets: none, 2 all-reduces of 7.000 MiB, which predictions "
                                 "send in DistributedDataParallel's default ones\n"));
  EXPECT_THAT(assumed, Not(HasSubstr("--bucket-cap")));
  // Horovod's have no buckets by default, but cycles.
  report.all_reduce->assumes_defaults = false;
  report.all_reduce->default_buckets.clear();
  const std::string of_horovod = CheckSummary(report);
  EXPECT_THAT(of_horovod, HasSubstr("to do: give predict and the others --horovod-cycle 1ms: so "));
  EXPECT_THAT(of_horovod, Not(HasSubstr("--bucket-cap")));
}

// Time that no operation fills is not in the model, and no cost of transfers explains it.
TEST(CheckReportTest, AStepThatIsLongerThanTheModelIsLookedAt) {
  server::RecordingReport report = OfCollectives();
  report.replay = {.recorded_step_seconds = 0.075, .replayed_step_seconds = 0.045};
  const std::string text = CheckSummary(report);
  EXPECT_THAT(text, HasSubstr("to do: look at the recording: in 30 ms of its step nothing"));
  EXPECT_THAT(text, Not(HasSubstr("to do: nothing")));
  report.replay.fitted_transfer_seconds = 0.01;
  EXPECT_THAT(CheckSummary(report), Not(HasSubstr("look at the recording")));
}

TEST(CheckReportTest, OfManyBucketsTheFirstAreListed) {
  server::RecordingReport report = OfCollectives();
  report.all_reduce->buckets.resize(15, {.size_bytes = 1024, .gradients = 1});
  EXPECT_THAT(CheckSummary(report), HasSubstr("buckets: 15: 2.000 MiB at 50.00 ms, "));
  EXPECT_THAT(CheckSummary(report), HasSubstr(" and 3 more, ready"));
}

TEST(CheckReportTest, JsonOfCollectivesHasNoLinks) {
  const auto json = nlohmann::json::parse(CheckJson(TinyProfile(), OfCollectives()))["recording"];
  EXPECT_FALSE(json.contains("links"));
  const auto& all_reduce = json["allReduce"];
  EXPECT_EQ(all_reduce["shares"]["host"], 0.2);
  EXPECT_EQ(all_reduce["buckets"][1]["sizeBytes"], "5242880");
  EXPECT_EQ(all_reduce["buckets"][0]["gradients"], "3");
  EXPECT_EQ(all_reduce["buckets"][0]["readySeconds"], 0.05);
  EXPECT_EQ(all_reduce["rule"]["verdict"], "OTHER_LIMITS");
  EXPECT_EQ(all_reduce["rule"]["first"]["mostBytes"], "2097152");
  EXPECT_EQ(all_reduce["rule"]["cap"]["mostBytes"], "0");
  EXPECT_EQ(all_reduce["defaultBuckets"].size(), 1U);
  EXPECT_EQ(all_reduce["otherCollectives"], "2");
}

}  // namespace
}  // namespace stepcast::client::check_report_test
