#include "server/convert/recommendation_convert.h"

#include <gtest/gtest.h>

namespace stepcast::server {
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
}

TEST(RecommendationConvertTest, UnsetConstraintsStayUnset) {
  const RecommendationDraft draft = FromWire(v1::RecommendWorkersRequest()).draft;
  EXPECT_EQ(draft.objective, Objective::kKnee);
  EXPECT_FALSE(draft.min_workers || draft.max_workers || draft.max_parameter_servers || draft.deadline_seconds || draft.examples || draft.budget);
  EXPECT_FALSE(draft.min_scaling_efficiency || draft.prices || draft.current);
}

TEST(RecommendationConvertTest, ARecommendationCarriesEverything) {
  RecommendWorkersAnswer answer{.context = {.options = {.seed = 42}, .profile_digest = "digest", .engine_seconds = 1.5}};
  answer.answer = {.workers = 4,
                   .parameter_servers = 2,
                   .prediction = Prediction{.scenario = {.workers = 4}},
                   .reason = "because",
                   .frontier = {Prediction{.scenario = {.workers = 4}}},
                   .infeasible_reason = "not so"};
  const v1::RecommendWorkersResponse wire = ToWire(answer);
  EXPECT_EQ(wire.workers(), 4);
  EXPECT_EQ(wire.parameter_servers(), 2);
  EXPECT_EQ(wire.prediction().scenario().workers(), 4);
  EXPECT_EQ(wire.reason(), "because");
  EXPECT_EQ(wire.frontier_size(), 1);
  EXPECT_EQ(wire.infeasible_reason(), "not so");
  EXPECT_EQ(wire.options().seed(), 42U);
  EXPECT_EQ(wire.profile_digest(), "digest");
}

}  // namespace
}  // namespace stepcast::server
