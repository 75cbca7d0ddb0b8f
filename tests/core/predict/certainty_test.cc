#include "core/predict/certainty.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "core/base/distributions.h"
#include "core/base/random.h"

namespace stepcast::certainty_test {
namespace {

std::vector<RunEstimate> Runs(const std::vector<double>& values, double standard_error = 0) {
  std::vector<RunEstimate> runs;
  for (const double value : values)
    runs.push_back({.steps_per_second = value, .standard_error = standard_error});
  return runs;
}

// By hand: mean 10, variance 2.5, t of 4 degrees 2.776.
TEST(SingleRunIntervalTest, IsThePredictionIntervalOfANormalSample) {
  const Interval interval = SingleRunInterval(Runs({8, 9, 10, 11, 12}), 0.95);
  const double half_width = 2.7764 * std::sqrt(2.5) * std::sqrt(1.2);
  EXPECT_NEAR(interval.lower, 10 - half_width, 1e-3);
  EXPECT_NEAR(interval.upper, 10 + half_width, 1e-3);
  EXPECT_EQ(interval.level, 0.95);
}

// t of 15 degrees is 2.131, and one run's own mean is as uncertain as the next.
TEST(SingleRunIntervalTest, OneRunHasOnlyWhatItsBatchesSay) {
  const Interval interval = SingleRunInterval(Runs({100}, 2), 0.95);
  EXPECT_NEAR(interval.upper, 100 + 2.1314 * 2 * std::sqrt(2), 1e-2);
  EXPECT_NEAR(interval.lower, 200 - interval.upper, 1e-9);
}

TEST(SingleRunIntervalTest, WhereNothingIsRandomItHasNoWidth) {
  for (const std::vector<double>& same :
       {std::vector<double>{7}, std::vector<double>{7, 7, 7, 7, 7}}) {
    EXPECT_EQ(SingleRunInterval(Runs(same), 0.95).lower, 7);
    EXPECT_EQ(SingleRunInterval(Runs(same), 0.95).upper, 7);
  }
}

TEST(SingleRunIntervalTest, IsNeverBelowZero) {
  EXPECT_EQ(SingleRunInterval(Runs({1, 9, 2}), 0.99).lower, 0);
}

// Two groups at 100 and 50: one normal sample of them would reach from below 20 to above 140.
TEST(SingleRunIntervalTest, TwoRegimesAreHeldWithoutWhatLiesBeyondThem) {
  const Interval interval = SingleRunInterval(Runs({99, 100, 101, 49, 50, 51}), 0.95);
  EXPECT_GT(interval.lower, 45);
  EXPECT_LT(interval.lower, 49);
  EXPECT_GT(interval.upper, 101);
  EXPECT_LT(interval.upper, 105);
}

// Of the next value of a normal or two-regime sample, 95 % are inside, whatever the number of
// values known.
TEST(SingleRunIntervalTest, HoldsTheNextRunAsOftenAsItSays) {
  constexpr int kCases = 4000;
  for (const bool two_regimes : {false, true}) {
    for (const int known : {3, 5, 20}) {
      int held = 0;
      for (uint64_t seed = 1; seed <= kCases; ++seed) {
        Random random({seed, static_cast<uint64_t>(known), two_regimes ? 1U : 0U});
        const auto draw = [&] {
          return (two_regimes && random.Below(3) == 0 ? 60 : 100) + 2 * random.Normal();
        };
        std::vector<double> values;
        for (int i = 0; i < known; ++i) values.push_back(draw());
        const double next = draw();
        const Interval interval = SingleRunInterval(Runs(values), 0.95);
        held += interval.lower <= next && next <= interval.upper ? 1 : 0;
      }
      const double share = static_cast<double>(held) / kCases;
      if (!two_regimes) {
        EXPECT_NEAR(share, 0.95, 0.012) << known;
      }
      // Fewer than twenty runs may all be of one regime, and know nothing of the other.
      if (two_regimes && known == 20) {
        EXPECT_NEAR(share, 0.97, 0.02) << known;
      }
    }
  }
}

// Of runs of one regime and of two, the mean known as Student's t says: two regimes' groups may be
// narrower than their mean is known.
TEST(TellCertaintyTest, EachIntervalHoldsTheOneThatKnowsMore) {
  int wider = 0;
  for (uint64_t seed = 1; seed <= 3000; ++seed) {
    SCOPED_TRACE(seed);
    Random random({seed, 33});
    const bool two_regimes = random.Below(2) == 0;
    std::vector<double> values;
    for (uint64_t i = 0; i < 3 + random.Below(8); ++i)
      values.push_back((two_regimes && random.Below(2) == 0 ? 60 : 100) + random.Normal());
    const MeanInterval mean = StudentT(values, 0.95);
    const Interval runs = SingleRunInterval(Runs(values), 0.95);
    wider += mean.mean + mean.half_width > runs.upper ? 1 : 0;
    Prediction prediction{.examples_per_second = mean.mean};
    const bool as_recorded = random.Below(2) == 0;
    TellCertainty({.simulation = mean.half_width / mean.mean,
                   .input = {.half_width = as_recorded ? 0 : 0.1 * random.Unit()},
                   .model = {.fraction = as_recorded ? 0 : 0.05 * random.Unit(), .source = ""}},
                  runs, prediction);
    const Interval& simulation = prediction.simulation_interval;
    const Interval& job = prediction.confidence_interval;
    const Interval& run = prediction.run_interval;
    EXPECT_LE(job.lower, simulation.lower);
    EXPECT_GE(job.upper, simulation.upper);
    EXPECT_LE(run.lower, job.lower);
    EXPECT_GE(run.upper, job.upper);
    if (!as_recorded) continue;
    EXPECT_EQ(job.lower, simulation.lower);
    EXPECT_EQ(job.upper, simulation.upper);
  }
  EXPECT_GT(wider, 100) << "no case of groups narrower than their mean";
}

TEST(SplitInTwoTest, GroupsAreFarApartForTheirSpreadAndTheirMean) {
  constexpr double kOne = std::numeric_limits<double>::infinity();
  EXPECT_EQ(SplitInTwo({100, 50, 101, 51}), 100);
  EXPECT_EQ(SplitInTwo({100, 50, 101}), kOne);
  EXPECT_EQ(SplitInTwo({100, 90, 80, 70, 60, 50}), kOne);
  EXPECT_EQ(SplitInTwo({100, 100, 104, 104}), kOne) << "4 % apart";
  EXPECT_EQ(SplitInTwo({100, 100, 106, 106}), 106);
}

}  // namespace
}  // namespace stepcast::certainty_test
