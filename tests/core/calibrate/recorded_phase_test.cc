#include "core/calibrate/recorded_phase.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <string>
#include <vector>

#include "core/base/random.h"
#include "core/calibrate/link_replay.h"
#include "tests/core/calibrate/streams.h"
#include "tests/support/repetitions.h"

namespace stepcast::recorded_phase_test {
namespace {

using testing::PhaseFrom;
using testing::StreamRequest;

constexpr double kLevel = 0.95;
constexpr double kTruth = 119.5e6;
constexpr double kStart = 300e-6;

struct Link {
  double window = 0;
  double stall_share = 0;  // of phases that lose 5 ms somewhere
  bool is_one_transfer = false;
};

// 40 steps of some 4 MB, requested within 0.4 ms. Ends are recorded up to 0.3 ms late.
std::vector<RecordedPhase> Recorded(const Link& link, Random& random) {
  std::vector<RecordedPhase> phases;
  LinkReplay replay;
  for (int step = 0; step < 40; ++step) {
    std::vector<StreamRequest> requests(link.is_one_transfer ? 1 : 24);
    int64_t at = 1000;
    for (StreamRequest& request : requests) {
      request = {.start_ns = at,
                 .size_bytes = static_cast<int64_t>(1000 * std::exp2(9 * random.Unit()))};
      at += 15'000;
    }
    requests[random.Below(requests.size())].size_bytes = 2'500'000;
    RecordedPhase phase = PhaseFrom(requests);
    const LinkSetting setting{
        .bytes_per_second = kTruth, .first_bytes = link.window, .start_seconds = kStart};
    const std::span<const double> ends = replay.AtHand(phase, setting);
    const double stalled_from = random.Unit() < link.stall_share ? 30e6 * random.Unit() : 1e18;
    for (size_t i = 0; i < phase.size(); ++i) {
      phase[i].end_ns = ends[i] + 300e3 * random.Unit() + (ends[i] > stalled_from ? 5e6 : 0);
    }
    phases.push_back(std::move(phase));
  }
  return phases;
}

std::optional<PayloadBandwidth> Measured(const std::vector<RecordedPhase>& phases) {
  return MeasurePayloadBandwidth(phases, kLevel, NeverStop).value();
}

TEST(PayloadBandwidthTest, FindsTheBandwidthWhateverIsLostAtTheStartOrToStalls) {
  for (const double stall_share : {0.0, 0.15}) {
    int held = 0;
    double worst = 0;
    double worst_start = 0;
    for (uint64_t seed = 1; seed <= testing::Repetitions(200u); ++seed) {
      SCOPED_TRACE("seed " + std::to_string(seed));
      Random random({seed});
      const PayloadBandwidth found =
          Measured(Recorded({.stall_share = stall_share}, random)).value();
      EXPECT_NEAR(found.bytes_per_second.value / kTruth, 1, 0.01);
      // Half of the 0.3 ms by which ends are late is lost everywhere.
      EXPECT_NEAR(found.start_seconds.value, kStart + 150e-6, 100e-6);
      held += std::abs(found.bytes_per_second.value - kTruth) <=
                      found.bytes_per_second.upper - found.bytes_per_second.value
                  ? 1
                  : 0;
      worst = std::max(worst, std::abs(found.bytes_per_second.value / kTruth - 1));
      worst_start = std::max(worst_start, std::abs(found.start_seconds.value - kStart - 150e-6));
    }
    std::printf(
        "stalls in %.0f %%: the 95 %% interval held %d of 200, worst error %.2f %%, of the start "
        "%.0f us\n",
        100 * stall_share, held, 100 * worst, 1e6 * worst_start);
    if (!testing::kSanitized) {
      EXPECT_GE(held, 180);
    }
  }
}

// Streams that ended are not all that was sent, so only whole periods tell, and those hold the
// start: 0.45 of some 38 ms.
TEST(PayloadBandwidthTest, StreamsThatTakeTurnsAreMeasuredByWholePeriods) {
  for (uint64_t seed = 1; seed <= testing::Repetitions(50u); ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Random random({seed});
    const PayloadBandwidth found = Measured(Recorded({.window = 300'000}, random)).value();
    EXPECT_NEAR(found.bytes_per_second.value / kTruth, 0.99, 0.015);
  }
}

TEST(PayloadBandwidthTest, SingleTransfersAreWholePeriods) {
  Random random({1});
  const PayloadBandwidth found = Measured(Recorded({.is_one_transfer = true}, random)).value();
  EXPECT_EQ(found.periods, 40);
  EXPECT_EQ(found.whole_periods, 40);
  EXPECT_NEAR(found.bytes_per_second.value / kTruth, 0.98, 0.01);
}

TEST(PayloadBandwidthTest, WaitsBehindOthersDoNotCount) {
  // A million bytes each, one after the other, though all were requested at once.
  const std::vector<RecordedPhase> phases = {PhaseFrom({{0, 1'000'000, 10'000'000},
                                                        {0, 1'000'000, 20'000'000},
                                                        {0, 1'000'000, 30'000'000},
                                                        {0, 1'000'000, 40'000'000}})};
  const PayloadBandwidth found = Measured(phases).value();
  EXPECT_NEAR(found.bytes_per_second.value, 100e6, 1);
  EXPECT_EQ(found.periods, 1);
}

TEST(PayloadBandwidthTest, PausesBetweenRequestsDoNotCount) {
  const std::vector<RecordedPhase> phases = {
      PhaseFrom({{0, 1'000'000, 10'000'000}, {90'000'000, 1'000'000, 100'000'000}})};
  EXPECT_NEAR(Measured(phases)->bytes_per_second.value, 100e6, 1);
}

TEST(PayloadBandwidthTest, NothingThatTookTimeIsNoBandwidth) {
  EXPECT_FALSE(Measured({PhaseFrom({{5, 1000, 5}})}).has_value());
  EXPECT_FALSE(Measured({}).has_value());
}

TEST(PayloadBandwidthTest, StopsWhenTold) {
  const std::vector<RecordedPhase> phases = {PhaseFrom({{0, 1000, 1000}})};
  EXPECT_EQ(MeasurePayloadBandwidth(phases, kLevel, [] { return absl::CancelledError(); })
                .status()
                .code(),
            absl::StatusCode::kCancelled);
}

}  // namespace
}  // namespace stepcast::recorded_phase_test
