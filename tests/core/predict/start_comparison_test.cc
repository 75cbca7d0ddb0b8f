#include "core/predict/start_comparison.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <vector>

#include "core/base/random.h"

namespace stepcast::start_comparison_test {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

// Runs of one start, their mean's interval as wide as is said.
RunsOfAStart Runs(std::vector<double> values, double half_width = 0) {
  double sum = 0;
  for (const double value : values) sum += value;
  const double mean = sum / static_cast<double>(values.size());
  return {.mean = {.mean = mean, .half_width = half_width}, .runs = std::move(values)};
}

TEST(StartComparisonTest, TheOtherStartIsTheOtherOne) {
  const Scenario free;
  const Scenario given{.start_offsets_ns = {1, 2}};
  EXPECT_EQ(WithOtherStart(free, {.start = Start::kSimultaneous}).start, Start::kStaggered);
  EXPECT_EQ(WithOtherStart(free, {.start = Start::kStaggered}).start, Start::kSimultaneous);
  EXPECT_TRUE(WithOtherStart(given).start_offsets_ns.empty());
  EXPECT_EQ(WithOtherStart(given, {.start = Start::kStaggered}).start, Start::kStaggered)
      << "offsets that are given are no random start";
  EXPECT_EQ(WithOtherStart(free, {.replications = 2, .relative_precision = 0.1}).replications, 2);
  EXPECT_EQ(
      WithOtherStart(free, {.replications = 100, .relative_precision = 0.1}).relative_precision, 0);
  EXPECT_FALSE(WithOtherStart(free, {.automatic_replications = true}).automatic_replications);
  EXPECT_EQ(WithOtherStart(free, {.replications = 5}).replications, 3);
  EXPECT_EQ(WithOtherStart(free, {.automatic_steps = true, .replications = 5}).replications, 1);
}

TEST(StartComparisonTest, ADifferenceMustBeBeyondBothIntervalsAndMatter) {
  EXPECT_FALSE(Disagree(Runs({100}, 3), Runs({104.9}, 4)));
  EXPECT_TRUE(Disagree(Runs({100}, 3), Runs({105.1}, 4)));
  EXPECT_FALSE(Disagree(Runs({100}), Runs({100.9})));
  EXPECT_TRUE(Disagree(Runs({100}), Runs({98.9})));
  EXPECT_FALSE(Disagree(Runs({100}), {}));
  // No chance at one start, and much at the other.
  EXPECT_TRUE(Disagree(Runs({100}), Runs({120, 180, 240}, 150)));
  EXPECT_TRUE(Disagree(Runs({100}), Runs({50, 90, 70}, 50)));
  EXPECT_FALSE(Disagree(Runs({100}), Runs({99, 180, 240}, 150)));
  // One run beside four whose mean is known to 2: single ones may be off by 2 x sqrt(5).
  EXPECT_FALSE(Disagree(Runs({99, 101, 100, 100}, 2), Runs({104.4})));
  EXPECT_TRUE(Disagree(Runs({99, 101, 100, 100}, 2), Runs({104.5})));
}

TEST(StartComparisonTest, AStartIsForgottenOnTheWayFromItAndKeptInLockstep) {
  EXPECT_FALSE(ForgotItsStart(100, 50, 50)) << "lockstep";
  EXPECT_FALSE(ForgotItsStart(100, 50, 74)) << "most of it is left";
  EXPECT_TRUE(ForgotItsStart(100, 50, 76));
  EXPECT_TRUE(ForgotItsStart(100, 150, 124)) << "from above, too";
  EXPECT_FALSE(ForgotItsStart(100, 150, 126));
  EXPECT_TRUE(ForgotItsStart(100, 98.5, 98.1)) << "never mattered";
  EXPECT_FALSE(ForgotItsStart(100, 97.5, 97.5));
}

TEST(RegimesTest, RunsOfEachStartAreCountedWhereTheyFell) {
  const Starts starts{
      .at_random = true, .own = Runs({100, 101, 50, 99, 102}), .other = Runs({49, 51, 50})};
  const std::vector<Regime> regimes = RegimesOf(starts, 2);
  ASSERT_EQ(regimes.size(), 2u);
  EXPECT_DOUBLE_EQ(regimes[0].examples_per_second, 201);
  EXPECT_EQ(regimes[0].replications, 4);
  EXPECT_EQ(regimes[0].other_start_replications, 0);
  EXPECT_DOUBLE_EQ(regimes[1].examples_per_second, 100);
  EXPECT_EQ(regimes[1].replications, 1);
  EXPECT_EQ(regimes[1].other_start_replications, 3);
}

TEST(RegimesTest, StartsThatDisagreeAreTwoWhereverTheirRunsLie) {
  const std::vector<Regime> regimes =
      RegimesOf({.own = Runs({100, 103, 106, 103}, 1), .other = Runs({110, 115, 120}, 1)}, 1);
  ASSERT_EQ(regimes.size(), 2u);
  EXPECT_EQ(regimes[0].replications + regimes[1].replications, 4);
  EXPECT_EQ(regimes[0].other_start_replications + regimes[1].other_start_replications, 3);
  EXPECT_GT(regimes[0].other_start_replications, 0);
}

// Every run one apart from the next, or two groups that differ by less than matters.
TEST(RegimesTest, ASpreadIsNoRegime) {
  EXPECT_THAT(
      RegimesOf({.own = Runs({90, 95, 100, 105, 110}, 9), .other = Runs({97, 103, 99}, 9)}, 1),
      IsEmpty());
  EXPECT_THAT(
      RegimesOf({.own = Runs({100, 100, 100, 104, 104}, 3), .other = Runs({100, 104, 104}, 3)}, 1),
      IsEmpty());
  EXPECT_THAT(RegimesOf({.own = Runs({100, 50, 100})}, 1), IsEmpty())
      << "three runs say nothing of groups";
}

TEST(RegimesTest, NormalRunsAreTakenForTwoRegimesInFewerThanOneCaseInAHundred) {
  int found = 0;
  for (uint64_t seed = 1; seed <= 2000; ++seed) {
    Random random({seed});
    Starts starts;
    // A spread of 20 %, so that the 5 % are no help.
    for (int i = 0; i < 5; ++i) starts.own.runs.push_back(100 + 20 * random.Normal());
    for (int i = 0; i < 3; ++i) starts.other.runs.push_back(100 + 20 * random.Normal());
    starts.own.mean = starts.other.mean = {.mean = 100, .half_width = 30};
    found += RegimesOf(starts, 1).empty() ? 0 : 1;
  }
  EXPECT_LT(found, 20);
}

TEST(StartComparisonTest, AWarningSaysBothInExamplesAndHowManyRunsFellInEach) {
  Prediction prediction;
  JudgeStarts({.at_random = true,
               .own = Runs({11.5, 11.5, 11.5, 11.5, 7.5}),
               .other = Runs({7.5, 7.5, 7.5})},
              32, prediction);
  EXPECT_FALSE(prediction.steady_state);
  EXPECT_EQ(prediction.regimes.size(), 2u);
  ASSERT_THAT(prediction.warnings, SizeIs(1));
  EXPECT_EQ(prediction.warnings[0].reason, Warning::Reason::kTwoRegimes);
  EXPECT_THAT(prediction.warnings[0].message,
              HasSubstr("368 examples/s in 4 of 5 runs that start at random "
                        "times and 0 of 3 that start together"));
  EXPECT_THAT(
      prediction.warnings[0].message,
      HasSubstr("and 0 of 3 that start together, 240 in 1 and 3; a real cluster may do either"));
}

TEST(StartComparisonTest, AnotherWarningOfTheSameKindIsKept) {
  const Warning drifts{.reason = Warning::Reason::kNotSteady, .message = "it drifts"};
  Prediction prediction{.steady_state = false, .warnings = {drifts}};
  JudgeStarts({.own = Runs({7.5}), .other = Runs({11.5})}, 32, prediction);
  ASSERT_THAT(prediction.warnings, SizeIs(2));
  EXPECT_EQ(prediction.warnings[0], drifts);
  EXPECT_EQ(prediction.warnings[1].reason, Warning::Reason::kTwoRegimes);
}

TEST(StartComparisonTest, WarningsOfWhatIsAssumedAreKeptAndThoseOfTheIntervalGo) {
  const Warning rate{.reason = Warning::Reason::kLinkRateNotMeasured, .message = "nominal"};
  const Warning sharing{.reason = Warning::Reason::kLinkSharingMatters, .message = "sharing"};
  const Warning one{.reason = Warning::Reason::kOneReplication, .message = "one replication only"};
  const Warning fixed{.reason = Warning::Reason::kNothingRandom, .message = "no width"};
  Prediction prediction{.warnings = {one, rate, fixed, sharing}};
  JudgeStarts({.own = Runs({7.5}), .other = Runs({11.5})}, 32, prediction);
  ASSERT_THAT(prediction.warnings, SizeIs(3));
  EXPECT_EQ(prediction.warnings[0], rate);
  EXPECT_EQ(prediction.warnings[1], sharing);
}

TEST(StartComparisonTest, AgreementChangesNothing) {
  const Warning one{.reason = Warning::Reason::kOneReplication, .message = "one replication only"};
  Prediction prediction{.warnings = {one}};
  JudgeStarts({.own = Runs({7.5}), .other = Runs({7.5})}, 32, prediction);
  EXPECT_TRUE(prediction.steady_state);
  EXPECT_THAT(prediction.regimes, IsEmpty());
  EXPECT_THAT(prediction.warnings, ElementsAre(one));
}

// The existence of the faster regime counts where no replication was in it; where one was, the mean
// has it already.
TEST(StartComparisonTest, ADecisionNeverRestsOnTheSlowerRegimeAlone) {
  Prediction slow{.examples_per_second = 50};
  slow.regimes = {{.examples_per_second = 100, .other_start_replications = 3},
                  {.examples_per_second = 50, .replications = 5}};
  EXPECT_DOUBLE_EQ(ExpectedExamplesPerSecond(slow), (3 * 100 + 5 * 50) / 8.0);
  Prediction both{.examples_per_second = 60};
  both.regimes = {{.examples_per_second = 100, .replications = 1},
                  {.examples_per_second = 50, .replications = 4}};
  EXPECT_EQ(ExpectedExamplesPerSecond(both), 60);
  EXPECT_EQ(ExpectedExamplesPerSecond({.examples_per_second = 7}), 7);
}

}  // namespace
}  // namespace stepcast::start_comparison_test
