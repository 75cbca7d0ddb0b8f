#include "core/predict/certainty.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <numeric>
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

TEST(TellCertaintyTest, APrecisionThatIsNotReachedIsWarnedOf) {
  const MeanInterval mean{.mean = 100, .half_width = 2};
  const auto warnings = [&](double asked, int32_t runs) {
    Prediction prediction;
    WarnOfPrecision({.relative_precision = asked}, mean, runs, prediction);
    return prediction.warnings;
  };
  EXPECT_TRUE(warnings(0, 5).empty());
  EXPECT_TRUE(warnings(0.02, 5).empty());
  EXPECT_TRUE(warnings(0.01, 1).empty());
  const std::vector<Warning> missed = warnings(0.01, 5);
  ASSERT_EQ(missed.size(), 1);
  EXPECT_EQ(missed[0].reason, Warning::Reason::kPrecisionNotReached);
  EXPECT_EQ(missed[0].message,
            "the precision asked for, 0.01, is not reached: 5 runs leave the mean open by 0.02 of "
            "it to either side; allow more replications, or longer ones by steps_per_worker");
}

// Wider steps slow a job down by no more than its slowest worker; what goes beyond is known where
// it was seen, and not a slope.
TEST(SensitivityTest, MoreThanWaitingExplainsCountsOnce) {
  Sensitivity gentle;
  gentle.AnswerToWider(-0.01, 1.25, 0.2);
  EXPECT_NEAR(gentle.to_deviation, -0.01 / std::log(1.25), 1e-12);
  EXPECT_EQ(gentle.leap, 0);
  Sensitivity leaping;
  leaping.AnswerToWider(-0.1, 1.25, 0.2);
  EXPECT_NEAR(leaping.to_deviation, -0.2, 1e-12);
  EXPECT_NEAR(leaping.leap, -0.1 + 0.2 * std::log(1.25), 1e-12);
  Sensitivity faster;
  faster.AnswerToWider(0.1, 1.25, 0.2);
  EXPECT_EQ(faster.to_deviation, 0);
  EXPECT_EQ(faster.leap, 0);
}

TEST(SplitInTwoTest, GroupsAreFarApartForTheirSpreadAndTheirMean) {
  constexpr double kOne = std::numeric_limits<double>::infinity();
  EXPECT_EQ(SplitInTwo({100, 50, 101, 51}), 100);
  EXPECT_EQ(SplitInTwo({100, 50, 101}), kOne);
  EXPECT_EQ(SplitInTwo({100, 90, 80, 70, 60, 50}), kOne);
  EXPECT_EQ(SplitInTwo({100, 100, 104, 104}), kOne) << "4 % apart";
  EXPECT_EQ(SplitInTwo({100, 100, 106, 106}), 106);
}

// How sure a choice is said to be, against how often it is right: many choices of which the truth
// is known.

constexpr int kRuns = 10;

// Alternatives with true means, measured by runs that share most of their chance.
struct Contest {
  std::vector<double> truth;
  std::vector<Alternative> measured;
};

Contest Measure(uint64_t seed, double shared, double own) {
  Random random({seed});
  Contest contest;
  for (int i = 0; i < 3; ++i) contest.truth.push_back(100 + random.Normal());
  std::vector<double> common;
  for (int run = 0; run < kRuns; ++run) common.push_back(shared * random.Normal());
  for (const double truth : contest.truth) {
    Alternative& each = contest.measured.emplace_back();
    for (int run = 0; run < kRuns; ++run)
      each.runs.push_back(truth + common[static_cast<size_t>(run)] + own * random.Normal());
    each.value = std::accumulate(each.runs.begin(), each.runs.end(), 0.0) / kRuns;
    each.deviation = std::hypot(shared, own) / std::sqrt(kRuns);
  }
  return contest;
}

size_t BestOf(const std::vector<Alternative>& all) {
  return static_cast<size_t>(std::max_element(all.begin(), all.end(),
                                              [](const Alternative& a, const Alternative& b) {
                                                return a.value < b.value;
                                              }) -
                             all.begin());
}

struct Score {
  double told = 0;
  double right = 0;
  double told_loss = 0;
  double lost = 0;
};

Score ScoreOf(double shared, double own, bool with_runs) {
  constexpr int kContests = 4000;
  Score score;
  for (int i = 0; i < kContests; ++i) {
    Contest contest = Measure(static_cast<uint64_t>(i), shared, own);
    if (!with_runs)
      for (Alternative& each : contest.measured) each.runs.clear();
    const size_t chosen = BestOf(contest.measured);
    const Settled settled = HowSettled(contest.measured, chosen);
    const double best = *std::max_element(contest.truth.begin(), contest.truth.end());
    score.told += settled.probability_best / kContests;
    score.right += contest.truth[chosen] == best ? 1.0 / kContests : 0;
    score.told_loss += settled.expected_loss / kContests;
    score.lost += (best - contest.truth[chosen]) / 100 / kContests;
  }
  return score;
}

TEST(SettledChoiceTest, SaysHowOftenItIsRightAndWhatIsLost) {
  for (const double own : {0.5, 1.5, 4.0}) {
    const Score score = ScoreOf(0, own, false);
    EXPECT_NEAR(score.told, score.right, 0.06) << own;
    EXPECT_NEAR(score.told_loss, score.lost, 0.35 * score.lost + 1e-4) << own;
  }
}

TEST(SettledChoiceTest, RunsWithTheSameChoicesTellApartWhatTheirSpreadHides) {
  const Score paired = ScoreOf(10, 1, true);
  EXPECT_NEAR(paired.told, paired.right, 0.06);
  // Without them the common chance looks like doubt.
  EXPECT_LT(ScoreOf(10, 1, false).told, paired.right - 0.2);
}

TEST(SettledChoiceTest, OneThatCannotBeBeatenIsSure) {
  const Settled sure = HowSettled({{.value = 2}, {.value = 1}, {.value = 2}}, 0);
  EXPECT_EQ(sure.probability_best, 1);
  EXPECT_EQ(sure.expected_loss, 0);
  const Settled wrong = HowSettled({{.value = 2}, {.value = 1}}, 1);
  EXPECT_EQ(wrong.probability_best, 0);
  EXPECT_EQ(wrong.expected_loss, 1);
  EXPECT_EQ(HowSettled({{.value = 3, .deviation = 1}}, 0).probability_best, 1);
}

TEST(SettledChoiceTest, EqualAlternativesAreOne) {
  const auto of = [](std::vector<double> runs) {
    const double mean =
        std::accumulate(runs.begin(), runs.end(), 0.0) / static_cast<double>(runs.size());
    return Alternative{.value = mean, .deviation = 1, .runs = std::move(runs)};
  };
  const Alternative best = of({10, 12, 11});
  const Alternative rival = of({9.5, 11.8, 10.4});
  const Settled once = HowSettled({rival, best}, 1);
  EXPECT_LT(once.probability_best, 0.999);
  for (const Settled& more :
       {HowSettled({rival, best, rival, rival}, 1), HowSettled({best, rival, best, best}, 2)}) {
    EXPECT_EQ(more.probability_best, once.probability_best);
    EXPECT_EQ(more.expected_loss, once.expected_loss);
  }
  // A single run of each, which has no spread.
  EXPECT_EQ(HowSettled({of({10}), of({10})}, 0).probability_best, 1);
  EXPECT_EQ(HowSettled({of({10}), of({10})}, 0).expected_loss, 0);
  EXPECT_LT(HowSettled({of({10}), of({9.9})}, 0).probability_best, 0.6);
}

// The first three of one's ten runs are what the other's three are compared with.
TEST(SettledChoiceTest, OnlyRunsWithTheSameChoicesSayWhichIsAhead) {
  const Alternative many{
      .value = 9, .deviation = 1, .runs = {10.1, 12.2, 11.1, 8, 8, 8, 8, 8, 8, 8.6}};
  const Alternative few{.value = 11, .deviation = 1, .runs = {10, 12, 11}};
  EXPECT_GT(HowSettled({many, few}, 0).probability_best, 0.9);
}

TEST(SettledChoiceTest, ProbabilitiesOfAllAddUpAndFollowTheirMeans) {
  const std::vector<double> found = ProbabilitiesOfBest(
      {{.value = 10, .deviation = 1}, {.value = 10, .deviation = 1}, {.value = 5, .deviation = 1}},
      7);
  EXPECT_NEAR(std::accumulate(found.begin(), found.end(), 0.0), 1, 1e-12);
  EXPECT_NEAR(found[0], 0.5, 0.05);
  EXPECT_NEAR(found[1], 0.5, 0.05);
  EXPECT_LT(found[2], 0.01);
  EXPECT_TRUE(ProbabilitiesOfBest({}, 7).empty());
}

TEST(SettledChoiceTest, ADeviationIsThatOfTheIntervalsLevel) {
  EXPECT_NEAR(DeviationOf({.lower = 90, .upper = 110, .level = 0.95}), 10 / 1.96, 1e-3);
  EXPECT_EQ(DeviationOf({.lower = 100, .upper = 100, .level = 0.95}), 0);
}

TEST(SettledChoiceTest, ValuesWithoutAnEndLeaveNothingToChance) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
  for (const double best : {kInfinity, kNan, 1e-320, 0.0, 1.0, 1e308}) {
    for (const double other : {kInfinity, kNan, -kInfinity, 0.0, -1e308}) {
      for (const double deviation : {0.0, 1.0, kInfinity, kNan, 1e-320}) {
        const Settled settled = HowSettled(
            {{.value = best, .deviation = deviation}, {.value = other, .deviation = deviation}}, 0);
        EXPECT_TRUE(settled.probability_best >= 0 && settled.probability_best <= 1)
            << best << " " << other << " " << deviation;
        EXPECT_TRUE(settled.expected_loss >= 0 && std::isfinite(settled.expected_loss))
            << best << " " << other << " " << deviation;
      }
    }
  }
  EXPECT_EQ(HowSettled({{.value = kInfinity}, {.value = 1}}, 0).probability_best, 1);
  EXPECT_EQ(HowSettled({{.value = 1}, {.value = kInfinity}}, 0).probability_best, 0);
}

}  // namespace
}  // namespace stepcast::certainty_test
