#include "core/compare/analytic_models.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

#include "core/base/random.h"

namespace stepcast::analytic_models_test {
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

// T_P = 0.6 s, T_C = 0.2 s: U_1 = 0.4 / 1.0.
constexpr CynthiaInputs kInputs{.computation_seconds = 0.6, .transfer_seconds = 0.2};

TEST(CynthiaTest, OneWorkerComputesAndTransfersOneAfterTheOther) {
  EXPECT_DOUBLE_EQ(CynthiaStepsPerSecond(kInputs, 1), 1);
}

TEST(CynthiaTest, UtilizationIsTheLinksPartOfAStep) {
  EXPECT_DOUBLE_EQ(kInputs.NetworkUtilization(), 0.4);
}

TEST(CynthiaTest, UpToAFullLinkWorkersAddUp) {
  EXPECT_DOUBLE_EQ(CynthiaStepsPerSecond(kInputs, 2), 2);
}

TEST(CynthiaTest, BeyondAFullLinkComputationIsStretched) {
  EXPECT_DOUBLE_EQ(CynthiaStepsPerSecond(kInputs, 5), 5 / (0.6 * 2 + 0.4));
}

TEST(CynthiaTest, ManyWorkersTendToTheComputationOverUtilization) {
  EXPECT_NEAR(CynthiaStepsPerSecond(kInputs, 1'000'000'000), 1 / (0.6 * 0.4), 1e-6);
}

// Half of T_C is 0.1 s: U_1 = 0.2 / 0.8, so five workers fill the link one and a quarter times.
TEST(CynthiaTest, HalvingChangesTheUtilizationToo) {
  const CynthiaInputs halved = kInputs.Halved();
  EXPECT_DOUBLE_EQ(halved.NetworkUtilization(), 0.25);
  EXPECT_DOUBLE_EQ(CynthiaStepsPerSecond(halved, 1), 1 / 0.8);
  EXPECT_DOUBLE_EQ(CynthiaStepsPerSecond(halved, 5), 5 / (0.6 * 1.25 + 0.2));
}

TEST(CynthiaTest, OfSeveralServersTheBusiestIsUtilized) {
  CynthiaInputs inputs = kInputs;
  inputs.busiest_server_share = 0.75;
  EXPECT_DOUBLE_EQ(inputs.NetworkUtilization(), 0.3);
  EXPECT_DOUBLE_EQ(CynthiaStepsPerSecond(inputs, 3), 3);
}

TEST(CynthiaTest, WithoutTransfersWorkersAddUp) {
  EXPECT_DOUBLE_EQ(CynthiaStepsPerSecond({.computation_seconds = 0.5}, 6), 12);
}

}  // namespace
}  // namespace stepcast::analytic_models_test
