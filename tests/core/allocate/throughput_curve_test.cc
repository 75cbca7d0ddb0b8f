#include "core/allocate/throughput_curve.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

namespace stepcast::throughput_curve_test {
namespace {

using ::testing::ElementsAre;

std::vector<int32_t> Multiples(int32_t gang, int32_t most) {
  std::vector<int32_t> counts;
  for (int32_t count = gang; count <= most; count += gang) counts.push_back(count);
  return counts;
}

TEST(ThroughputCurveTest, UpToSixteenCountsAllAreSimulated) {
  EXPECT_EQ(CountsToSimulate(Multiples(1, 16)), Multiples(1, 16));
  EXPECT_EQ(CountsToSimulate(Multiples(8, 128)), Multiples(8, 128));
}

TEST(ThroughputCurveTest, OfMoreEachIsAFifthAboveTheOneBefore) {
  EXPECT_THAT(CountsToSimulate(Multiples(1, 40)),
              ElementsAre(1, 2, 3, 4, 5, 6, 8, 10, 12, 15, 18, 22, 27, 33, 40));
  EXPECT_THAT(CountsToSimulate(Multiples(4, 70)),
              ElementsAre(4, 8, 12, 16, 20, 24, 32, 40, 48, 60, 68));
}

ThroughputCurve TwoServers() {
  ThroughputCurve curve;
  curve.Add({.workers = 2, .servers = 1, .examples_per_second = 10});
  curve.Add({.workers = 6, .servers = 1, .examples_per_second = 30});
  curve.Add({.workers = 8, .servers = 1, .examples_per_second = 24});
  curve.Add({.workers = 2, .servers = 2, .examples_per_second = 11});
  curve.Add({.workers = 8, .servers = 2, .examples_per_second = 50});
  return curve;
}

TEST(ThroughputCurveTest, SimulatedNumbersAreAsSimulated) {
  EXPECT_EQ(TwoServers().At(6, 1).examples_per_second, 30);
  EXPECT_FALSE(TwoServers().At(6, 1).interpolated);
  EXPECT_EQ(TwoServers().At(2, 2).examples_per_second, 11);
  EXPECT_EQ(TwoServers().At(8, 2).examples_per_second, 50);
}

TEST(ThroughputCurveTest, OthersLieOnTheLineBetweenTheirNeighbours) {
  EXPECT_DOUBLE_EQ(TwoServers().At(3, 1).examples_per_second, 15);
  EXPECT_TRUE(TwoServers().At(3, 1).interpolated);
  EXPECT_DOUBLE_EQ(TwoServers().At(7, 1).examples_per_second, 27);
  EXPECT_DOUBLE_EQ(TwoServers().At(4, 2).examples_per_second, 24);
}

}  // namespace
}  // namespace stepcast::throughput_curve_test
