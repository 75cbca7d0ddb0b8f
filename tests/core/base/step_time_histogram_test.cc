#include "core/base/step_time_histogram.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include "core/base/random.h"
#include "core/base/time.h"

namespace stepcast::step_time_histogram_test {
namespace {

constexpr double kShares[] = {0.001, 0.25, 0.5, 0.95, 0.99, 1.0};

// The smallest span that `share` of them do not exceed.
double ExactPercentile(std::vector<int64_t> ticks, double share) {
  std::sort(ticks.begin(), ticks.end());
  const auto rank = static_cast<size_t>(std::ceil(share * static_cast<double>(ticks.size())));
  return ToSeconds(Span{ticks[rank - 1]});
}

// From one tick to days.
int64_t RandomTicks(Random& random) {
  return static_cast<int64_t>(random.Next() >> (2 + random.Below(61))) + 1;
}

TEST(StepTimeHistogramTest, IsZeroWhereNothingWasAdded) {
  const StepTimeHistogram histogram;
  EXPECT_EQ(histogram.count(), 0);
  EXPECT_EQ(histogram.MeanSeconds(), 0);
  EXPECT_EQ(histogram.PercentileSeconds(0.5), 0);
}

TEST(StepTimeHistogramTest, PercentilesAreWithinATenthOfAPercent) {
  for (uint64_t seed = 1; seed <= 200; ++seed) {
    SCOPED_TRACE(::testing::Message() << "seed " << seed);
    Random random({seed, 31});
    StepTimeHistogram histogram;
    std::vector<int64_t> ticks;
    double sum = 0;
    for (uint64_t i = 0; i <= random.Below(300); ++i) {
      ticks.push_back(RandomTicks(random));
      sum += ToSeconds(Span{ticks.back()});
      histogram.Add(Span{ticks.back()});
    }
    EXPECT_NEAR(histogram.MeanSeconds(), sum / static_cast<double>(ticks.size()), 1e-9 * sum);
    for (const double share : kShares) {
      const double exact = ExactPercentile(ticks, share);
      EXPECT_NEAR(histogram.PercentileSeconds(share), exact, exact * 1e-3) << "share " << share;
    }
  }
}

TEST(StepTimeHistogramTest, FewSpansAreExact) {
  StepTimeHistogram histogram;
  for (int64_t ticks = 1; ticks <= 100; ++ticks) histogram.Add(Span{ticks});
  EXPECT_EQ(histogram.PercentileSeconds(0.5), ToSeconds(Span{50}));
  EXPECT_EQ(histogram.PercentileSeconds(0.99), ToSeconds(Span{99}));
  EXPECT_EQ(histogram.PercentileSeconds(0.001), ToSeconds(Span{1}));
}

TEST(StepTimeHistogramTest, MergedIsAsAddedToOne) {
  Random random({1, 32});
  StepTimeHistogram all;
  StepTimeHistogram some;
  StepTimeHistogram others;
  for (int i = 0; i < 1000; ++i) {
    const Span span{RandomTicks(random)};
    all.Add(span);
    (i % 3 == 0 ? some : others).Add(span);
  }
  some.Merge(others);
  EXPECT_EQ(some.count(), all.count());
  EXPECT_NEAR(some.MeanSeconds(), all.MeanSeconds(), 1e-12 * all.MeanSeconds());
  for (const double share : kShares)
    EXPECT_EQ(some.PercentileSeconds(share), all.PercentileSeconds(share));
}

}  // namespace
}  // namespace stepcast::step_time_histogram_test
