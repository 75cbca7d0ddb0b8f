#include "core/compare/closed_network.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

#include "core/base/random.h"

namespace stepcast::closed_network_test {
namespace {

TEST(ClosedNetworkTest, OneWorkerTakesTheSumOfItsPhases) {
  const std::vector<double> rates = ClosedNetworkStepsPerSecond(
      {.downlink = 0.1, .worker = 0.3, .uplink = 0.05, .parameter_server = 0.05}, 1);
  ASSERT_EQ(rates.size(), 1U);
  EXPECT_DOUBLE_EQ(rates[0], 2);
}

// By hand: one link of 1 s and computations of 1 s. With one worker it is on the link half of the
// time, so a second one finds 1.5 there: 2 / (1 + 1.5). Of those it has 1.2 on the link: 3 / (1
// + 2.2).
TEST(ClosedNetworkTest, AWorkerFindsOnALinkWhatOneWorkerLessLeavesThere) {
  const std::vector<double> rates = ClosedNetworkStepsPerSecond({.downlink = 1, .worker = 1}, 3);
  EXPECT_DOUBLE_EQ(rates[0], 0.5);
  EXPECT_DOUBLE_EQ(rates[1], 2 / 2.5);
  EXPECT_DOUBLE_EQ(rates[2], 3 / 3.2);
}

TEST(ClosedNetworkTest, ManyWorkersSaturateTheLongerLinkPhase) {
  const std::vector<double> rates = ClosedNetworkStepsPerSecond(
      {.downlink = 0.02, .worker = 0.3, .uplink = 0.05, .parameter_server = 0.01}, 4096);
  for (const double rate : rates) EXPECT_LT(rate, 1 / 0.05 * (1 + 1e-12));
  EXPECT_NEAR(rates.back(), 1 / 0.05, 1e-6);
}

TEST(ClosedNetworkTest, WithoutLinksWorkersAddUp) {
  EXPECT_DOUBLE_EQ(ClosedNetworkStepsPerSecond({.worker = 0.25}, 7).back(), 28);
}

// The stationary probability of k workers on the downlink, m on the uplink and the rest computing
// is proportional to down^k up^m Z^rest / rest!.
double RateBySummation(const PhaseSeconds& phases, int32_t workers) {
  const auto weights = [&](int32_t count) {
    double sum = 0;
    for (int32_t k = 0; k <= count; ++k) {
      for (int32_t m = 0; k + m <= count; ++m) {
        double weight = 1;
        for (int32_t i = 0; i < k; ++i) weight *= phases.downlink;
        for (int32_t i = 0; i < m; ++i) weight *= phases.uplink;
        for (int32_t i = 1; i <= count - k - m; ++i)
          weight *= (phases.worker + phases.parameter_server) / i;
        sum += weight;
      }
    }
    return sum;
  };
  return weights(workers - 1) / weights(workers);
}

TEST(ClosedNetworkTest, AgreesWithTheSumOverAllStates) {
  for (uint64_t seed = 1; seed <= 100; ++seed) {
    SCOPED_TRACE(::testing::Message() << "seed " << seed);
    Random random({seed, 1});
    const PhaseSeconds phases{.downlink = random.Unit(),
                              .worker = random.Unit() * 3,
                              .uplink = random.Unit(),
                              .parameter_server = random.Unit() * 0.1};
    const std::vector<double> rates = ClosedNetworkStepsPerSecond(phases, 12);
    for (int32_t workers = 1; workers <= 12; ++workers) {
      const double expected = RateBySummation(phases, workers);
      EXPECT_NEAR(rates[static_cast<size_t>(workers) - 1], expected, expected * 1e-9)
          << workers << " workers";
    }
  }
}

}  // namespace
}  // namespace stepcast::closed_network_test
