#include "core/calibrate/end_time_errors.h"

#include <gtest/gtest.h>

#include <vector>

#include "core/base/stop_check.h"
#include "tests/core/calibrate/streams.h"

namespace stepcast::end_time_errors_test {
namespace {

using testing::PhaseFrom;

// At a byte a nanosecond the streams end 100, 200, 300 and 400 ns after the first request at 50.
const std::vector<RecordedPhase> kPhases = {
    PhaseFrom({{50, 100, 150}, {50, 100, 300}, {50, 100, 300}, {50, 100, 450}})};
const LinkSetting kLink{.bytes_per_second = 1e9};

TEST(EndTimeErrorsTest, AreSharesOfTheTimeSinceThePhaseBegan) {
  const EndTimeErrors errors = MeasureEndTimes(kPhases, kLink, NeverStop).value();
  // 0, 50 / 250, 50 / 250, 0.
  EXPECT_EQ(errors.transfers, 4);
  EXPECT_DOUBLE_EQ(errors.average, 0.1);
  EXPECT_DOUBLE_EQ(errors.median, 0);
  EXPECT_DOUBLE_EQ(errors.p95, 0.2);
  EXPECT_DOUBLE_EQ(errors.maximum, 0.2);
  EXPECT_DOUBLE_EQ(errors.distance, 0.5 * 0.2 / 0.22);
  EXPECT_DOUBLE_EQ(EndTimeDistance(kPhases, kLink, NeverStop).value(), errors.distance);
}

TEST(EndTimeErrorsTest, WhatEndsWithThePhasesStartHasNoError) {
  EXPECT_EQ(MeasureEndTimes(std::vector<RecordedPhase>{PhaseFrom({{50, 100, 50}, {50, 100, 250}})},
                            kLink, NeverStop)
                ->transfers,
            1);
}

TEST(EndTimeErrorsTest, ALinkHalfAsFastStretchesWhatItCarries) {
  const std::vector<RecordedPhase> slow = {
      PhaseFrom({{50, 100, 250}, {50, 100, 450}, {50, 100, 650}})};
  EXPECT_DOUBLE_EQ(MedianStretch(slow, kLink, NeverStop).value(), 2);
  EXPECT_EQ(MedianStretch({}, kLink, NeverStop).value(), 1);
}

TEST(EndTimeErrorsTest, StopsWhenTold) {
  const auto stop = [] { return absl::CancelledError(); };
  EXPECT_EQ(MeasureEndTimes(kPhases, kLink, stop).status().code(), absl::StatusCode::kCancelled);
  EXPECT_EQ(EndTimeDistance(kPhases, kLink, stop).status().code(), absl::StatusCode::kCancelled);
}

}  // namespace
}  // namespace stepcast::end_time_errors_test
