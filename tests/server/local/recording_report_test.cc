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

TEST(RecordingReportTest, AWrongProfileIsRefused) {
  v1::Profile wrong;
  wrong.set_batch_size(1);
  EXPECT_EQ(ReportRecording(wrong).status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(LoneTransfers(wrong).status().code(), absl::StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace stepcast::server::recording_report_test
