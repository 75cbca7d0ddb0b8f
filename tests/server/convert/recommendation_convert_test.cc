#include "server/convert/recommendation_convert.h"

#include <gtest/gtest.h>

namespace stepcast::server::recommendation_convert_test {
namespace {

TEST(RecommendationConvertTest, RecommendWorkersCarriesEveryConstraint) {
  v1::RecommendWorkersRequest wire;
  wire.set_objective(v1::RecommendWorkersRequest::MIN_COST);
  v1::Constraints& constraints = *wire.mutable_constraints();
  constraints.set_min_workers(1);
  constraints.set_max_workers(2);
  constraints.set_max_parameter_servers(3);
  constraints.mutable_deadline()->set_seconds(4);
  constraints.set_examples(5);
  constraints.set_budget(6);
  constraints.set_min_scaling_efficiency(0.7);
  wire.mutable_prices()->set_worker_hour(8);
  wire.mutable_prices()->set_parameter_server_hour(9);
  wire.mutable_prices()->set_currency_code("EUR");
  wire.mutable_current()->set_workers(10);
  wire.mutable_current()->set_rescale_seconds(11);
  wire.mutable_current()->set_parameter_servers(12);
  const RecommendationDraft draft = FromWire(wire).draft;
  EXPECT_EQ(draft.objective, Objective::kMinCost);
  EXPECT_EQ(draft.min_workers, 1);
  EXPECT_EQ(draft.max_workers, 2);
  EXPECT_EQ(draft.max_parameter_servers, 3);
  EXPECT_EQ(draft.deadline_seconds, 4);
  EXPECT_EQ(draft.examples, 5);
  EXPECT_EQ(draft.budget, 6);
  EXPECT_EQ(draft.min_scaling_efficiency, 0.7);
  EXPECT_EQ(draft.prices->worker_hour, 8);
  EXPECT_EQ(draft.prices->parameter_server_hour, 9);
  EXPECT_EQ(draft.prices->currency_code, "EUR");
  EXPECT_EQ(draft.current->workers, 10);
  EXPECT_EQ(draft.current->rescale_seconds, 11);
  EXPECT_EQ(draft.current->parameter_servers, 12);
}

TEST(RecommendationConvertTest, UnsetConstraintsStayUnset) {
  const RecommendationDraft draft = FromWire(v1::RecommendWorkersRequest()).draft;
  EXPECT_EQ(draft.objective, Objective::kKnee);
  EXPECT_FALSE(draft.min_workers || draft.max_workers || draft.max_parameter_servers ||
               draft.deadline_seconds || draft.examples || draft.budget);
  EXPECT_FALSE(draft.min_scaling_efficiency || draft.prices || draft.current);
}

TEST(RecommendationConvertTest, WithoutExamplesThereIsNoCostAndNoDuration) {
  const v1::RecommendWorkersResponse wire =
      ToWire(RecommendWorkersAnswer{.answer = {.outcomes = {Outcome{}}}, .context = {}});
  EXPECT_FALSE(wire.has_cost() || wire.has_duration() || wire.has_nearest());
  EXPECT_FALSE(wire.frontier_outcomes(0).has_cost() || wire.frontier_outcomes(0).has_duration());
  EXPECT_TRUE(wire.frontier_outcomes(0).keeps_constraints());
}

TEST(RecommendationConvertTest, ARecommendationCarriesEverything) {
  RecommendWorkersAnswer answer{
      .context = {.options = {.seed = 42}, .profile_digest = "digest", .engine_seconds = 1.5}};
  const Outcome outcome{.duration_seconds = 90.5,
                        .cost = 3,
                        .broken = {{.kind = ConstraintKind::kBudget, .missed_by = 0.25}},
                        .in_full = true};
  answer.answer = {
      .workers = 4,
      .parameter_servers = 2,
      .prediction = Prediction{.scenario = {.workers = 4}},
      .outcome = {.duration_seconds = 60, .cost = 2},
      .reason = "because",
      .frontier = {Prediction{.scenario = {.workers = 4}}},
      .outcomes = {outcome},
      .ties = {{.workers = 5, .parameter_servers = 6}},
      .warnings = {{.reason = Warning::Reason::kNothingRandom, .message = "4 workers: fixed"}},
      .nearest = NearestChoice{.prediction = {.scenario = {.workers = 7,
                                                           .communication =
                                                               ParameterServers{.servers = 8}}},
                               .outcome = outcome},
      .infeasible_reason = "not so",
      .currency_code = "EUR",
      .choices = 99,
      .untried_gain_bound = 0.125};
  const v1::RecommendWorkersResponse wire = ToWire(answer);
  EXPECT_EQ(wire.workers(), 4);
  EXPECT_EQ(wire.parameter_servers(), 2);
  EXPECT_EQ(wire.prediction().scenario().workers(), 4);
  EXPECT_EQ(wire.reason(), "because");
  EXPECT_EQ(wire.frontier_size(), 1);
  EXPECT_EQ(wire.infeasible_reason(), "not so");
  EXPECT_EQ(wire.cost(), 2);
  EXPECT_EQ(wire.duration().seconds(), 60);
  ASSERT_EQ(wire.frontier_outcomes_size(), 1);
  for (const v1::FrontierOutcome& each : {wire.frontier_outcomes(0), wire.nearest().outcome()}) {
    EXPECT_EQ(each.cost(), 3);
    EXPECT_EQ(each.duration().nanos(), 500'000'000);
    EXPECT_FALSE(each.keeps_constraints());
    EXPECT_TRUE(each.in_full());
    ASSERT_EQ(each.broken_constraints_size(), 1);
    EXPECT_EQ(each.broken_constraints(0).kind(), v1::BrokenConstraint::BUDGET);
    EXPECT_EQ(each.broken_constraints(0).missed_by(), 0.25);
  }
  ASSERT_EQ(wire.ties_size(), 1);
  EXPECT_EQ(wire.ties(0).workers(), 5);
  EXPECT_EQ(wire.ties(0).parameter_servers(), 6);
  EXPECT_EQ(wire.nearest().workers(), 7);
  EXPECT_EQ(wire.nearest().parameter_servers(), 8);
  EXPECT_EQ(wire.nearest().prediction().scenario().workers(), 7);
  ASSERT_EQ(wire.warnings_size(), 1);
  EXPECT_EQ(wire.warnings(0).reason(), v1::Warning::NOTHING_RANDOM);
  EXPECT_EQ(wire.warnings(0).message(), "4 workers: fixed");
  EXPECT_EQ(wire.currency_code(), "EUR");
  EXPECT_EQ(wire.choices(), 99);
  EXPECT_EQ(wire.untried_gain_bound(), 0.125);
  EXPECT_EQ(wire.options().seed(), 42U);
  EXPECT_EQ(wire.profile_digest(), "digest");
}

}  // namespace
}  // namespace stepcast::server::recommendation_convert_test
