#include "client/src/convert/recommendation_proto.h"

#include "client/src/convert/duration_proto.h"
#include "client/src/convert/prediction_proto.h"
#include "client/src/convert/repeated.h"
#include "client/src/convert/scenario_proto.h"

namespace stepcast::client {

static_assert(static_cast<int>(Objective::kMaxThroughput) == v1::RecommendWorkersRequest::MAX_THROUGHPUT);
static_assert(static_cast<int>(Objective::kMinCost) == v1::RecommendWorkersRequest::MIN_COST);
static_assert(static_cast<int>(Objective::kMinTime) == v1::RecommendWorkersRequest::MIN_TIME);
static_assert(static_cast<int>(Objective::kKnee) == v1::RecommendWorkersRequest::KNEE);

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
}

}  // namespace

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
}

}  // namespace stepcast::client
