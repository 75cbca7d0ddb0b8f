#include "core/compare/cynthia.h"

#include <gtest/gtest.h>

namespace stepcast::cynthia_test {
namespace {

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
}  // namespace stepcast::cynthia_test
