#include "core/calibrate/robust_statistics.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "core/base/random.h"

namespace stepcast::robust_statistics_test {
namespace {

TEST(WeightedMedianTest, OfTwoInTheMiddleTheLowerOne) {
  EXPECT_EQ(Median({4, 1, 3, 2}), 2);
  EXPECT_EQ(Median({5}), 5);
  EXPECT_EQ(Quantile({1, 2, 3, 4, 5, 6, 7, 8, 9, 10}, 0.95), 10);
  EXPECT_EQ(Quantile({1, 2, 3, 4}, 0.01), 1);
}

TEST(WeightedMedianTest, AWeightIsAsSoManyCopies) {
  for (uint64_t seed = 1; seed <= 200; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Random random({seed});
    std::vector<WeightedValue> weighted;
    std::vector<double> copies;
    for (uint64_t i = 0; i < 1 + random.Below(20); ++i) {
      const auto weight = 1 + random.Below(5);
      weighted.push_back({.value = random.Unit(), .weight = static_cast<double>(weight)});
      copies.insert(copies.end(), weight, weighted.back().value);
    }
    EXPECT_EQ(WeightedMedian(weighted), Median(copies));
  }
}

}  // namespace
}  // namespace stepcast::robust_statistics_test
