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
  Table table({{"", Align::kLeft},
               {"method", Align::kLeft},
               {"makespan"},
               {"gap"},
               {"efficiency"},
               {"straggler"},
               {"steps/s"},
               {"examples/s"}});
  for (const TransferOrderResult& order : response.orders) {
    table.AddRow({order.method == response.chosen ? "->" : "",
                  std::string(OrderMethodName(order.method)),
                  DurationText(std::chrono::nanoseconds(order.makespan_ns)),
                  order.best ? "best" : PercentText(order.gap),
                  PercentText(order.scheduling_efficiency), PercentText(order.straggler_effect),
                  NumberText(order.steps_per_second), NumberText(order.examples_per_second)});
  }
  return table.Text();
}

// Of what orders are compared with.
std::string BaselineNameOf(TransferOrder order) {
  if (order == TransferOrder::kGraph) return "graph order";
  return order == TransferOrder::kRandom ? "random order" : "recorded order";
}

std::string SpeedupIntervalText(const ConfidenceInterval& interval) {
  return absl::StrCat(NumberText(interval.lower), " to ", NumberText(interval.upper));
}

std::string Bounds(const OptimizeOrderResponse& response) {
  return absl::StrCat(
      "A step takes from ", DurationText(std::chrono::nanoseconds(response.lower_makespan_ns)),
      " (the busiest resource) to ",
      DurationText(std::chrono::nanoseconds(response.upper_makespan_ns)),
      " (one thing at a time): order can gain ", PercentText(response.speedup_bound),
      " at most.\nNo order of the downloads takes less than ",
      DurationText(std::chrono::nanoseconds(response.order_lower_bound_ns)),
      "; gap: how far above that an order is.\n");
}

// What the chosen order gains over those that nobody chose.
std::string Baselines(const OptimizeOrderResponse& response, const TransferOrderResult& chosen) {
  if (response.baselines.empty()) return "";
  Table table(
      {{"against", Align::kLeft}, {"examples/s"}, {"interval"}, {"speed-up"}, {"interval"}});
  for (const OrderBaseline& baseline : response.baselines) {
    const auto over = std::find_if(
        chosen.speedups.begin(), chosen.speedups.end(),
        [&](const OrderSpeedup& speedup) { return speedup.over == baseline.transfer_order; });
    const bool known = over != chosen.speedups.end();
    table.AddRow(
        {BaselineNameOf(baseline.transfer_order), NumberText(baseline.examples_per_second),
         SpeedupIntervalText(baseline.confidence_interval), known ? NumberText(over->speedup) : "",
         known && over->confidence_interval ? SpeedupIntervalText(*over->confidence_interval)
                                            : ""});
  }
  return absl::StrCat("\n", table.Text());
}

std::string Unmeasured(const OptimizeOrderResponse& response) {
  if (response.transfers_without_measured_time == 0) return "";
  constexpr size_t kShown = 5;
  std::string text =
      absl::StrCat("warning: no recorded step shows ", response.transfers_without_measured_time,
                   " of the transfers to have taken any time");
  const size_t shown = std::min(kShown, response.unmeasured_transfers.size());
  for (size_t i = 0; i < shown; ++i)
    absl::StrAppend(&text, i == 0 ? ": " : ", ", response.unmeasured_transfers[i]);
  if (shown > 0 && static_cast<size_t>(response.transfers_without_measured_time) > shown)
    absl::StrAppend(&text, ", ... (--output json)");
  return text + "\n";
}

std::string Transfers(const TransferOrderResult& order, size_t transfers_max) {
  const size_t shown = std::min(transfers_max, order.transfers.size());
  if (shown == 0) return "\nNothing to enforce.\n";
  const bool several = std::any_of(order.transfers.begin(), order.transfers.end(),
                                   [](const RankedTransfer& t) { return t.parameter_server > 0; });
  std::string text = absl::StrCat("\n", OrderMethodName(order.method).data(), ", first to last:\n");
  std::vector<Table::Column> columns{{"rank"}, {"size"}, {"transfer", Align::kLeft}};
  if (several) columns.insert(columns.begin() + 1, {{"server"}, {"rank there"}});
  Table table(columns);
  for (size_t i = 0; i < shown; ++i) {
    const RankedTransfer& transfer = order.transfers[i];
    std::vector<std::string> row{absl::StrCat(transfer.rank), BytesText(transfer.size_bytes),
                                 transfer.name};
    if (several)
      row.insert(row.begin() + 1,
                 {absl::StrCat(transfer.parameter_server), absl::StrCat(transfer.server_rank)});
    table.AddRow(row);
  }
  absl::StrAppend(&text, table.Text());
  if (shown < order.transfers.size())
    absl::StrAppend(&text, "and ", order.transfers.size() - shown,
                    " more (--transfers, or --output json)\n");
  return text;
}

}  // namespace

std::string OrderText(const OptimizeOrderResponse& response, size_t transfers_max) {
  std::string text = Methods(response) + Bounds(response) + Unmeasured(response);
  for (const std::string& warning : response.warnings)
    absl::StrAppend(&text, "warning: ", warning, "\n");
  const auto chosen = std::find_if(
      response.orders.begin(), response.orders.end(),
      [&](const TransferOrderResult& order) { return order.method == response.chosen; });
  if (chosen == response.orders.end()) return text;
  text += Baselines(response, *chosen);
  if (transfers_max > 0) text += Transfers(*chosen, transfers_max);
  return text;
}

}  // namespace stepcast::client
