#include "tests/bench/papers/enforced_order.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"

#include "core/orders/forward_pass.h"
#include "core/predict/order.h"
#include "tests/bench/papers/valid.h"

namespace stepcast::bench {

namespace {

double GainOverRandom(const OrderResult& order) {
  const auto random = [](const OrderSpeedup& speedup) {
    return speedup.over == TransferOrder::kRandom;
  };
  return std::find_if(order.speedups.begin(), order.speedups.end(), random)->speedup - 1;
}

OrderGains MeasureOne(const EnforcedOrderOptions& options, OrderGains one) {
  const Profile profile = GpuProfile(one.model, one.batch_size,
                                     options.gigabits_per_second * kGigabit, kK80FlopsPerSecond);
  const StepParts forward = PartsOf(Valid(ForwardPass(profile)));
  one.computation_share = forward.computation_seconds / (forward.download_seconds * one.workers);
  OrderDraft draft{.scenario = {.workers = one.workers},
                   .options = OptionsOf(options.length),
                   .methods = options.methods,
                   .inference = one.inference};
  draft.scenario.servers().synchronization = options.synchronization;
  if (options.synchronization == Synchronization::kSynchronous)
    draft.options.start = Start::kSimultaneous;
  const OrderAnswer answer =
      Valid(OptimizeOrder(profile, Valid(ResolveOrder(profile, draft)), NeverStop));
  for (const OrderResult& order : answer.orders) one.gains.push_back(GainOverRandom(order));
  return one;
}

}  // namespace

std::vector<OrderGains> MeasureOrders(const EnforcedOrderOptions& options) {
  std::vector<OrderGains> gains;
  for (const std::string& model : options.models) {
    for (const bool inference : {true, false}) {
      for (const int32_t workers : options.workers) {
        for (const int32_t batch_size : options.batch_sizes) {
          gains.push_back(MeasureOne(options, {.model = model,
                                               .inference = inference,
                                               .workers = workers,
                                               .batch_size = batch_size}));
        }
      }
    }
  }
  return gains;
}

std::string OrderTable(const EnforcedOrderOptions& options, const std::vector<OrderGains>& gains) {
  std::vector<std::string> head = {"model", "workload", "W"};
  for (const int32_t batch_size : options.batch_sizes)
    head.push_back(absl::StrCat("batch ", batch_size));
  std::string table = TableHead(head);
  for (size_t first = 0; first < gains.size(); first += options.batch_sizes.size()) {
    const OrderGains& row = gains[first];
    std::vector<std::string> cells = {row.model, row.inference ? "inference" : "training",
                                      absl::StrCat(row.workers)};
    for (size_t i = 0; i < options.batch_sizes.size(); ++i) {
      const auto percent = [](std::string* out, double gain) {
        absl::StrAppendFormat(out, "%+.1f", 100 * gain);
      };
      const OrderGains& one = gains[first + i];
      cells.push_back(absl::StrFormat("%.2f: %s", one.computation_share,
                                      absl::StrJoin(one.gains, " / ", percent)));
    }
    table += TableRow(cells);
  }
  return table;
}

}  // namespace stepcast::bench
