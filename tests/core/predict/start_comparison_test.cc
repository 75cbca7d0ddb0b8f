#include "core/predict/start_comparison.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace stepcast::start_comparison_test {
namespace {

using ::testing::HasSubstr;

TEST(StartComparisonTest, TheOtherStartIsTheOtherOne) {
  EXPECT_EQ(WithOtherStart(SimulationOptions{.start = Start::kSimultaneous}).start, Start::kStaggered);
  EXPECT_EQ(WithOtherStart(SimulationOptions{.start = Start::kStaggered}).start, Start::kSimultaneous);
  EXPECT_TRUE(WithOtherStart(Scenario{.start_offsets_ns = {1, 2}}).start_offsets_ns.empty());
  EXPECT_EQ(WithOtherStart(SimulationOptions{.replications = 2, .relative_precision = 0.1}).replications, 2);
  EXPECT_EQ(WithOtherStart(SimulationOptions{.replications = 100, .relative_precision = 0.1}).relative_precision, 0);
}

TEST(StartComparisonTest, ADifferenceMustBeBeyondBothIntervalsAndMatter) {
  EXPECT_FALSE(Disagree({.own = {.mean = 100, .half_width = 3}, .other = {.mean = 104.9, .half_width = 4}}));
  EXPECT_TRUE(Disagree({.own = {.mean = 100, .half_width = 3}, .other = {.mean = 105.1, .half_width = 4}}));
  EXPECT_FALSE(Disagree({.own = {.mean = 100}, .other = {.mean = 100.9}}));
  EXPECT_TRUE(Disagree({.own = {.mean = 100}, .other = {.mean = 98.9}}));
}

TEST(StartComparisonTest, AWarningSaysBothInExamples) {
  Prediction prediction;
  JudgeStarts({.own = {.mean = 7.5}, .other = {.mean = 11.5}}, 32, prediction);
  EXPECT_FALSE(prediction.steady_state);
  EXPECT_THAT(prediction.warning, HasSubstr("240 examples/s"));
  EXPECT_THAT(prediction.warning, HasSubstr("random times 368"));
}

TEST(StartComparisonTest, AnotherWarningOfTheSameKindIsKept) {
  Prediction prediction{.steady_state = false, .warning = "it drifts"};
  JudgeStarts({.own = {.mean = 7.5}, .other = {.mean = 11.5}}, 32, prediction);
  EXPECT_THAT(prediction.warning, HasSubstr("it drifts; the start"));
}

TEST(StartComparisonTest, AgreementChangesNothing) {
  Prediction prediction{.warning = "one replication only"};
  JudgeStarts({.own = {.mean = 7.5}, .other = {.mean = 7.5}}, 32, prediction);
  EXPECT_TRUE(prediction.steady_state);
  EXPECT_EQ(prediction.warning, "one replication only");
}

}  // namespace
}  // namespace stepcast::start_comparison_test
