#include "client/cli/order_table.h"

#include <algorithm>
#include <chrono>

#include "absl/strings/str_cat.h"
#include "client/cli/measure_text.h"
#include "client/cli/table.h"

namespace stepcast::client {

namespace {

using Align = Table::Align;

std::string Methods(const OptimizeOrderResponse& response) {
  Table table({{"", Align::kLeft}, {"method", Align::kLeft}, {"makespan"}, {"efficiency"}, {"straggler"}, {"steps/s"}, {"examples/s"}});
  for (const TransferOrderResult& order : response.orders) {
    table.AddRow({order.method == response.chosen ? "->" : "", std::string(OrderMethodName(order.method)),
                  DurationText(std::chrono::nanoseconds(order.makespan_ns)), PercentText(order.scheduling_efficiency),
                  PercentText(order.straggler_effect), NumberText(order.steps_per_second), NumberText(order.examples_per_second)});
  }
  return table.Text();
}

std::string Bounds(const OptimizeOrderResponse& response) {
  std::string text = absl::StrCat("A step takes from ", DurationText(std::chrono::nanoseconds(response.lower_makespan_ns)),
                                  " (the busiest resource) to ", DurationText(std::chrono::nanoseconds(response.upper_makespan_ns)),
                                  " (one thing at a time): order can gain ", PercentText(response.speedup_bound), " at most.\n");
  absl::StrAppend(&text, "In graph order: ", NumberText(response.graph_steps_per_second),
                  " steps/s; in random order: ", NumberText(response.random_steps_per_second), " steps/s.\n");
  if (response.transfers_without_measured_time > 0) {
    absl::StrAppend(&text, "warning: no recorded step shows ", response.transfers_without_measured_time,
                    " of the transfers to have taken any time\n");
  }
  return text;
}

std::string Transfers(const TransferOrderResult& order, size_t transfers_max) {
  const size_t shown = std::min(transfers_max, order.transfers.size());
  std::string text = absl::StrCat("\n", OrderMethodName(order.method).data(), ", first to last:\n");
  Table table({{"rank"}, {"size"}, {"transfer", Align::kLeft}});
  for (size_t i = 0; i < shown; ++i) {
    const RankedTransfer& transfer = order.transfers[i];
    table.AddRow({absl::StrCat(transfer.rank), BytesText(transfer.size_bytes), transfer.name});
  }
  absl::StrAppend(&text, table.Text());
  if (shown < order.transfers.size()) absl::StrAppend(&text, "and ", order.transfers.size() - shown, " more (--transfers, or --output json)\n");
  return text;
}

}  // namespace

std::string OrderText(const OptimizeOrderResponse& response, size_t transfers_max) {
  std::string text = Methods(response) + Bounds(response);
  const auto chosen =
      std::find_if(response.orders.begin(), response.orders.end(), [&](const TransferOrderResult& order) { return order.method == response.chosen; });
  if (chosen != response.orders.end() && transfers_max > 0) text += Transfers(*chosen, transfers_max);
  return text;
}

}  // namespace stepcast::client
