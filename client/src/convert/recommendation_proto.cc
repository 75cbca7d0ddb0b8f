#include "client/src/convert/recommendation_proto.h"

#include "client/src/convert/duration_proto.h"
#include "client/src/convert/prediction_proto.h"
#include "client/src/convert/repeated.h"
#include "client/src/convert/scenario_proto.h"

namespace stepcast::client {

static_assert(static_cast<int>(Objective::kMaxThroughput) ==
              v1::RecommendWorkersRequest::MAX_THROUGHPUT);
static_assert(static_cast<int>(Objective::kMinCost) == v1::RecommendWorkersRequest::MIN_COST);
static_assert(static_cast<int>(Objective::kMinTime) == v1::RecommendWorkersRequest::MIN_TIME);
static_assert(static_cast<int>(Objective::kKnee) == v1::RecommendWorkersRequest::KNEE);
static_assert(static_cast<int>(BrokenConstraint::Kind::kDeadline) ==
              v1::BrokenConstraint::DEADLINE);
static_assert(static_cast<int>(BrokenConstraint::Kind::kBudget) == v1::BrokenConstraint::BUDGET);
static_assert(static_cast<int>(BrokenConstraint::Kind::kMinScalingEfficiency) ==
              v1::BrokenConstraint::MIN_SCALING_EFFICIENCY);

namespace {

void ToProto(const Constraints& from, v1::Constraints& to) {
  if (from.min_workers) to.set_min_workers(*from.min_workers);
  if (from.max_workers) to.set_max_workers(*from.max_workers);
  if (from.max_parameter_servers) to.set_max_parameter_servers(*from.max_parameter_servers);
  if (from.deadline) client::ToProto(*from.deadline, *to.mutable_deadline());
  if (from.examples) to.set_examples(*from.examples);
  if (from.budget) to.set_budget(*from.budget);
  if (from.min_scaling_efficiency) to.set_min_scaling_efficiency(*from.min_scaling_efficiency);
}

void ToProto(const Prices& from, v1::Prices& to) {
  to.set_worker_hour(from.worker_hour);
  to.set_parameter_server_hour(from.parameter_server_hour);
  to.set_currency_code(from.currency_code);
}

void ToProto(const CurrentAllocation& from, v1::CurrentAllocation& to) {
  to.set_workers(from.workers);
  to.set_rescale_seconds(from.rescale_seconds);
  if (from.parameter_servers) to.set_parameter_servers(*from.parameter_servers);
}

}  // namespace

void ToProto(const BrokenConstraint& from, v1::BrokenConstraint& to) {
  to.set_kind(static_cast<v1::BrokenConstraint::Kind>(from.kind));
  to.set_missed_by(from.missed_by);
}

void FromProto(const v1::BrokenConstraint& from, BrokenConstraint& to) {
  to.kind = static_cast<BrokenConstraint::Kind>(from.kind());
  to.missed_by = from.missed_by();
}

void ToProto(const FrontierOutcome& from, v1::FrontierOutcome& to) {
  if (from.cost) to.set_cost(*from.cost);
  if (from.duration) ToProto(*from.duration, *to.mutable_duration());
  to.set_keeps_constraints(from.keeps_constraints);
  ToProto(from.broken_constraints, *to.mutable_broken_constraints());
  to.set_in_full(from.in_full);
}

void FromProto(const v1::FrontierOutcome& from, FrontierOutcome& to) {
  if (from.has_cost()) to.cost = from.cost();
  if (from.has_duration()) FromProto(from.duration(), to.duration.emplace());
  to.keeps_constraints = from.keeps_constraints();
  FromProto(from.broken_constraints(), to.broken_constraints);
  to.in_full = from.in_full();
}

void ToProto(const Tie& from, v1::Tie& to) {
  to.set_workers(from.workers);
  to.set_parameter_servers(from.parameter_servers);
}

void FromProto(const v1::Tie& from, Tie& to) {
  to.workers = from.workers();
  to.parameter_servers = from.parameter_servers();
}

void ToProto(const NearestChoice& from, v1::NearestChoice& to) {
  to.set_workers(from.workers);
  to.set_parameter_servers(from.parameter_servers);
  if (from.prediction) ToProto(*from.prediction, *to.mutable_prediction());
  if (from.outcome) ToProto(*from.outcome, *to.mutable_outcome());
}

void FromProto(const v1::NearestChoice& from, NearestChoice& to) {
  to.workers = from.workers();
  to.parameter_servers = from.parameter_servers();
  if (from.has_prediction()) FromProto(from.prediction(), to.prediction.emplace());
  if (from.has_outcome()) FromProto(from.outcome(), to.outcome.emplace());
}

void ToProto(const RecommendWorkersRequest& from, v1::RecommendWorkersRequest& to) {
  ToProto(from.source, to);
  ToProto(from.scenario, *to.mutable_scenario());
  ToProto(from.options, *to.mutable_options());
  to.set_objective(static_cast<v1::RecommendWorkersRequest::Objective>(from.objective));
  if (from.constraints) ToProto(*from.constraints, *to.mutable_constraints());
  if (from.prices) ToProto(*from.prices, *to.mutable_prices());
  if (from.current) ToProto(*from.current, *to.mutable_current());
}

void ToProto(const RecommendWorkersResponse& from, v1::RecommendWorkersResponse& to) {
  to.set_workers(from.workers);
  to.set_parameter_servers(from.parameter_servers);
  if (from.prediction) ToProto(*from.prediction, *to.mutable_prediction());
  if (from.cost) to.set_cost(*from.cost);
  if (from.duration) ToProto(*from.duration, *to.mutable_duration());
  to.set_reason(from.reason);
  ToProto(from.frontier, *to.mutable_frontier());
  to.set_infeasible_reason(from.infeasible_reason);
  to.set_currency_code(from.currency_code);
  ToProto(from.simulation, *to.mutable_simulation());
  ToProto(from.options, *to.mutable_options());
  to.set_profile_digest(from.profile_digest);
  to.set_engine_version(from.engine_version);
  ToProto(from.frontier_outcomes, *to.mutable_frontier_outcomes());
  ToProto(from.ties, *to.mutable_ties());
  if (from.nearest) ToProto(*from.nearest, *to.mutable_nearest());
  to.set_choices(from.choices);
  to.set_untried_gain_bound(from.untried_gain_bound);
  for (const std::string& warning : from.warnings) to.add_warnings(warning);
}

void FromProto(const v1::RecommendWorkersResponse& from, RecommendWorkersResponse& to) {
  to.workers = from.workers();
  to.parameter_servers = from.parameter_servers();
  if (from.has_prediction()) FromProto(from.prediction(), to.prediction.emplace());
  if (from.has_cost()) to.cost = from.cost();
  if (from.has_duration()) FromProto(from.duration(), to.duration.emplace());
  to.reason = from.reason();
  FromProto(from.frontier(), to.frontier);
  to.infeasible_reason = from.infeasible_reason();
  to.currency_code = from.currency_code();
  FromProto(from.simulation(), to.simulation);
  FromProto(from.options(), to.options);
  to.profile_digest = from.profile_digest();
  to.engine_version = from.engine_version();
  FromProto(from.frontier_outcomes(), to.frontier_outcomes);
  FromProto(from.ties(), to.ties);
  if (from.has_nearest()) FromProto(from.nearest(), to.nearest.emplace());
  to.choices = from.choices();
  to.untried_gain_bound = from.untried_gain_bound();
  to.warnings.assign(from.warnings().begin(), from.warnings().end());
}

}  // namespace stepcast::client
