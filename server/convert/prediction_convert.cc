#include "server/convert/prediction_convert.h"

#include <utility>

#include "absl/strings/str_cat.h"

#include "server/convert/enum_table.h"
#include "server/convert/profile_convert.h"
#include "server/convert/scenario_convert.h"

namespace stepcast::server {

namespace {

// Of any of the requests, whose `source` is the same.
template <typename Request>
ProfileSource SourceOf(const Request& wire) {
  if (wire.has_inline_profile()) return FromWire(wire.inline_profile());
  if (wire.has_profile()) return wire.profile();
  return std::monostate();
}

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

v1::ConfidenceInterval ToWire(const Interval& interval) {
  v1::ConfidenceInterval wire;
  wire.set_lower(interval.lower);
  wire.set_upper(interval.upper);
  wire.set_level(interval.level);
  return wire;
}

v1::StepTime ToWire(const StepTime& step_time) {
  v1::StepTime wire;
  *wire.mutable_mean() = DurationOf(step_time.mean);
  *wire.mutable_p50() = DurationOf(step_time.p50);
  *wire.mutable_p95() = DurationOf(step_time.p95);
  *wire.mutable_p99() = DurationOf(step_time.p99);
  return wire;
}

v1::ResourceUtilization ToWire(const ResourceUtilization& utilization) {
  v1::ResourceUtilization wire;
  wire.set_resource(WireOf(kResources, utilization.resource));
  wire.set_parameter_server(utilization.parameter_server);
  wire.set_fraction(utilization.fraction);
  return wire;
}

v1::SimulationStatistics ToWire(const SimulationStatistics& simulation, double engine_seconds) {
  v1::SimulationStatistics wire;
  wire.set_simulated_operations(simulation.simulated_operations);
  wire.set_engine_seconds(engine_seconds);
  wire.set_engine_path(simulation.engine_path);
  return wire;
}

v1::TransferOrderResult ToWire(const OrderResult& order, double speedup_bound) {
  v1::TransferOrderResult wire;
  wire.set_method(WireOf(kOrderMethods, order.method));
  for (const RankedTransfer& transfer : order.transfers) {
    v1::RankedTransfer& ranked = *wire.add_transfers();
    ranked.set_name(transfer.name);
    ranked.set_rank(transfer.rank);
    ranked.set_size_bytes(transfer.size_bytes);
  }
  wire.set_makespan_ns(order.makespan_ns);
  wire.set_scheduling_efficiency(order.scheduling_efficiency);
  wire.set_straggler_effect(order.straggler_effect);
  wire.set_steps_per_second(order.steps_per_second);
  wire.set_examples_per_second(order.examples_per_second);
  wire.set_speedup_bound(speedup_bound);
  *wire.mutable_confidence_interval() = ToWire(order.confidence_interval);
  return wire;
}

}  // namespace

PredictThroughputCall FromWire(const v1::PredictThroughputRequest& wire) {
  PredictThroughputCall call{.source = SourceOf(wire)};
  FaultList faults;
  ThroughputDraft& draft = call.draft;
  for (const v1::Scenario& scenario : wire.scenarios()) {
    draft.scenarios.push_back(FromWire(scenario, absl::StrCat("scenarios[", draft.scenarios.size(), "]"), faults));
  }
  draft.worker_counts = {wire.worker_counts().begin(), wire.worker_counts().end()};
  if (wire.has_scenario()) draft.scenario = FromWire(wire.scenario(), "scenario", faults);
  draft.options = FromWire(wire.options(), "options", faults);
  call.faults = std::move(faults).Take();
  return call;
}

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

OptimizeOrderCall FromWire(const v1::OptimizeOrderRequest& wire) {
  OptimizeOrderCall call{.source = SourceOf(wire)};
  FaultList faults;
  OrderDraft& draft = call.draft;
  draft.scenario = FromWire(wire.scenario(), "scenario", faults);
  draft.options = FromWire(wire.options(), "options", faults);
  for (int i = 0; i < wire.methods_size(); ++i) {
    const std::string path = absl::StrCat("methods[", i, "]");
    if (wire.methods(i) == v1::ORDER_METHOD_UNSPECIFIED) faults.Add(path, "0: a method must be named");
    if (const auto method = CoreOf(kOrderMethods, wire.methods(i), path, faults)) draft.methods.push_back(*method);
  }
  if (wire.has_time_budget()) call.time_budget_seconds = FromWire(wire.time_budget(), "time_budget", faults);
  call.faults = std::move(faults).Take();
  return call;
}

GenerateTraceCall FromWire(const v1::GenerateTraceRequest& wire) {
  GenerateTraceCall call{.source = SourceOf(wire)};
  FaultList faults;
  call.draft.scenario = FromWire(wire.scenario(), "scenario", faults);
  call.draft.options = FromWire(wire.options(), "options", faults);
  call.faults = std::move(faults).Take();
  return call;
}

v1::Prediction ToWire(const Prediction& prediction) {
  v1::Prediction wire;
  *wire.mutable_scenario() = ToWire(prediction.scenario);
  wire.set_examples_per_second(prediction.examples_per_second);
  wire.set_steps_per_second(prediction.steps_per_second);
  *wire.mutable_confidence_interval() = ToWire(prediction.confidence_interval);
  *wire.mutable_step_time() = ToWire(prediction.step_time);
  wire.set_speedup(prediction.speedup);
  wire.set_scaling_efficiency(prediction.scaling_efficiency);
  for (const ResourceUtilization& utilization : prediction.utilization) *wire.add_utilization() = ToWire(utilization);
  wire.set_bottleneck(WireOf(kResources, prediction.bottleneck.resource));
  wire.set_bottleneck_parameter_server(prediction.bottleneck.parameter_server);
  wire.set_exposed_communication_fraction(prediction.exposed_communication_fraction);
  wire.set_steady_state(prediction.steady_state);
  wire.set_warning(prediction.warning);
  wire.set_replications(prediction.replications);
  return wire;
}

v1::PredictThroughputResponse ToWire(const PredictThroughputAnswer& answer) {
  v1::PredictThroughputResponse wire;
  for (const Prediction& prediction : answer.answer.predictions) *wire.add_predictions() = ToWire(prediction);
  *wire.mutable_simulation() = ToWire(answer.answer.simulation, answer.context.engine_seconds);
  *wire.mutable_options() = ToWire(answer.context.options);
  wire.set_seed(answer.context.options.seed);
  wire.set_profile_digest(answer.context.profile_digest);
  wire.set_engine_version(kEngineVersion);
  return wire;
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

v1::OptimizeOrderResponse ToWire(const OptimizeOrderAnswer& answer) {
  v1::OptimizeOrderResponse wire;
  const OrderAnswer& orders = answer.answer;
  for (const OrderResult& order : orders.orders) *wire.add_orders() = ToWire(order, orders.speedup_bound);
  wire.set_chosen(WireOf(kOrderMethods, orders.chosen));
  wire.set_upper_makespan_ns(orders.upper_makespan_ns);
  wire.set_lower_makespan_ns(orders.lower_makespan_ns);
  wire.set_speedup_bound(orders.speedup_bound);
  wire.set_transfers_without_measured_time(orders.transfers_without_measured_time);
  wire.set_graph_steps_per_second(orders.graph_steps_per_second);
  wire.set_random_steps_per_second(orders.random_steps_per_second);
  *wire.mutable_simulation() = ToWire(orders.simulation, answer.context.engine_seconds);
  wire.set_profile_digest(answer.context.profile_digest);
  wire.set_engine_version(kEngineVersion);
  return wire;
}

}  // namespace stepcast::server
