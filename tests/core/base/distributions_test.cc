#include "core/base/distributions.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

namespace stepcast::distributions_test {
namespace {

TEST(StudentTTest, OneValueHasNoWidth) {
  const MeanInterval interval = StudentT({7}, 0.95);
  EXPECT_EQ(interval.mean, 7);
  EXPECT_EQ(interval.half_width, 0);
}

TEST(StudentTTest, EqualValuesHaveNoWidth) { EXPECT_EQ(StudentT({3, 3, 3}, 0.95).half_width, 0); }

// Half a standard error of 1/2, times the quantile of one degree of freedom.
TEST(StudentTTest, TwoValuesUseOneDegreeOfFreedom) {
  const MeanInterval interval = StudentT({1, 2}, 0.95);
  EXPECT_DOUBLE_EQ(interval.mean, 1.5);
  EXPECT_NEAR(interval.half_width, 12.7062 / 2, 1e-4);
}

struct TableRow {
  int degrees_of_freedom;
  double level;
  double quantile;
};

// Two-sided quantiles as printed tables have them.
TEST(StudentTTest, WidthIsTheTablesQuantileTimesTheStandardError) {
  constexpr TableRow kTable[] = {{1, 0.90, 6.3138}, {2, 0.95, 4.3027},  {4, 0.95, 2.7764},
                                 {9, 0.99, 3.2498}, {30, 0.90, 1.6973}, {120, 0.95, 1.9799}};
  for (const TableRow& row : kTable) {
    // n values of +-1 about 10, or 0 for the odd one: their squares add up to the even part of n.
    const int n = row.degrees_of_freedom + 1;
    std::vector<double> values;
    for (int i = 0; i + 1 < n; i += 2) {
      values.push_back(9);
      values.push_back(11);
    }
    if (n % 2 == 1) values.push_back(10);
    const double squares = n - n % 2;
    const double standard_error_squared = squares / row.degrees_of_freedom / n;
    const MeanInterval interval = StudentT(values, row.level);
    EXPECT_DOUBLE_EQ(interval.mean, 10);
    EXPECT_NEAR(interval.half_width * interval.half_width,
                row.quantile * row.quantile * standard_error_squared, 1e-3 * row.quantile)
        << row.degrees_of_freedom << " degrees of freedom";
  }
}

// A request may bring any of them to a distribution, which must answer then, too.
TEST(DistributionsTest, NoDoubleMakesThemThrow) {
  using Limits = std::numeric_limits<double>;
  for (const double value :
       {Limits::quiet_NaN(), Limits::infinity(), -Limits::infinity(), Limits::max(),
        Limits::lowest(), Limits::min(), Limits::denorm_min(), -1.0, 0.0, 1.0, 2.0, 40.0}) {
    EXPECT_NO_THROW(NormalCdf(value)) << value;
    EXPECT_NO_THROW(NormalDensity(value)) << value;
    EXPECT_NO_THROW(NormalQuantile(value)) << value;
    for (const int degrees : {-1, 0, 1, 1'000'000})
      EXPECT_NO_THROW(StudentTQuantile(degrees, value)) << degrees << " " << value;
  }
  EXPECT_TRUE(std::isnan(NormalCdf(Limits::quiet_NaN())));
  EXPECT_EQ(NormalCdf(Limits::infinity()), 1);
  EXPECT_EQ(NormalQuantile(1), Limits::infinity());
}

TEST(RatioOfPairsTest, IsTheRatioOfTheMeansWhateverThePairs) {
  // One pair of another regime: the mean of the ratios would be 2.75.
  const std::vector<double> with = {100, 100, 90};
  const std::vector<double> without = {80, 80, 20};
  const PairedRatio paired = RatioOfPairs(with, without, 0.95);
  EXPECT_DOUBLE_EQ(paired.ratio, 290.0 / 180.0);
  EXPECT_DOUBLE_EQ(paired.lower() * paired.upper(), paired.ratio * paired.ratio);
  EXPECT_GT(paired.lower(), 0);
  // Departures 3 (with / 290 - without / 180), by hand: -0.29885, -0.29885, 0.59770.
  EXPECT_NEAR(paired.half_width, 4.302653 * 0.517624 / std::sqrt(3.0), 1e-4);
}

TEST(RatioOfPairsTest, TakesAsManyPairsAsThereAre) {
  const PairedRatio paired = RatioOfPairs({2, 4}, {1, 2, 100}, 0.95);
  EXPECT_DOUBLE_EQ(paired.ratio, 2);
  EXPECT_NEAR(paired.half_width, 0, 1e-15) << "every pair says the same";
  EXPECT_EQ(RatioOfPairs({3}, {2}, 0.95).half_width, 0);
  EXPECT_DOUBLE_EQ(RatioOfMeans({2, 4}, {1, 2, 6}, 0.95).ratio, 1) << "the means of all";
}

}  // namespace
}  // namespace stepcast::distributions_test
