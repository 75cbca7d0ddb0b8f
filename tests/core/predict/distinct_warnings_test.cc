#include "core/predict/distinct_warnings.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace stepcast::distinct_warnings_test {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using Reason = Warning::Reason;

Prediction With(int32_t workers, std::vector<Warning> warnings) {
  return {.scenario = {.workers = workers}, .warnings = std::move(warnings)};
}

Warning Drifts(const std::string& message = "drifts") {
  return {.reason = Reason::kNotSteady, .message = message};
}

Warning Fixed(const std::string& message = "nothing is random") {
  return {.reason = Reason::kNothingRandom, .message = message};
}

TEST(DistinctWarningsTest, EachIsSaidOnceWithWhatItIsAbout) {
  EXPECT_THAT(WarningsByWorkers({With(1, {Drifts()}), With(2, {Drifts()}), With(3, {}),
                                 With(4, {Drifts()}), With(5, {Fixed()})}),
              ElementsAre(Drifts("1-2, 4 workers: drifts"), Fixed("5 workers: nothing is random")));
}

TEST(DistinctWarningsTest, SeveralOfOnePredictionAreSeveral) {
  EXPECT_THAT(WarningsByWorkers({With(1, {Drifts(), Fixed()}), With(2, {Fixed()})}),
              ElementsAre(Drifts("1 worker: drifts"), Fixed("1-2 workers: nothing is random")));
}

TEST(DistinctWarningsTest, ThoseThatDifferInNumbersAreOneWithTheNumbersOfTheFirst) {
  EXPECT_THAT(WarningsByWorkers({With(1, {Fixed()}), With(2, {Drifts("drifts by 3.5 %")}),
                                 With(3, {Drifts("drifts by 12 %")})}),
              ElementsAre(Fixed("1 worker: nothing is random"),
                          Drifts("2-3 workers, the numbers are those for 2: drifts by 3.5 %")));
}

TEST(DistinctWarningsTest, ThoseOfTwoReasonsAreTwoWhateverTheySay) {
  EXPECT_THAT(WarningsByWorkers({With(1, {Drifts("look 1")}), With(2, {Fixed("look 2")})}),
              ElementsAre(Drifts("1 worker: look 1"), Fixed("2 workers: look 2")));
}

TEST(DistinctWarningsTest, ANumberOfWorkersThatComesAgainIsSaidOnce) {
  EXPECT_THAT(WarningsByWorkers({With(4, {Drifts()}), With(8, {Drifts()}), With(4, {Drifts()})}),
              ElementsAre(Drifts("4, 8 workers: drifts")));
}

TEST(DistinctWarningsTest, NoWarningsAreNone) {
  EXPECT_THAT(WarningsByWorkers({With(4, {}), With(8, {})}), IsEmpty());
  EXPECT_THAT(WarningsByName({"TAC"}, {{}}), IsEmpty());
}

TEST(DistinctWarningsTest, OrdersGoByTheirNames) {
  EXPECT_THAT(WarningsByName({"TAC", "TIC", "GRAPH"}, {{Drifts("a 1")}, {}, {Drifts("a 2")}}),
              ElementsAre(Drifts("TAC, GRAPH, the numbers are those for TAC: a 1")));
}

}  // namespace
}  // namespace stepcast::distinct_warnings_test
