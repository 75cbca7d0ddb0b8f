#include <algorithm>
#include <cmath>
#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"

#include "server/convert/enum_table.h"
#include "server/convert/prediction_convert.h"
#include "server/convert/scenario_convert.h"
#include "server/convert/wire_error.h"

namespace stepcast::server {

namespace {

CurrentAllocation CurrentOf(const v1::CurrentAllocation& wire) {
  CurrentAllocation current{.workers = wire.workers(), .rescale_seconds = wire.rescale_seconds()};
  if (wire.has_parameter_servers()) current.parameter_servers = wire.parameter_servers();
  return current;
}

void ReadConstraints(const v1::Constraints& wire, RecommendationDraft& draft, FaultList& faults) {
  if (wire.has_min_workers()) draft.min_workers = wire.min_workers();
  if (wire.has_max_workers()) draft.max_workers = wire.max_workers();
  draft.worker_counts.assign(wire.worker_counts().begin(), wire.worker_counts().end());
  if (wire.has_max_parameter_servers()) draft.max_parameter_servers = wire.max_parameter_servers();
  if (wire.has_deadline())
    draft.deadline_seconds = FromWire(wire.deadline(), "constraints.deadline", faults);
  if (wire.has_examples()) draft.examples = wire.examples();
  if (wire.has_budget()) draft.budget = wire.budget();
  if (wire.has_min_scaling_efficiency())
    draft.min_scaling_efficiency = wire.min_scaling_efficiency();
}

v1::FrontierOutcome OutcomeToWire(const Outcome& outcome) {
  v1::FrontierOutcome wire;
  if (outcome.duration_seconds && *outcome.duration_seconds <= kLongestTrainingSeconds) {
    *wire.mutable_duration() = DurationOf(*outcome.duration_seconds);
    if (outcome.cost) wire.set_cost(*outcome.cost);
  }
  wire.set_keeps_constraints(outcome.broken.empty());
  for (const BrokenConstraint& broken : outcome.broken) {
    v1::BrokenConstraint& constraint = *wire.add_broken_constraints();
    constraint.set_kind(WireOf(kConstraintKinds, broken.kind));
    constraint.set_missed_by(broken.missed_by);
  }
  wire.set_in_full(outcome.in_full);
  return wire;
}

v1::NearestChoice NearestToWire(const NearestChoice& nearest) {
  v1::NearestChoice wire;
  wire.set_workers(nearest.prediction.scenario.workers);
  wire.set_parameter_servers(nearest.prediction.scenario.server_count());
  *wire.mutable_prediction() = ToWire(nearest.prediction);
  *wire.mutable_outcome() = OutcomeToWire(nearest.outcome);
  return wire;
}

}  // namespace

RecommendWorkersCall FromWire(const v1::RecommendWorkersRequest& wire) {
  RecommendWorkersCall call{.source = SourceOf(wire)};
  FaultList faults;
  RecommendationDraft& draft = call.draft;
  draft.scenario = FromWire(wire.scenario(), "scenario", faults);
  draft.options = FromWire(wire.options(), "options", faults);
  draft.objective =
      CoreOf(kObjectives, wire.objective(), "objective", faults).value_or(Objective::kKnee);
  ReadConstraints(wire.constraints(), draft, faults);
  if (wire.has_prices()) draft.prices = PricesOf(wire.prices());
  if (wire.has_current()) draft.current = CurrentOf(wire.current());
  if (wire.has_failures()) draft.failures = FailuresOf(wire.failures(), "failures", faults);
  call.faults = std::move(faults).Take();
  return call;
}

v1::RecommendWorkersResponse ToWire(const RecommendWorkersAnswer& answer) {
  v1::RecommendWorkersResponse wire;
  const Recommendation& recommendation = answer.answer;
  wire.set_workers(recommendation.workers);
  wire.set_parameter_servers(recommendation.parameter_servers);
  if (recommendation.prediction) *wire.mutable_prediction() = ToWire(*recommendation.prediction);
  wire.set_workers_edge(WireOf(kChoiceEdges, recommendation.workers_edge));
  wire.set_parameter_servers_edge(WireOf(kChoiceEdges, recommendation.servers_edge));
  wire.set_reason(recommendation.reason);
  for (const Prediction& prediction : recommendation.frontier)
    *wire.add_frontier() = ToWire(prediction);
  for (const Outcome& outcome : recommendation.outcomes)
    *wire.add_frontier_outcomes() = OutcomeToWire(outcome);
  const v1::FrontierOutcome outcome = OutcomeToWire(recommendation.outcome);
  if (outcome.has_cost()) wire.set_cost(outcome.cost());
  if (outcome.has_duration()) *wire.mutable_duration() = outcome.duration();
  for (const Choice& choice : recommendation.ties) {
    v1::Tie& tie = *wire.add_ties();
    tie.set_workers(choice.workers);
    tie.set_parameter_servers(choice.parameter_servers);
  }
  if (recommendation.nearest) *wire.mutable_nearest() = NearestToWire(*recommendation.nearest);
  wire.set_infeasible_reason(recommendation.infeasible_reason);
  wire.set_currency_code(recommendation.currency_code);
  wire.set_choices(recommendation.choices);
  wire.set_untried_gain_bound(recommendation.untried_gain_bound);
  wire.set_probability_best(recommendation.probability_best);
  wire.set_expected_loss(recommendation.expected_loss);
  for (const Warning& warning : recommendation.warnings) *wire.add_warnings() = ToWire(warning);
  *wire.mutable_simulation() = ToWire(recommendation.simulation, answer.context.engine_seconds);
  *wire.mutable_options() = ToWire(answer.context.options);
  wire.set_profile_digest(answer.context.profile_digest);
  wire.set_engine_version(kEngineVersion);
  return wire;
}

namespace {

constexpr size_t kMaxNamedTransfers = 1000;

v1::OrderSpeedup WireSpeedup(const OrderSpeedup& speedup) {
  v1::OrderSpeedup wire;
  wire.set_over(WireOf(kTransferOrders, speedup.over));
  wire.set_speedup(speedup.speedup);
  if (speedup.confidence_interval.has_value())
    *wire.mutable_confidence_interval() = ToWire(*speedup.confidence_interval);
  return wire;
}

v1::OrderBaseline WireBaseline(const OrderBaseline& baseline) {
  v1::OrderBaseline wire;
  wire.set_transfer_order(WireOf(kTransferOrders, baseline.order));
  wire.set_steps_per_second(baseline.steps_per_second);
  wire.set_examples_per_second(baseline.examples_per_second);
  *wire.mutable_confidence_interval() = ToWire(baseline.confidence_interval);
  wire.set_straggler_effect(baseline.straggler_effect);
  *wire.mutable_synchronous_step_time() = ToWire(baseline.synchronous_step_time);
  wire.set_scheduling_efficiency(baseline.spread.mean_efficiency);
  wire.set_least_scheduling_efficiency(baseline.spread.least_efficiency);
  wire.set_orders(baseline.spread.orders);
  wire.set_unique_orders(baseline.spread.unique_orders);
  return wire;
}

v1::TransferOrderResult WireOrder(const OrderResult& order, double speedup_bound) {
  v1::TransferOrderResult wire;
  wire.set_method(WireOf(kOrderMethods, order.method));
  for (const RankedTransfer& transfer : order.transfers) {
    v1::RankedTransfer& ranked = *wire.add_transfers();
    ranked.set_name(transfer.name);
    ranked.set_rank(transfer.rank);
    ranked.set_size_bytes(transfer.size_bytes);
    ranked.set_parameter_server(transfer.parameter_server);
    ranked.set_server_rank(transfer.server_rank);
  }
  wire.set_makespan_ns(order.makespan_ns);
  wire.set_scheduling_efficiency(order.scheduling_efficiency);
  wire.set_straggler_effect(order.straggler_effect);
  wire.set_steps_per_second(order.steps_per_second);
  wire.set_examples_per_second(order.examples_per_second);
  wire.set_speedup_bound(speedup_bound);
  *wire.mutable_confidence_interval() = ToWire(order.confidence_interval);
  wire.set_gap(order.gap);
  wire.set_best(order.is_best);
  for (const OrderSpeedup& speedup : order.speedups) *wire.add_speedups() = WireSpeedup(speedup);
  *wire.mutable_synchronous_step_time() = ToWire(order.synchronous_step_time);
  return wire;
}

}  // namespace

OptimizeOrderCall FromWire(const v1::OptimizeOrderRequest& wire) {
  OptimizeOrderCall call{.source = SourceOf(wire)};
  FaultList faults;
  OrderDraft& draft = call.draft;
  draft.scenario = FromWire(wire.scenario(), "scenario", faults);
  draft.options = FromWire(wire.options(), "options", faults);
  for (int i = 0; i < wire.methods_size(); ++i) {
    const std::string path = absl::StrCat("methods[", i, "]");
    if (wire.methods(i) == v1::ORDER_METHOD_UNSPECIFIED)
      faults.Add(path, "0: a method must be named");
    if (const auto method = CoreOf(kOrderMethods, wire.methods(i), path, faults))
      draft.methods.push_back(*method);
  }
  draft.inference = wire.inference();
  if (wire.has_time_budget())
    call.time_budget_seconds = FromWire(wire.time_budget(), "time_budget", faults);
  call.faults = std::move(faults).Take();
  return call;
}

v1::OptimizeOrderResponse ToWire(const OptimizeOrderAnswer& answer) {
  v1::OptimizeOrderResponse wire;
  const OrderAnswer& orders = answer.answer;
  for (const OrderResult& order : orders.orders)
    *wire.add_orders() = WireOrder(order, orders.speedup_bound);
  wire.set_chosen(WireOf(kOrderMethods, orders.chosen));
  wire.set_probability_best(orders.settled.probability_best);
  wire.set_expected_loss(orders.settled.expected_loss);
  wire.set_upper_makespan_ns(orders.upper_makespan_ns);
  wire.set_lower_makespan_ns(orders.lower_makespan_ns);
  wire.set_speedup_bound(orders.speedup_bound);
  wire.set_order_lower_bound_ns(orders.order_lower_bound_ns);
  wire.set_operations(orders.operations);
  const std::vector<std::string>& unmeasured = orders.unmeasured_transfers;
  wire.set_transfers_without_measured_time(static_cast<int32_t>(unmeasured.size()));
  for (size_t i = 0; i < std::min(unmeasured.size(), kMaxNamedTransfers); ++i)
    wire.add_unmeasured_transfers(unmeasured[i]);
  for (const OrderBaseline& baseline : orders.baselines) {
    *wire.add_baselines() = WireBaseline(baseline);
    if (baseline.order == TransferOrder::kGraph)
      wire.set_graph_steps_per_second(baseline.steps_per_second);
    if (baseline.order == TransferOrder::kRandom)
      wire.set_random_steps_per_second(baseline.steps_per_second);
  }
  for (const Warning& warning : orders.warnings) *wire.add_warnings() = ToWire(warning);
  for (const Assumption& assumption : orders.assumptions)
    *wire.add_assumptions() = ToWire(assumption);
  *wire.mutable_simulation() = ToWire(orders.simulation, answer.context.engine_seconds);
  wire.set_profile_digest(answer.context.profile_digest);
  wire.set_engine_version(kEngineVersion);
  return wire;
}

v1::CommunicationGroup ToWire(const TunedGroup& group) {
  v1::CommunicationGroup wire;
  for (const std::string& name : group.operations) wire.add_operations(name);
  wire.set_size_bytes(group.size_bytes);
  wire.set_threads(group.threads);
  return wire;
}

namespace {

v1::CommunicationStrategy WireStrategy(const TunedStrategy& strategy) {
  v1::CommunicationStrategy wire;
  wire.set_method(WireOf(kTuningMethods, strategy.method));
  for (const TunedGroup& group : strategy.groups) *wire.add_groups() = ToWire(group);
  if (strategy.backward_seconds.has_value()) wire.set_backward_seconds(*strategy.backward_seconds);
  wire.set_step_seconds(strategy.prediction.step_time.mean);
  wire.set_examples_per_second(strategy.prediction.examples_per_second);
  *wire.mutable_confidence_interval() = ToWire(strategy.prediction.confidence_interval);
  wire.set_exposed_communication_seconds(strategy.prediction.collectives->exposed_seconds);
  wire.set_gain(strategy.gain.mean);
  *wire.mutable_gain_interval() = ToWire(strategy.gain.confidence_interval);
  wire.set_no_difference(strategy.gain.is_none);
  wire.set_setting(strategy.setting);
  wire.set_lower_bound_seconds(strategy.lower_bound_seconds);
  if (strategy.guarantee.has_value()) wire.set_guarantee(*strategy.guarantee);
  wire.set_guarantee_void_because(strategy.why_no_guarantee);
  wire.set_gap(strategy.gap);
  return wire;
}

// The advice of one number of workers, in either of the messages that hold it.
template <typename Wire>
void SetAdvice(const Tuning& tuning, Wire& wire) {
  for (const TunedStrategy& strategy : tuning.strategies)
    *wire.add_strategies() = WireStrategy(strategy);
  wire.set_chosen(WireOf(kTuningMethods, tuning.strategies[tuning.chosen].method));
  wire.set_reason(tuning.reason);
  wire.set_probability_best(tuning.settled.probability_best);
  wire.set_expected_loss(tuning.settled.expected_loss);
  for (const BucketCapPoint& point : tuning.curve) {
    v1::BucketCapPoint& cap = *wire.add_curve();
    cap.set_cap_bytes(point.cap_bytes);
    cap.set_step_seconds(point.step_seconds);
    cap.set_examples_per_second(point.examples_per_second);
    *cap.mutable_confidence_interval() = ToWire(point.confidence_interval);
  }
}

}  // namespace

OptimizeCommunicationCall FromWire(const v1::OptimizeCommunicationRequest& wire) {
  OptimizeCommunicationCall call{.source = SourceOf(wire)};
  FaultList faults;
  TuningDraft& draft = call.draft;
  draft.scenario = FromWire(wire.scenario(), "scenario", faults);
  draft.options = FromWire(wire.options(), "options", faults);
  draft.worker_counts.assign(wire.worker_counts().begin(), wire.worker_counts().end());
  for (int i = 0; i < wire.methods_size(); ++i) {
    const std::string path = absl::StrCat("methods[", i, "]");
    if (wire.methods(i) == v1::OptimizeCommunicationRequest::METHOD_UNSPECIFIED)
      faults.Add(path, "0: a method must be named");
    if (const auto method = CoreOf(kTuningMethods, wire.methods(i), path, faults))
      draft.methods.push_back(*method);
  }
  draft.bucket_caps_bytes.assign(wire.bucket_caps_bytes().begin(), wire.bucket_caps_bytes().end());
  if (wire.has_contention()) draft.contention = FromWire(wire.contention());
  draft.threads.assign(wire.threads().begin(), wire.threads().end());
  if (wire.has_max_groups()) draft.max_groups = wire.max_groups();
  if (wire.has_chunks()) draft.chunks = wire.chunks();
  if (wire.has_nccl_channels()) draft.nccl_channels = wire.nccl_channels();
  if (wire.has_first_bucket_bytes()) draft.first_bucket_bytes = wire.first_bucket_bytes();
  if (wire.has_time_budget())
    call.time_budget_seconds = FromWire(wire.time_budget(), "time_budget", faults);
  call.faults = std::move(faults).Take();
  return call;
}

v1::OptimizeCommunicationResponse ToWire(const OptimizeCommunicationAnswer& answer) {
  v1::OptimizeCommunicationResponse wire;
  const TuningAnswer& tuned = answer.answer;
  SetAdvice(tuned.tunings.front(), wire);
  if (tuned.has_counts) {
    for (const Tuning& tuning : tuned.tunings) {
      v1::CommunicationAdvice& advice = *wire.add_advice();
      advice.set_workers(tuning.workers);
      SetAdvice(tuning, advice);
    }
  }
  for (const LeftOutMethod& left_out : tuned.left_out) {
    v1::LeftOutMethod& method = *wire.add_left_out();
    method.set_method(WireOf(kTuningMethods, left_out.method));
    method.set_reason(left_out.reason);
  }
  wire.set_advice_changes(tuned.advice_changes);
  for (const Warning& warning : tuned.warnings) *wire.add_warnings() = ToWire(warning);
  std::vector<Assumption> told;
  for (const Tuning& tuning : tuned.tunings) {
    for (const TunedStrategy& strategy : tuning.strategies) AddAssumptions(strategy.scenario, told);
  }
  for (const Assumption& assumption : told) *wire.add_assumptions() = ToWire(assumption);
  *wire.mutable_simulation() = ToWire(tuned.simulation, answer.context.engine_seconds);
  wire.set_profile_digest(answer.context.profile_digest);
  wire.set_engine_version(kEngineVersion);
  return wire;
}

namespace {

AllocationJobCall JobOf(const v1::AllocationJob& wire) {
  AllocationJobCall call{.source = SourceOf(wire)};
  FaultList faults;
  AllocationJobDraft& draft = call.draft;
  draft.scenario = FromWire(wire.scenario(), "scenario", faults);
  if (wire.has_weight()) draft.weight = wire.weight();
  if (wire.has_min_workers()) draft.min_workers = wire.min_workers();
  if (wire.has_max_workers()) draft.max_workers = wire.max_workers();
  if (wire.has_gang()) draft.gang = wire.gang();
  if (wire.has_max_parameter_servers()) draft.max_parameter_servers = wire.max_parameter_servers();
  if (wire.has_remaining_examples()) draft.remaining_examples = wire.remaining_examples();
  if (wire.has_current()) {
    draft.current = {.workers = wire.current().workers(),
                     .rescale_seconds = wire.current().rescale_seconds()};
    if (wire.current().has_parameter_servers())
      draft.current->servers = wire.current().parameter_servers();
  }
  call.faults = std::move(faults).Take();
  return call;
}

v1::JobAllocation WireJob(const JobAllocation& job) {
  v1::JobAllocation wire;
  if (!job.status.ok()) wire.mutable_error()->ParseFromString(ToWireError(job.status).details);
  wire.set_workers(job.share.workers);
  wire.set_workers_edge(WireOf(kChoiceEdges, job.workers_edge));
  wire.set_parameter_servers(job.share.servers);
  wire.set_utility(job.share.utility);
  wire.set_speedup(job.share.speedup);
  wire.set_examples_per_second(job.share.examples_per_second);
  wire.set_interpolated(job.share.interpolated);
  if (job.share.duration_seconds)
    *wire.mutable_duration() = DurationOf(std::min(*job.share.duration_seconds, kLongestSeconds));
  for (const CurvePoint& point : job.curve) {
    v1::CurvePoint& simulated = *wire.add_curve();
    simulated.set_workers(point.workers);
    simulated.set_parameter_servers(point.servers);
    simulated.set_examples_per_second(point.examples_per_second);
    *simulated.mutable_confidence_interval() = ToWire(point.confidence_interval);
  }
  for (const Warning& warning : job.warnings) *wire.add_warnings() = ToWire(warning);
  for (const Assumption& assumption : job.assumptions) *wire.add_assumptions() = ToWire(assumption);
  return wire;
}

v1::OneMoreWorker WireMore(const OneMoreWorker& more, const std::vector<std::string>& job_ids) {
  v1::OneMoreWorker wire;
  wire.set_utility_gain(more.utility_gain);
  wire.set_objective_gain(more.objective_gain);
  wire.set_devices(more.devices);
  for (const OneMoreWorker::Change& change : more.changes) {
    v1::AllocationChange& changed = *wire.add_changes();
    changed.set_id(job_ids[change.job]);
    changed.set_workers(change.workers);
    changed.set_parameter_servers(change.servers);
  }
  return wire;
}

}  // namespace

AllocateWorkersCall FromWire(const v1::AllocateWorkersRequest& wire) {
  AllocateWorkersCall call;
  FaultList faults;
  for (const v1::AllocationJob& job : wire.jobs()) {
    call.draft.job_ids.push_back(job.id());
    call.jobs.push_back(JobOf(job));
  }
  if (wire.has_capacity()) {
    call.draft.capacity = ClusterCapacity{.workers = wire.capacity().workers()};
    if (wire.capacity().has_parameter_servers())
      call.draft.capacity->servers = wire.capacity().parameter_servers();
    if (wire.capacity().has_devices()) call.draft.capacity->devices = wire.capacity().devices();
  }
  call.draft.objective = CoreOf(kAllocationObjectives, wire.objective(), "objective", faults)
                             .value_or(AllocationObjective::kTotalUtility);
  call.draft.options = FromWire(wire.options(), "options", faults);
  call.faults = std::move(faults).Take();
  return call;
}

v1::AllocateWorkersResponse ToWire(const AllocateWorkersAnswer& answer) {
  v1::AllocateWorkersResponse wire;
  for (size_t i = 0; i < answer.answer.jobs.size(); ++i) {
    v1::JobAllocation& job = *wire.add_allocations();
    job = WireJob(answer.answer.jobs[i]);
    job.set_id(answer.job_ids[i]);
    job.set_profile_digest(answer.profile_digests[i]);
  }
  wire.set_total_utility(answer.answer.total_utility);
  wire.set_objective_value(answer.answer.objective_value);
  if (answer.answer.settled.has_value()) {
    wire.set_probability_best(answer.answer.settled->probability_best);
    wire.set_expected_loss(answer.answer.settled->expected_loss);
  }
  wire.set_workers(answer.answer.workers);
  wire.set_parameter_servers(answer.answer.servers);
  wire.set_devices(answer.answer.devices);
  *wire.mutable_one_more_worker() = WireMore(answer.answer.one_more_worker, answer.job_ids);
  wire.set_infeasible_reason(answer.answer.infeasible_reason);
  *wire.mutable_simulation() = ToWire(answer.answer.simulation, answer.context.engine_seconds);
  *wire.mutable_options() = ToWire(answer.context.options);
  wire.set_engine_version(kEngineVersion);
  return wire;
}

}  // namespace stepcast::server
