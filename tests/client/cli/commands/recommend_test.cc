#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "client/cli/texts/answer_texts.h"

#include "tests/client/support/text_proto.h"

namespace stepcast::client::recommend_test {
namespace {

using ::testing::HasSubstr;

v1::Prediction Row(int32_t workers, double examples, v1::Operation::Resource bottleneck,
                   const std::string& warning = "") {
  auto row = Proto<v1::Prediction>(R"pb(
    scenario { parameter_servers { servers: 1 } }
    confidence_interval { level: 0.95 }
    step_time { p50 { nanos: 64930000 } }
    bottleneck_index: 1)pb");
  row.mutable_scenario()->set_workers(workers);
  row.set_examples_per_second(examples);
  row.mutable_confidence_interval()->set_lower(examples * 0.98);
  row.mutable_confidence_interval()->set_upper(examples * 1.02);
  row.set_speedup(examples / 100);
  row.set_scaling_efficiency(examples / 100 / workers);
  row.set_bottleneck(bottleneck);
  if (!warning.empty()) row.add_warnings()->set_message(warning);
  return row;
}

v1::RecommendWorkersResponse Of(const std::string& text,
                                const std::vector<v1::Prediction>& frontier) {
  auto response = Proto<v1::RecommendWorkersResponse>(text);
  *response.mutable_frontier() = ListOf(frontier);
  return response;
}

TEST(RecommendationTextTest, MarksTheChosenRow) {
  const v1::RecommendWorkersResponse response =
      Of(R"pb(workers: 2 parameter_servers: 1 reason: "2 workers give the most.")pb",
         {Row(1, 100, v1::Operation::WORKER), Row(2, 190, v1::Operation::WORKER)});
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
  const v1::RecommendWorkersResponse response = Of(
      R"pb(infeasible_reason: "at most 0.4 is reached")pb", {Row(1, 100, v1::Operation::WORKER)});
  const std::string text = RecommendationText(response);
  EXPECT_EQ(text.substr(0, text.find('\n')), "No recommendation: at most 0.4 is reached");
  EXPECT_EQ(text.find("->"), std::string::npos);
}

v1::RecommendWorkersResponse WithOutcomes() {
  v1::RecommendWorkersResponse response =
      Of(R"pb(
           workers: 1
           parameter_servers: 1
           reason: "Because."
           currency_code: "EUR"
           choices: 20
           frontier_outcomes {
             cost: 3
             duration { seconds: 60 }
             keeps_constraints: true
             in_full: true
           }
           frontier_outcomes {
             cost: 4.5
             duration { seconds: 30 }
             broken_constraints { kind: BUDGET missed_by: 0.125 }
             in_full: true
           }
           ties { workers: 2 parameter_servers: 2 }
           untried_gain_bound: 0.25)pb",
         {Row(1, 100, v1::Operation::WORKER), Row(2, 190, v1::Operation::WORKER)});
  response.mutable_frontier(1)->mutable_scenario()->mutable_parameter_servers()->set_servers(2);
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
            "= is as good within the intervals, and to 2 %.\n"
            "2 of 20 choices were simulated: by the links, the processors or the curve the others "
            "cannot win (links and processors alone would leave room "
            "for 25.0%).\n");
}

TEST(RecommendationTextTest, MarksTheNearestWhereThereIsNoRecommendation) {
  v1::RecommendWorkersResponse response = WithOutcomes();
  response.set_workers(0);
  response.clear_ties();
  *response.mutable_nearest() = Proto<v1::NearestChoice>("workers: 2 parameter_servers: 2");
  const std::string text = RecommendationText(response);
  EXPECT_THAT(text, HasSubstr("\n->        2 "));
  EXPECT_THAT(text, HasSubstr("\n-> comes nearest to the constraints.\n"));
}

TEST(RecommendationTextTest, NamesEveryConstraint) {
  v1::RecommendWorkersResponse response = WithOutcomes();
  for (const auto& [kind, name] :
       {std::pair(v1::BrokenConstraint::DEADLINE, "deadline by 12.5%"),
        std::pair(v1::BrokenConstraint::MIN_SCALING_EFFICIENCY, "efficiency by 12.5%")}) {
    response.mutable_frontier_outcomes(1)->mutable_broken_constraints(0)->set_kind(kind);
    EXPECT_THAT(RecommendationText(response), HasSubstr(name));
  }
}

TEST(RecommendationTextTest, MarksRowsThatWereOnlyTried) {
  v1::RecommendWorkersResponse response = WithOutcomes();
  response.mutable_frontier_outcomes(1)->set_in_full(false);
  const std::string text = RecommendationText(response);
  EXPECT_THAT(text, HasSubstr("      ~190.0  "));
  EXPECT_THAT(text, HasSubstr("       100.0  "));
  EXPECT_THAT(text, HasSubstr("\n~ was simulated with fewer replications"));
}

TEST(RecommendationTextTest, WhatWeakensTheAnswerStandsBelow) {
  v1::RecommendWorkersResponse response = WithOutcomes();
  response.mutable_frontier(1)->add_warnings()->set_message("the start still shows");
  EXPECT_THAT(RecommendationText(response),
              HasSubstr("\nwarning (2 workers): the start still shows\n"));
}

}  // namespace
}  // namespace stepcast::client::recommend_test
