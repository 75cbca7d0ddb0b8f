#include "server/convert/order_convert.h"

#include <utility>

#include "absl/strings/str_cat.h"

#include "server/convert/enum_table.h"
#include "server/convert/prediction_convert.h"
#include "server/convert/profile_source.h"
#include "server/convert/scenario_convert.h"

namespace stepcast::server {

namespace {

v1::TransferOrderResult WireOrder(const OrderResult& order, double speedup_bound) {
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

v1::OptimizeOrderResponse ToWire(const OptimizeOrderAnswer& answer) {
  v1::OptimizeOrderResponse wire;
  const OrderAnswer& orders = answer.answer;
  for (const OrderResult& order : orders.orders) *wire.add_orders() = WireOrder(order, orders.speedup_bound);
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
