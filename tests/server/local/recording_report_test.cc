#include "server/local/recording_report.h"

#include <google/protobuf/util/json_util.h>
#include <gtest/gtest.h>

#include <fstream>
#include <iterator>
#include <string>
#include <vector>

namespace stepcast::server::recording_report_test {
namespace {

v1::Profile Recording(const std::string& name) {
  std::ifstream file(STEPCAST_SOURCE_DIR "/tests/data/testbed/" + name);
  const std::string json{std::istreambuf_iterator<char>(file), {}};
  v1::Profile profile;
  EXPECT_TRUE(google::protobuf::util::JsonStringToMessage(json, &profile).ok()) << name;
  return profile;
}

TEST(RecordingReportTest, ARealRecordingsLinksAreMeasuredAndExplained) {
  const RecordingReport report = ReportRecording(Recording("vgg11_128.profile.json")).value();
  EXPECT_EQ(report.clocks.orders, 10500);
  EXPECT_EQ(report.clocks.server_ahead_seconds, 0);
  ASSERT_EQ(report.links.size(), 2U);
  EXPECT_EQ(report.links[0].direction, "DOWNLINK");
  EXPECT_EQ(report.links[1].direction, "UPLINK");
  for (const LinkReport& link : report.links) {
    EXPECT_NEAR(link.bandwidth_bytes_per_second, 119.5e6, 0.5e6);
    EXPECT_LT(link.bandwidth_interval.lower, link.bandwidth_bytes_per_second);
    EXPECT_GT(link.bandwidth_interval.upper, link.bandwidth_bytes_per_second);
    EXPECT_EQ(link.bandwidth_interval.level, 0.95);
    EXPECT_EQ(link.stated_bytes_per_second, 119.5e6);
    EXPECT_GT(link.start_seconds, 0);
    EXPECT_FALSE(link.window_identified);
    EXPECT_EQ(link.largest_transfer_bytes, 3'211'264);
    ASSERT_EQ(link.disciplines.size(), 7U);
    EXPECT_EQ(link.disciplines[0].name, "PROFILE");
    EXPECT_LT(link.disciplines[0].errors.median, 0.02);
    EXPECT_EQ(link.disciplines[2].window_bytes, 65'536);
    EXPECT_EQ(link.nearest, "WHOLE_STREAM");
    EXPECT_LT(link.with_start.median, link.disciplines[1].errors.median);
  }
}

TEST(RecordingReportTest, TransfersThatNothingHeldUpAreMeasured) {
  const std::vector<v1::ParsingMeasurement> measurements =
      LoneTransfers(Recording("vgg11_128.profile.json")).value();
  EXPECT_EQ(measurements.size(), 257U);
  for (const v1::ParsingMeasurement& m : measurements) EXPECT_LT(m.seconds(), 0.01);
}

TEST(RecordingReportTest, ARealRecordingIsExplainedButForAFewPercent) {
  const ReplayReport replay = ReportRecording(Recording("resnet50_16.profile.json")).value().replay;
  EXPECT_NEAR(replay.recorded_step_seconds, 0.1319, 0.0001);
  EXPECT_NEAR(replay.replayed_step_seconds, 0.1294, 0.0001);
  EXPECT_NEAR(replay.fitted_transfer_seconds, 43e-6, 1e-6);
}

v1::Operation Computation(const std::string& name, std::vector<int32_t> before) {
  v1::Operation operation;
  operation.set_name(name);
  operation.set_resource(v1::Operation::WORKER);
  operation.mutable_waiting_for()->Add(before.begin(), before.end());
  return operation;
}

v1::Operation Gradient(const std::string& name, int64_t bytes, int32_t before) {
  v1::Operation operation;
  operation.set_name(name);
  operation.set_resource(v1::Operation::COLLECTIVE);
  operation.set_collective(v1::Operation::ALL_REDUCE);
  operation.set_size_bytes(bytes);
  operation.set_parameter(name);
  operation.add_waiting_for(before);
  return operation;
}

// Two gradients of 3 MiB and one of 24, ready after 40, 60 and 80 ms of a step of 100, the last of
// which is sent for 5 ms in which nothing is computed.
v1::Profile Training() {
  v1::Profile profile;
  profile.set_batch_size(8);
  profile.mutable_platform()->set_bandwidth_bytes_per_second(1e9);
  *profile.add_operations() = Computation("a", {});
  *profile.add_operations() = Gradient("ga", 3 << 20, 0);
  *profile.add_operations() = Computation("b", {0});
  *profile.add_operations() = Gradient("gb", 3 << 20, 2);
  *profile.add_operations() = Computation("c", {2});
  *profile.add_operations() = Gradient("gc", 24 << 20, 4);
  *profile.add_operations() = Computation("optimizer", {1, 3, 5});
  v1::Step& step = *profile.add_steps();
  const int64_t times_ms[][2] = {{0, 40},  {40, 45}, {40, 60}, {60, 60},
                                 {60, 80}, {80, 85}, {90, 100}};
  for (const auto& [start, end] : times_ms) {
    step.add_start_ns(1'000'000 * start);
    step.add_end_ns(1'000'000 * end);
  }
  return profile;
}

using Verdict = BucketRuleReport::Verdict;

AllReduceReport ReportOf(const v1::Profile& profile) {
  const RecordingReport report = ReportRecording(profile).value();
  EXPECT_TRUE(report.links.empty());
  return report.all_reduce.value();
}

TEST(RecordingReportTest, AStepOfCollectivesIsSharedOut) {
  v1::Profile profile = Training();
  StepShares shares = ReportOf(profile).shares;
  EXPECT_NEAR(shares.computation, 0.90, 1e-12);
  EXPECT_EQ(shares.host, 0);
  EXPECT_NEAR(shares.communication, 0.05, 1e-12);
  EXPECT_NEAR(shares.gaps, 0.05, 1e-12);
  EXPECT_FALSE(ReportOf(profile).knows_host);
  profile.set_device_idle_fraction(0.3);
  shares = ReportOf(profile).shares;
  EXPECT_NEAR(shares.computation, 0.60, 1e-12);
  EXPECT_EQ(shares.host, 0.3);
  EXPECT_TRUE(ReportOf(profile).knows_host);
}

TEST(RecordingReportTest, BucketsAreThoseOfTheProfileAndThoseOfTheDefaults) {
  v1::Profile profile = Training();
  const AllReduceReport none = ReportOf(profile);
  EXPECT_EQ(none.rule.verdict, Verdict::kNoBuckets);
  EXPECT_FALSE(none.assumes_defaults);
  profile.set_framework("pytorch");
  EXPECT_TRUE(ReportOf(profile).assumes_defaults);
  profile.clear_framework();
  EXPECT_EQ(none.buckets.size(), 3U);
  ASSERT_EQ(none.default_buckets.size(), 2U);
  EXPECT_EQ(none.default_buckets[0].size_bytes, 3 << 20);
  EXPECT_NEAR(none.default_buckets[0].ready_seconds, 0.04, 1e-12);
  EXPECT_EQ(none.default_buckets[1].size_bytes, 27 << 20);
  EXPECT_EQ(none.default_buckets[1].gradients, 2);
  EXPECT_NEAR(none.default_buckets[1].ready_seconds, 0.08, 1e-12);
  for (const int64_t size : {3 << 20, 27 << 20}) profile.mutable_buckets()->add_sizes_bytes(size);
  const AllReduceReport by_default = ReportOf(profile);
  EXPECT_EQ(by_default.rule.verdict, Verdict::kByDefault);
  EXPECT_EQ(by_default.rule.first.least_bytes, 1);
  EXPECT_EQ(by_default.rule.first.most_bytes, 3 << 20);
  EXPECT_EQ(by_default.rule.cap.least_bytes, (3 << 20) + 1);
  EXPECT_EQ(by_default.rule.cap.most_bytes, 0);
}

// A hook that halves what is sent: caps are of gradients, so the buckets are the same.
TEST(RecordingReportTest, CapsAreOfGradientsAndNotOfWhatIsSent) {
  v1::Profile profile = Training();
  for (const int64_t size : {3 << 20, 27 << 20}) profile.mutable_buckets()->add_sizes_bytes(size);
  const AllReduceReport whole = ReportOf(profile);
  profile.mutable_buckets()->clear_sizes_bytes();
  for (v1::Operation& operation : *profile.mutable_operations())
    operation.set_size_bytes(operation.size_bytes() / 16);
  for (const int64_t size : {(3 << 20) / 16, (27 << 20) / 16})
    profile.mutable_buckets()->add_sizes_bytes(size);
  EXPECT_EQ(ReportOf(profile).default_buckets.size(), 1U);
  profile.mutable_buckets()->set_sent_share(1.0 / 16);
  const AllReduceReport sent = ReportOf(profile);
  EXPECT_EQ(sent.rule.verdict, Verdict::kByDefault);
  EXPECT_EQ(sent.rule.first.most_bytes, whole.rule.first.most_bytes);
  EXPECT_EQ(sent.rule.cap.least_bytes, whole.rule.cap.least_bytes);
  ASSERT_EQ(sent.default_buckets.size(), 2U);
  EXPECT_EQ(sent.default_buckets[1].size_bytes, (27 << 20) / 16);
}

TEST(RecordingReportTest, HorovodsBuffersAreNoBuckets) {
  v1::Profile profile = Training();
  EXPECT_FALSE(ReportOf(profile).default_buckets.empty());
  profile.set_framework("horovod");
  EXPECT_TRUE(ReportOf(profile).default_buckets.empty());
}

TEST(RecordingReportTest, BucketsOfOtherLimitsComeWithThem) {
  v1::Profile profile = Training();
  profile.mutable_buckets()->mutable_rule()->set_first_bytes(5 << 20);
  profile.mutable_buckets()->mutable_rule()->set_cap_bytes(1 << 20);
  const AllReduceReport report = ReportOf(profile);
  EXPECT_EQ(report.rule.verdict, Verdict::kOtherLimits);
  ASSERT_EQ(report.buckets.size(), 2U);
  EXPECT_EQ(report.buckets[0].size_bytes, 6 << 20);
  EXPECT_EQ(report.rule.first.least_bytes, (3 << 20) + 1);
  EXPECT_EQ(report.rule.first.most_bytes, 6 << 20);
}

TEST(RecordingReportTest, BucketsThatShrinkAndGrowAreOfNoRule) {
  v1::Profile profile = Training();
  profile.clear_operations();
  profile.clear_steps();
  *profile.add_operations() = Computation("a", {});
  for (const int64_t bytes : {1, 9, 1, 1, 1, 1})
    *profile.add_operations() = Gradient("g" + std::to_string(profile.operations_size()), bytes, 0);
  v1::Step& step = *profile.add_steps();
  for (int i = 0; i < profile.operations_size(); ++i) {
    step.add_start_ns(i == 0 ? 0 : 5);
    step.add_end_ns(5);
  }
  for (const int64_t size : {1, 10, 1, 2}) profile.mutable_buckets()->add_sizes_bytes(size);
  EXPECT_EQ(ReportOf(profile).rule.verdict, Verdict::kNotByRule);
}

TEST(RecordingReportTest, BucketsWithoutTheirGradientsAreOfAnUnknownRule) {
  v1::Profile profile = Training();
  for (v1::Operation& operation : *profile.mutable_operations()) operation.clear_parameter();
  for (const int64_t size : {3 << 20, 3 << 20, 24 << 20})
    profile.mutable_buckets()->add_sizes_bytes(size);
  const AllReduceReport report = ReportOf(profile);
  EXPECT_EQ(report.rule.verdict, Verdict::kUnknown);
  EXPECT_EQ(report.buckets.size(), 3U);
  EXPECT_TRUE(report.default_buckets.empty());
}

TEST(RecordingReportTest, AWrongProfileIsRefused) {
  v1::Profile wrong;
  wrong.set_batch_size(1);
  EXPECT_EQ(ReportRecording(wrong).status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(LoneTransfers(wrong).status().code(), absl::StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace stepcast::server::recording_report_test
