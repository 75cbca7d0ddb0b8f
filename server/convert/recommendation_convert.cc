#include "server/convert/recommendation_convert.h"

#include <utility>

#include "server/convert/enum_table.h"
#include "server/convert/prediction_convert.h"
#include "server/convert/profile_source.h"
#include "server/convert/scenario_convert.h"

namespace stepcast::server {

namespace {

RecommendationDraft::Prices PricesOf(const v1::Prices& wire) {
  return {.worker_hour = wire.worker_hour(), .parameter_server_hour = wire.parameter_server_hour(), .currency_code = wire.currency_code()};
}

void ReadConstraints(const v1::Constraints& wire, RecommendationDraft& draft, FaultList& faults) {
  if (wire.has_min_workers()) draft.min_workers = wire.min_workers();
  if (wire.has_max_workers()) draft.max_workers = wire.max_workers();
  if (wire.has_max_parameter_servers()) draft.max_parameter_servers = wire.max_parameter_servers();
  if (wire.has_deadline()) draft.deadline_seconds = FromWire(wire.deadline(), "constraints.deadline", faults);
  if (wire.has_examples()) draft.examples = wire.examples();
  if (wire.has_budget()) draft.budget = wire.budget();
  if (wire.has_min_scaling_efficiency()) draft.min_scaling_efficiency = wire.min_scaling_efficiency();
}

}  // namespace

RecommendWorkersCall FromWire(const v1::RecommendWorkersRequest& wire) {
  RecommendWorkersCall call{.source = SourceOf(wire)};
  FaultList faults;
  RecommendationDraft& draft = call.draft;
  draft.scenario = FromWire(wire.scenario(), "scenario", faults);
  draft.options = FromWire(wire.options(), "options", faults);
  draft.objective = CoreOf(kObjectives, wire.objective(), "objective", faults).value_or(Objective::kKnee);
  ReadConstraints(wire.constraints(), draft, faults);
  if (wire.has_prices()) draft.prices = PricesOf(wire.prices());
  if (wire.has_current()) draft.current = {.workers = wire.current().workers(), .rescale_seconds = wire.current().rescale_seconds()};
  call.faults = std::move(faults).Take();
  return call;
}

v1::RecommendWorkersResponse ToWire(const RecommendWorkersAnswer& answer) {
  v1::RecommendWorkersResponse wire;
  const Recommendation& recommendation = answer.answer;
  wire.set_workers(recommendation.workers);
  wire.set_parameter_servers(recommendation.parameter_servers);
  if (recommendation.prediction) *wire.mutable_prediction() = ToWire(*recommendation.prediction);
  wire.set_reason(recommendation.reason);
  for (const Prediction& prediction : recommendation.frontier) *wire.add_frontier() = ToWire(prediction);
  wire.set_infeasible_reason(recommendation.infeasible_reason);
  *wire.mutable_simulation() = ToWire(recommendation.simulation, answer.context.engine_seconds);
  *wire.mutable_options() = ToWire(answer.context.options);
  wire.set_profile_digest(answer.context.profile_digest);
  wire.set_engine_version(kEngineVersion);
  return wire;
}

}  // namespace stepcast::server
