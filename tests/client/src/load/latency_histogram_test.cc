#include "client/src/load/latency_histogram.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <random>
#include <vector>

namespace stepcast::client::latency_histogram_test {
namespace {

using std::chrono::nanoseconds;

LatencyHistogram HistogramOf(const std::vector<int64_t>& values) {
  LatencyHistogram histogram;
  for (const int64_t value : values) histogram.Record(nanoseconds(value));
  return histogram;
}

// The least value that at least a share `part` of them does not exceed.
int64_t ExactPercentile(std::vector<int64_t> values, double part) {
  std::sort(values.begin(), values.end());
  const auto rank = static_cast<size_t>(std::ceil(part * static_cast<double>(values.size())));
  return values[std::max<size_t>(rank, 1) - 1];
}

// Spread over all magnitudes, as latencies are.
std::vector<int64_t> RandomLatencies(uint64_t seed) {
  std::mt19937_64 random(seed);
  std::uniform_real_distribution<double> logarithm(0, std::log(3.6e12));
  std::vector<int64_t> values(1 + random() % 2000);
  for (int64_t& value : values) value = static_cast<int64_t>(std::exp(logarithm(random)));
  return values;
}

TEST(LatencyHistogramTest, PercentilesAreNeverBelowTheExactOnesNorA256thAbove) {
  for (uint64_t seed = 0; seed < 300; ++seed) {
    const std::vector<int64_t> values = RandomLatencies(seed);
    const LatencyHistogram histogram = HistogramOf(values);
    for (const double part : {0.001, 0.25, 0.5, 0.9, 0.95, 0.99, 0.999, 1.0}) {
      const int64_t exact = ExactPercentile(values, part);
      const int64_t reported = histogram.Percentile(part).count();
      ASSERT_GE(reported, exact) << "seed " << seed << ", part " << part;
      ASSERT_LE(static_cast<double>(reported - exact), static_cast<double>(exact) / 256)
          << "seed " << seed << ", part " << part;
    }
  }
}

TEST(LatencyHistogramTest, CountMeanAndTheGreatestAreExact) {
  for (uint64_t seed = 0; seed < 50; ++seed) {
    const std::vector<int64_t> values = RandomLatencies(seed);
    const LatencyHistogram histogram = HistogramOf(values);
    EXPECT_EQ(histogram.count(), static_cast<int64_t>(values.size()));
    EXPECT_EQ(histogram.max().count(), *std::max_element(values.begin(), values.end()));
    const double sum = std::accumulate(values.begin(), values.end(), 0.0);
    EXPECT_EQ(histogram.Mean().count(), std::llround(sum / static_cast<double>(values.size())));
  }
}

TEST(LatencyHistogramTest, BucketsMeetWithoutAGap) {
  for (int64_t edge = 1; edge < int64_t{1} << 41; edge *= 2) {
    for (const int64_t value : {edge - 1, edge, edge + 1}) {
      // Something greater, or the greatest would hide what its bucket is.
      const int64_t reported = HistogramOf({value, value * 2 + 1000}).Percentile(0.5).count();
      EXPECT_GE(reported, value);
      EXPECT_LE(reported - value, value / 256);
    }
  }
}

TEST(LatencyHistogramTest, WhatIsOutOfRangeCountsAtTheEnds) {
  const LatencyHistogram low = HistogramOf({-5, -1, 7});
  EXPECT_EQ(low.Percentile(0.5).count(), 0);
  const LatencyHistogram high = HistogramOf({1, nanoseconds(std::chrono::hours(5)).count()});
  EXPECT_EQ(high.max(), std::chrono::hours(5));
  EXPECT_GE(high.Percentile(0.99), LatencyHistogram::kLongest);
}

TEST(LatencyHistogramTest, OfNothingAllIsZero) {
  const LatencyHistogram none;
  EXPECT_EQ(none.count(), 0);
  EXPECT_EQ(none.Percentile(0.99).count(), 0);
  EXPECT_EQ(none.Mean().count(), 0);
}

}  // namespace
}  // namespace stepcast::client::latency_histogram_test
