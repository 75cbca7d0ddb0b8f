// The directions that the printed tables show, on shorter runs of fewer points: the directions may
// not turn.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

#include "tests/bench/papers/enforced_order.h"
#include "tests/bench/papers/scaling.h"
#include "tests/bench/papers/second_server.h"

namespace stepcast::bench::paper_results_test {
namespace {

using ::testing::HasSubstr;

constexpr Length kShort{.steps_per_worker = 30, .replications = 2};

TEST(PaperResultsTest, SaturationIsWhereNineTenthsOfTheMostAreReached) {
  EXPECT_EQ(SaturatedAt({10, 20, 28, 30, 31}), 3);
  EXPECT_EQ(SaturatedAt({10}), 1);
  EXPECT_EQ(SaturatedAt({10, 20, 30}), 3);
}

// ICPE 2020, Fig. 2 and section 4.4. Inception-v3 up to 8 workers.
TEST(PaperResultsTest, LargeBatchesSaturateLaterAndTheQueueingModelDoesNotSeeIt) {
  const std::vector<ScalingCurves> curves =
      MeasureScaling({.batch_sizes = {16, 128}, .most_workers = 8, .length = kShort});
  ASSERT_EQ(curves.size(), 2U);
  const ScalingCurves& small = curves[0];
  const ScalingCurves& large = curves[1];
  EXPECT_LE(SaturatedAt(small.simulated), 4);
  EXPECT_GE(SaturatedAt(large.simulated), 6);
  EXPECT_LT(SaturatedAt(large.queueing), SaturatedAt(large.simulated));
  // Within a fifth with the small batch, below half with the large one.
  EXPECT_GT(small.queueing[7], 0.8 * small.simulated[7]);
  EXPECT_LT(small.queueing[7], 1.2 * small.simulated[7]);
  EXPECT_LT(large.queueing[7], 0.5 * large.simulated[7]);
  // Cynthia is too low for the large batch with any number of workers, and for one worker with
  // both; with the small batch its limit is too high.
  for (size_t i = 0; i < large.cynthia.size(); ++i)
    EXPECT_LT(large.cynthia[i], 0.9 * large.simulated[i]) << i + 1 << " workers";
  EXPECT_LT(small.cynthia[0], 0.9 * small.simulated[0]);
  EXPECT_GT(small.cynthia[7], small.simulated[7]);
}

// ICPE 2020, section 5.
TEST(PaperResultsTest, ASecondServerHelpsEvenModelsMoreThanVgg) {
  const std::vector<SecondServerGain> gains = MeasureSecondServer(
      {.models = {"resnet50", "alexnet", "vgg16", "vgg11"}, .batch_sizes = {32}, .length = kShort});
  ASSERT_EQ(gains.size(), 4U);
  EXPECT_NEAR(static_cast<double>(gains[3].bytes[0]) / (1 << 20), 407, 0.5);
  EXPECT_NEAR(static_cast<double>(gains[3].bytes[1]) / (1 << 20), 100, 0.5);
  EXPECT_NEAR(gains[3].Bound(), 507.0 / 407, 0.01);
  for (const size_t even : {0, 1}) {
    for (const size_t uneven : {2, 3})
      EXPECT_GT(gains[even].Gain(), gains[uneven].Gain() + 0.15)
          << gains[even].model << ", " << gains[uneven].model;
  }
  EXPECT_GT(gains[3].Gain(), 1);
}

// TicTac, section 6.1.
TEST(PaperResultsTest, AnOrderGainsMostWhereComputationAndCommunicationBalance) {
  const EnforcedOrderOptions options{.models = {"resnet50"},
                                     .batch_sizes = {2, 32, 512},
                                     .methods = {OrderMethod::kTic, OrderMethod::kTac},
                                     .workers = {1},
                                     .length = kShort};
  const std::vector<OrderGains> gains = MeasureOrders(options);
  ASSERT_EQ(gains.size(), 6U);
  for (const size_t method : {0, 1}) {
    // Inference, then training.
    for (const size_t first : {0, 3}) {
      const auto gain = [&](size_t batch) { return gains[first + batch].gains[method]; };
      EXPECT_GT(gain(1), 0.15);
      EXPECT_GT(gain(1), 2 * gain(0)) << "too little to compute";
      EXPECT_GT(gain(1), 2 * gain(2)) << "too much to compute";
    }
    EXPECT_GT(gains[1].gains[method], gains[4].gains[method])
        << "training has uploads and a backward pass beside what is ordered";
  }
  EXPECT_THAT(OrderTable(options, gains), HasSubstr("| resnet50 | training | 1 | "));
}

}  // namespace
}  // namespace stepcast::bench::paper_results_test
