#include "client/local/recording_report.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "stepcast/profile_encoding.h"

namespace stepcast::client::recording_report_test {
namespace {

std::string Recording() {
  return ReadFile(STEPCAST_SOURCE_DIR "/tests/data/testbed/vgg11_128.profile.json").value();
}

TEST(RecordingReportTest, ARealRecordingsLinksAreMeasuredAndExplained) {
  const RecordingReport report = ReportRecording(Recording()).value();
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
  const std::vector<ParsingMeasurement> measurements = LoneTransfers(Recording()).value();
  EXPECT_EQ(measurements.size(), 257U);
  for (const ParsingMeasurement& m : measurements) EXPECT_LT(m.seconds, 0.01);
}

TEST(RecordingReportTest, WhatIsNoProfileIsRefused) {
  EXPECT_EQ(ReportRecording("{\"operations\": 1}").status().code(),
            absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(LoneTransfers("{\"batchSize\": 1}").status().code(),
            absl::StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace stepcast::client::recording_report_test
