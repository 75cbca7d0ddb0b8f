#include "client/local/replay_report.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "stepcast/profile_encoding.h"

namespace stepcast::client::replay_report_test {
namespace {

TEST(ReplayReportTest, ARealRecordingIsExplainedButForAFewPercent) {
  const ReplayReport report =
      ReplayProfile(
          ReadFile(STEPCAST_SOURCE_DIR "/tests/data/testbed/resnet50_16.profile.json").value())
          .value();
  EXPECT_NEAR(report.recorded_step_seconds, 0.1319, 0.0001);
  EXPECT_NEAR(report.replayed_step_seconds, 0.1294, 0.0001);
  EXPECT_NEAR(report.fitted_transfer_seconds, 43e-6, 1e-6);
}

TEST(ReplayReportTest, WhatIsNoProfileIsRefused) {
  EXPECT_EQ(ReplayProfile("{\"operations\": 1}").status().code(),
            absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(ReplayProfile("{\"batchSize\": 1}").status().code(),
            absl::StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace stepcast::client::replay_report_test
