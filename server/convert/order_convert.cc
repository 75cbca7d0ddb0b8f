#include "server/convert/order_convert.h"

#include <algorithm>
#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"

#include "server/convert/enum_table.h"
#include "server/convert/prediction_convert.h"
#include "server/convert/profile_source.h"
#include "server/convert/scenario_convert.h"

namespace stepcast::server {

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
  *wire.mutable_simulation() = ToWire(orders.simulation, answer.context.engine_seconds);
  wire.set_profile_digest(answer.context.profile_digest);
  wire.set_engine_version(kEngineVersion);
  return wire;
}

}  // namespace stepcast::server
