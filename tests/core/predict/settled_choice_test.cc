// How sure a choice is said to be, against how often it is right: many choices of which the truth
// is known.
#include "core/predict/settled_choice.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <vector>

#include "core/base/random.h"

namespace stepcast::settled_choice_test {
namespace {

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
    const double sum = std::accumulate(runs.begin(), runs.end(), 0.0);
    return Alternative{
        .value = sum / static_cast<double>(runs.size()), .deviation = 1, .runs = std::move(runs)};
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
}  // namespace stepcast::settled_choice_test
