#include "core/predict/order_consistency.h"

#include <algorithm>
#include <set>
#include <tuple>
#include <utility>

#include "core/base/index.h"
#include "core/communication/parameter_servers.h"
#include "core/orders/transfer_ranks.h"

namespace stepcast {

namespace {

constexpr size_t kFewestPairs = 3;

// The downloads of each server, first to last; equal ranks in graph order. `ranks` by OpIndex.
std::vector<OpIndex> OrderOf(const Program& graph, const int32_t* ranks) {
  std::vector<std::tuple<LaneIndex, int32_t, OpIndex>> keys;
  for (OpIndex op = 0; op < graph.size(); ++op) {
    if (ServerLanes::ResourceOf(graph, op) == Resource::kDownlink)
      keys.emplace_back(graph.lane(op), ranks[op], op);
  }
  std::sort(keys.begin(), keys.end());
  std::vector<OpIndex> order;
  order.reserve(keys.size());
  for (const auto& key : keys) order.push_back(std::get<2>(key));
  return order;
}

// Ranks of each order, by operation of the graph; empty ones enforce nothing.
absl::StatusOr<std::vector<std::vector<int32_t>>> RanksOf(TransferOrder order,
                                                          const Profile& profile,
                                                          const Scenario& scenario,
                                                          const Program& graph, uint64_t seed,
                                                          StopCheck stop) {
  std::vector<std::vector<int32_t>> ranks;
  if (order == TransferOrder::kGraph) return std::vector<std::vector<int32_t>>(1);
  if (order == TransferOrder::kRandom) {
    for (int32_t i = 0; i < kRandomOrders; ++i) {
      auto drawn = DownloadRanks(OrderMethod::kRandom, profile, scenario, graph,
                                 seed + static_cast<uint64_t>(i), stop);
      if (!drawn.ok()) return drawn.status();
      ranks.push_back(*std::move(drawn));
    }
    return ranks;
  }
  const std::vector<int32_t> all = RecordedRanks(profile, graph);
  for (auto row = all.begin(); row != all.end(); row += graph.size()) {
    std::vector<int32_t>& own = ranks.emplace_back(row, row + graph.size());
    for (OpIndex op = 0; op < graph.size(); ++op) {
      if (ServerLanes::ResourceOf(graph, op) != Resource::kDownlink)
        own[Index(op)] = Ranking::kUnranked;
    }
  }
  return ranks;
}

}  // namespace

absl::StatusOr<OrderSpread> SpreadOfOrders(TransferOrder order, const Profile& profile,
                                           const Scenario& scenario, const LeastStep& step,
                                           uint64_t seed, StopCheck stop) {
  const auto ranks = RanksOf(order, profile, scenario, step.graph(), seed, stop);
  if (!ranks.ok()) return ranks.status();
  std::set<std::vector<OpIndex>> unique;
  OrderSpread spread{.orders = static_cast<int32_t>(ranks->size())};
  double sum = 0;
  for (const std::vector<int32_t>& own : *ranks) {
    if (!own.empty()) unique.insert(OrderOf(step.graph(), own.data()));
    const absl::StatusOr<Span> makespan = step.Makespan(own, stop);
    if (!makespan.ok()) return makespan.status();
    const double efficiency = step.bounds().Efficiency(*makespan);
    spread.least_efficiency = std::min(spread.least_efficiency, efficiency);
    sum += efficiency;
  }
  spread.unique_orders = std::max<int32_t>(1, static_cast<int32_t>(unique.size()));
  spread.mean_efficiency = sum / spread.orders;
  return spread;
}

absl::StatusOr<RecordedOrders> CheckRecordedOrders(const Profile& profile, StopCheck stop) {
  const absl::StatusOr<Scenario> scenario = ResolveScenario(profile, {});
  if (!scenario.ok()) return scenario.status();
  const absl::StatusOr<Program> program =
      BuildProgram(profile, *scenario, ProgramTimes::kRecorded, stop);
  if (!program.ok()) return program.status();
  const auto bounds = LeastStep::BoundsOfSteps(profile, *scenario, stop);
  if (!bounds.ok()) return bounds.status();
  const std::vector<int32_t> ranks = RecordedRanks(profile, *program);
  RecordedOrders found;
  std::set<std::vector<OpIndex>> unique;
  for (size_t step = 0; step < profile.steps().size(); ++step) {
    if (absl::Status status = stop(); !status.ok()) return status;
    unique.insert(OrderOf(*program, ranks.data() + step * Index(program->size())));
    const std::vector<int64_t>& ends = profile.steps()[step].end_ns;
    const Span length = Nanoseconds(*std::max_element(ends.begin(), ends.end()));
    found.step_seconds.push_back(ToSeconds(length));
    found.efficiencies.push_back((*bounds)[step].Efficiency(length));
  }
  found.unique_orders = static_cast<int32_t>(unique.size());
  found.r_squared = RSquaredOf(found.efficiencies, found.step_seconds);
  return found;
}

std::optional<double> RSquaredOf(const std::vector<double>& x, const std::vector<double>& y) {
  if (x.size() < kFewestPairs) return std::nullopt;
  const auto count = static_cast<double>(x.size());
  double mean_x = 0;
  double mean_y = 0;
  for (size_t i = 0; i < x.size(); ++i) {
    mean_x += x[i] / count;
    mean_y += y[i] / count;
  }
  double xx = 0;
  double yy = 0;
  double xy = 0;
  for (size_t i = 0; i < x.size(); ++i) {
    xx += (x[i] - mean_x) * (x[i] - mean_x);
    yy += (y[i] - mean_y) * (y[i] - mean_y);
    xy += (x[i] - mean_x) * (y[i] - mean_y);
  }
  // Rounding of equal values is no variance.
  constexpr double kRounding = 1e-24;
  if (xx <= kRounding * mean_x * mean_x * count || yy <= kRounding * mean_y * mean_y * count)
    return std::nullopt;
  return xy * xy / (xx * yy);
}

}  // namespace stepcast
