#include "client/cli/recommendation_table.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace stepcast::client::recommendation_table_test {
namespace {

using ::testing::HasSubstr;

Prediction Row(int32_t workers, double examples, Resource bottleneck,
               const std::string& warning = "") {
  return {
      .scenario = {.workers = workers, .parameter_servers = 1},
      .examples_per_second = examples,
      .confidence_interval = {.lower = examples * 0.98, .upper = examples * 1.02, .level = 0.95},
      .step_time = {.p50 = std::chrono::microseconds(64'930)},
      .speedup = examples / 100,
      .scaling_efficiency = examples / 100 / workers,
      .bottleneck = bottleneck,
      .bottleneck_parameter_server = 1,
      .warning = warning};
}

TEST(RecommendationTextTest, MarksTheChosenRow) {
  const RecommendWorkersResponse response{
      .workers = 2,
      .parameter_servers = 1,
      .reason = "2 workers give the most.",
      .frontier = {Row(1, 100, Resource::kWorker), Row(2, 190, Resource::kWorker)}};
  EXPECT_EQ(RecommendationText(response),
            "2 workers give the most.\n"
            "\n"
            "    workers  examples/s    95% interval  speed-up  efficiency  step p50  bottleneck\n"
            "          1       100.0  98.00 .. 102.0     1.000      100.0%  64.93 ms  computation "
            "of the workers\n"
            "->        2       190.0  186.2 .. 193.8     1.900       95.0%  64.93 ms  computation "
            "of the workers\n");
}

TEST(RecommendationTextTest, SaysWhyThereIsNone) {
  const RecommendWorkersResponse response{.frontier = {Row(1, 100, Resource::kWorker)},
                                          .infeasible_reason = "at most 0.4 is reached"};
  const std::string text = RecommendationText(response);
  EXPECT_EQ(text.substr(0, text.find('\n')), "No recommendation: at most 0.4 is reached");
  EXPECT_EQ(text.find("->"), std::string::npos);
}

RecommendWorkersResponse WithOutcomes() {
  RecommendWorkersResponse response{.workers = 1,
                                    .parameter_servers = 1,
                                    .reason = "Because.",
                                    .currency_code = "EUR",
                                    .choices = 20};
  response.frontier = {Row(1, 100, Resource::kWorker), Row(2, 190, Resource::kWorker)};
  response.frontier[1].scenario.parameter_servers = 2;
  response.frontier_outcomes = {
      {.cost = 3, .duration = std::chrono::minutes(1), .keeps_constraints = true, .in_full = true},
      {.cost = 4.5,
       .duration = std::chrono::seconds(30),
       .broken_constraints = {{BrokenConstraint::Kind::kBudget, 0.125}},
       .in_full = true}};
  response.ties = {{.workers = 2, .parameter_servers = 2}};
  response.untried_gain_bound = 0.25;
  return response;
}

TEST(RecommendationTextTest, HasColumnsForWhatThereIsToTell) {
  EXPECT_EQ(RecommendationText(WithOutcomes()),
            "Because.\n"
            "\n"
            "    workers  servers  examples/s    95% interval  speed-up  efficiency     time  "
            "cost, EUR  step p50  bottleneck                  misses\n"
            "->        1        1       100.0  98.00 .. 102.0     1.000      100.0%  60.00 s      "
            "3.000  64.93 ms  computation of the workers\n"
            "=         2        2       190.0  186.2 .. 193.8     1.900       95.0%  30.00 s      "
            "4.500  64.93 ms  computation of the workers  budget by "
            "12.5%\n"
            "= is as good within the intervals.\n"
            "2 of 20 choices were simulated: by the links, the processors or the curve the others "
            "cannot win (links and processors alone would leave room "
            "for 25.0%).\n");
}

TEST(RecommendationTextTest, MarksTheNearestWhereThereIsNoRecommendation) {
  RecommendWorkersResponse response = WithOutcomes();
  response.workers = 0;
  response.ties.clear();
  response.nearest = NearestChoice{.workers = 2, .parameter_servers = 2};
  const std::string text = RecommendationText(response);
  EXPECT_THAT(text, HasSubstr("\n->        2 "));
  EXPECT_THAT(text, HasSubstr("\n-> comes nearest to the constraints.\n"));
}

TEST(RecommendationTextTest, MarksRowsThatWereOnlyTried) {
  RecommendWorkersResponse response = WithOutcomes();
  response.frontier_outcomes[1].in_full = false;
  const std::string text = RecommendationText(response);
  EXPECT_THAT(text, HasSubstr("      ~190.0  "));
  EXPECT_THAT(text, HasSubstr("       100.0  "));
  EXPECT_THAT(text, HasSubstr("\n~ was simulated with fewer replications"));
}

TEST(RecommendationTextTest, WhatWeakensTheAnswerStandsBelow) {
  RecommendWorkersResponse response = WithOutcomes();
  response.frontier[1].warning = "the start still shows";
  EXPECT_THAT(RecommendationText(response),
              HasSubstr("\nwarning (2 workers): the start still shows\n"));
}

}  // namespace
}  // namespace stepcast::client::recommendation_table_test
