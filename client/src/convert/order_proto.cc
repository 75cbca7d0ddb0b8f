#include "client/src/convert/order_proto.h"

#include "client/src/convert/duration_proto.h"
#include "client/src/convert/prediction_proto.h"
#include "client/src/convert/repeated.h"
#include "client/src/convert/scenario_proto.h"

namespace stepcast::client {

static_assert(static_cast<int>(OrderMethod::kTic) == v1::TIC);
static_assert(static_cast<int>(OrderMethod::kTac) == v1::TAC);
static_assert(static_cast<int>(OrderMethod::kSearch) == v1::SEARCH);
static_assert(static_cast<int>(OrderMethod::kReverse) == v1::REVERSE);
static_assert(static_cast<int>(OrderMethod::kRandom) == v1::RANDOM);
static_assert(static_cast<int>(OrderMethod::kRecorded) == v1::RECORDED);
static_assert(static_cast<int>(OrderMethod::kGraph) == v1::GRAPH);

void ToProto(const OptimizeOrderRequest& from, v1::OptimizeOrderRequest& to) {
  ToProto(from.source, to);
  if (from.scenario) ToProto(*from.scenario, *to.mutable_scenario());
  ToProto(from.options, *to.mutable_options());
  for (const OrderMethod method : from.methods)
    to.add_methods(static_cast<v1::OrderMethod>(method));
  if (from.time_budget) ToProto(*from.time_budget, *to.mutable_time_budget());
  to.set_inference(from.inference);
}

void ToProto(const RankedTransfer& from, v1::RankedTransfer& to) {
  to.set_name(from.name);
  to.set_rank(from.rank);
  to.set_size_bytes(from.size_bytes);
  to.set_parameter_server(from.parameter_server);
  to.set_server_rank(from.server_rank);
}

void FromProto(const v1::RankedTransfer& from, RankedTransfer& to) {
  to.name = from.name();
  to.rank = from.rank();
  to.size_bytes = from.size_bytes();
  to.parameter_server = from.parameter_server();
  to.server_rank = from.server_rank();
}

void ToProto(const OrderSpeedup& from, v1::OrderSpeedup& to) {
  to.set_over(static_cast<v1::Scenario::TransferOrder>(from.over));
  to.set_speedup(from.speedup);
  if (from.confidence_interval)
    ToProto(*from.confidence_interval, *to.mutable_confidence_interval());
}

void FromProto(const v1::OrderSpeedup& from, OrderSpeedup& to) {
  to.over = static_cast<TransferOrder>(from.over());
  to.speedup = from.speedup();
  if (from.has_confidence_interval())
    FromProto(from.confidence_interval(), to.confidence_interval.emplace());
}

void ToProto(const OrderBaseline& from, v1::OrderBaseline& to) {
  to.set_transfer_order(static_cast<v1::Scenario::TransferOrder>(from.transfer_order));
  to.set_steps_per_second(from.steps_per_second);
  to.set_examples_per_second(from.examples_per_second);
  ToProto(from.confidence_interval, *to.mutable_confidence_interval());
}

void FromProto(const v1::OrderBaseline& from, OrderBaseline& to) {
  to.transfer_order = static_cast<TransferOrder>(from.transfer_order());
  to.steps_per_second = from.steps_per_second();
  to.examples_per_second = from.examples_per_second();
  FromProto(from.confidence_interval(), to.confidence_interval);
}

void ToProto(const TransferOrderResult& from, v1::TransferOrderResult& to) {
  to.set_method(static_cast<v1::OrderMethod>(from.method));
  ToProto(from.transfers, *to.mutable_transfers());
  to.set_makespan_ns(from.makespan_ns);
  to.set_scheduling_efficiency(from.scheduling_efficiency);
  to.set_straggler_effect(from.straggler_effect);
  to.set_steps_per_second(from.steps_per_second);
  to.set_examples_per_second(from.examples_per_second);
  to.set_speedup_bound(from.speedup_bound);
  ToProto(from.confidence_interval, *to.mutable_confidence_interval());
  to.set_gap(from.gap);
  to.set_best(from.best);
  ToProto(from.speedups, *to.mutable_speedups());
}

void FromProto(const v1::TransferOrderResult& from, TransferOrderResult& to) {
  to.method = static_cast<OrderMethod>(from.method());
  FromProto(from.transfers(), to.transfers);
  to.makespan_ns = from.makespan_ns();
  to.scheduling_efficiency = from.scheduling_efficiency();
  to.straggler_effect = from.straggler_effect();
  to.steps_per_second = from.steps_per_second();
  to.examples_per_second = from.examples_per_second();
  to.speedup_bound = from.speedup_bound();
  FromProto(from.confidence_interval(), to.confidence_interval);
  to.gap = from.gap();
  to.best = from.best();
  FromProto(from.speedups(), to.speedups);
}

void ToProto(const OptimizeOrderResponse& from, v1::OptimizeOrderResponse& to) {
  ToProto(from.orders, *to.mutable_orders());
  to.set_chosen(static_cast<v1::OrderMethod>(from.chosen));
  to.set_upper_makespan_ns(from.upper_makespan_ns);
  to.set_lower_makespan_ns(from.lower_makespan_ns);
  to.set_speedup_bound(from.speedup_bound);
  to.set_transfers_without_measured_time(from.transfers_without_measured_time);
  to.set_graph_steps_per_second(from.graph_steps_per_second);
  to.set_random_steps_per_second(from.random_steps_per_second);
  ToProto(from.simulation, *to.mutable_simulation());
  to.set_profile_digest(from.profile_digest);
  to.set_engine_version(from.engine_version);
  ToProto(from.baselines, *to.mutable_baselines());
  to.set_order_lower_bound_ns(from.order_lower_bound_ns);
  for (const std::string& name : from.unmeasured_transfers) to.add_unmeasured_transfers(name);
  to.set_operations(from.operations);
  for (const std::string& warning : from.warnings) to.add_warnings(warning);
}

void FromProto(const v1::OptimizeOrderResponse& from, OptimizeOrderResponse& to) {
  FromProto(from.orders(), to.orders);
  to.chosen = static_cast<OrderMethod>(from.chosen());
  to.upper_makespan_ns = from.upper_makespan_ns();
  to.lower_makespan_ns = from.lower_makespan_ns();
  to.speedup_bound = from.speedup_bound();
  to.transfers_without_measured_time = from.transfers_without_measured_time();
  to.graph_steps_per_second = from.graph_steps_per_second();
  to.random_steps_per_second = from.random_steps_per_second();
  FromProto(from.simulation(), to.simulation);
  to.profile_digest = from.profile_digest();
  to.engine_version = from.engine_version();
  FromProto(from.baselines(), to.baselines);
  to.order_lower_bound_ns = from.order_lower_bound_ns();
  to.unmeasured_transfers.assign(from.unmeasured_transfers().begin(),
                                 from.unmeasured_transfers().end());
  to.operations = from.operations();
  to.warnings.assign(from.warnings().begin(), from.warnings().end());
}

}  // namespace stepcast::client
