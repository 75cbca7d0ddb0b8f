#include "core/predict/distinct_warnings.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace stepcast::distinct_warnings_test {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

Prediction With(int32_t workers, const std::string& warning) {
  return {.scenario = {.workers = workers}, .warning = warning};
}

TEST(DistinctWarningsTest, EachIsSaidOnceWithWhatItIsAbout) {
  EXPECT_THAT(WarningsByWorkers({With(1, "drifts"), With(2, "drifts"), With(3, ""),
                                 With(4, "drifts"), With(5, "waits")}),
              ElementsAre("1-2, 4 workers: drifts", "5 workers: waits"));
}

TEST(DistinctWarningsTest, ThoseThatDifferInNumbersAreOneWithTheNumbersOfTheFirst) {
  EXPECT_THAT(WarningsByWorkers(
                  {With(1, "x is random"), With(2, "drifts by 3.5 %"), With(3, "drifts by 12 %")}),
              ElementsAre("1 worker: x is random",
                          "2-3 workers, the numbers are those for 2: drifts by 3.5 %"));
}

TEST(DistinctWarningsTest, ANumberOfWorkersThatComesAgainIsSaidOnce) {
  EXPECT_THAT(WarningsByWorkers({With(4, "drifts"), With(8, "drifts"), With(4, "drifts")}),
              ElementsAre("4, 8 workers: drifts"));
}

TEST(DistinctWarningsTest, NoWarningsAreNone) {
  EXPECT_THAT(WarningsByWorkers({With(4, ""), With(8, "")}), IsEmpty());
  EXPECT_THAT(WarningsByName({"TAC"}, {""}), IsEmpty());
}

TEST(DistinctWarningsTest, OrdersGoByTheirNames) {
  EXPECT_THAT(WarningsByName({"TAC", "TIC", "GRAPH"}, {"a 1", "", "a 2"}),
              ElementsAre("TAC, GRAPH, the numbers are those for TAC: a 1"));
}

}  // namespace
}  // namespace stepcast::distinct_warnings_test
