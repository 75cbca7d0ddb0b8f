#include "core/orders/transfer_ranks.h"

#include <algorithm>
#include <cstddef>
#include <string>
#include <utility>

#include "core/base/index.h"
#include "core/base/random.h"
#include "core/communication/parameter_servers.h"
#include "core/engine/simulation.h"
#include "core/orders/tic_tac.h"

namespace stepcast {

namespace {

constexpr uint64_t kPermutationStream = 4;

std::vector<OpIndex> DownloadsOf(const Program& graph) {
  std::vector<OpIndex> downloads;
  for (OpIndex op = 0; op < graph.size(); ++op) {
    if (ServerLanes::ResourceOf(graph, op) == Resource::kDownlink) downloads.push_back(op);
  }
  return downloads;
}

// Something to sort each download by, parallel to `downloads`; empty: graph order.
using Keys = std::vector<int64_t>;

Keys RandomKeys(size_t size, uint64_t seed) {
  Random random({seed, kPermutationStream});
  Keys keys(size);
  for (size_t i = 0; i < size; ++i) {  // Fisher-Yates, inside out
    const auto j = static_cast<size_t>(random.Below(i + 1));
    keys[i] = keys[j];
    keys[j] = static_cast<int64_t>(i);
  }
  return keys;
}

absl::StatusOr<Keys> KeysByScenarioOrder(TransferOrder order, const Profile& profile,
                                         const Scenario& scenario, const Program& graph,
                                         const std::vector<OpIndex>& downloads, StopCheck stop) {
  Scenario ordered = scenario;
  ordered.servers().transfer_order = order;
  const absl::StatusOr<std::vector<int32_t>> ranks = TransferRanks(profile, ordered, graph, stop);
  if (!ranks.ok()) return ranks.status();
  Keys keys;
  keys.reserve(downloads.size());
  for (const OpIndex op : downloads) keys.push_back((*ranks)[Index(op)]);
  return keys;
}

Keys GraphKeys(const std::vector<OpIndex>& downloads) {
  return {downloads.begin(), downloads.end()};
}

Keys RecordedKeys(const Profile& profile, const Program& graph,
                  const std::vector<OpIndex>& downloads) {
  Keys keys;
  keys.reserve(downloads.size());
  for (const OpIndex op : downloads)
    keys.push_back(profile.steps().front().end_ns[Index(graph.source(op))]);
  return keys;
}

std::vector<int32_t> RanksByKeys(const Program& graph, const std::vector<OpIndex>& downloads,
                                 const Keys& keys) {
  Keys distinct = keys;
  std::sort(distinct.begin(), distinct.end());
  distinct.erase(std::unique(distinct.begin(), distinct.end()), distinct.end());
  std::vector<int32_t> ranks(Index(graph.size()), Ranking::kUnranked);
  for (size_t i = 0; i < downloads.size(); ++i) {
    ranks[Index(downloads[i])] = static_cast<int32_t>(
        std::lower_bound(distinct.begin(), distinct.end(), keys[i]) - distinct.begin());
  }
  return ranks;
}

}  // namespace

absl::StatusOr<std::vector<int32_t>> DownloadRanks(OrderMethod method, const Profile& profile,
                                                   const Scenario& scenario, const Program& graph,
                                                   uint64_t seed, StopCheck stop) {
  const std::vector<OpIndex> downloads = DownloadsOf(graph);
  const auto by_scenario_order = [&](TransferOrder order) {
    return KeysByScenarioOrder(order, profile, scenario, graph, downloads, stop);
  };
  absl::StatusOr<Keys> keys = GraphKeys(downloads);
  switch (method) {
    case OrderMethod::kTic:
      keys = by_scenario_order(TransferOrder::kTic);
      break;
    case OrderMethod::kTac:
      keys = by_scenario_order(TransferOrder::kTac);
      break;
    case OrderMethod::kReverse:
      keys = by_scenario_order(TransferOrder::kReverse);
      break;
    case OrderMethod::kRandom:
      keys = RandomKeys(downloads.size(), seed);
      break;
    case OrderMethod::kRecorded:
      keys = RecordedKeys(profile, graph, downloads);
      break;
    case OrderMethod::kSearch:
    case OrderMethod::kGraph:
      break;
  }
  if (!keys.ok()) return keys.status();
  return RanksByKeys(graph, downloads, *keys);
}

namespace {

using Ranks = std::vector<int32_t>;

// Computations take their least time over the steps (TicTac, 5), transfers what the link takes for
// them alone.
TransferGraph ToTransferGraph(const Program& graph) {
  std::vector<TransferGraph::Operation> operations;
  std::vector<TransferGraph::Dependency> dependencies;
  operations.reserve(Index(graph.size()));
  for (OpIndex op = 0; op < graph.size(); ++op) {
    const Span time = graph.IsTransfer(op) ? graph.work(op).Total() : graph.duration(0, op);
    operations.push_back({.kind = OrderingKindOf(graph, op), .time = time});
    for (const OpIndex after : graph.dependents(op))
      dependencies.push_back({.before = op, .after = after});
  }
  for (int32_t step = 1; step < graph.step_count(); ++step) {
    for (OpIndex op = 0; op < graph.size(); ++op) {
      if (!graph.IsTransfer(op))
        operations[Index(op)].time = std::min(operations[Index(op)].time, graph.duration(step, op));
    }
  }
  return {std::move(operations), dependencies};
}

void RankReverse(const Program& graph, Ranks& ranks) {
  int32_t rank = 0;
  for (OpIndex op = graph.size() - 1; op >= 0; --op) {
    if (graph.IsTransfer(op)) ranks[Index(op)] = rank++;
  }
}

absl::Status RankExplicit(const Profile& profile, const Scenario& scenario, const Program& graph,
                          StopCheck stop, Ranks& ranks) {
  // A name's look-up takes longer than a unit of work.
  constexpr int64_t kUnitsPerName = 2;
  PacedStopCheck pace(stop);
  for (OpIndex op = 0; op < graph.size(); ++op) {
    if (!graph.IsTransfer(op)) continue;
    // A gradient that was recorded in a collective goes both ways by one name: its rank is that of
    // the way back, as TIC and TAC have it.
    if (profile.has_collectives() && ServerLanes::ResourceOf(graph, op) != Resource::kDownlink)
      continue;
    if (!pace.GoesOn(kUnitsPerName)) return pace.status();
    const auto named = scenario.servers().transfer_priorities.find(
        profile.operations()[Index(graph.source(op))].name);
    if (named != scenario.servers().transfer_priorities.end()) ranks[Index(op)] = named->second;
  }
  return absl::OkStatus();
}

absl::Status RankTic(const Program& graph, StopCheck stop, Ranks& ranks) {
  const TransferGraph transfers = ToTransferGraph(graph);
  if (absl::Status status = stop(); !status.ok()) return status;
  const absl::StatusOr<std::vector<int32_t>> tic = TicRanks(transfers, stop);
  if (!tic.ok()) return tic.status();
  for (size_t d = 0; d < tic->size(); ++d) ranks[Index(transfers.downloads()[d])] = (*tic)[d];
  return absl::OkStatus();
}

absl::Status RankTac(const Program& graph, StopCheck stop, Ranks& ranks) {
  const TransferGraph transfers = ToTransferGraph(graph);
  if (absl::Status status = stop(); !status.ok()) return status;
  const absl::StatusOr<std::vector<int32_t>> order = TacOrder(transfers, stop);
  if (!order.ok()) return order.status();
  int32_t rank = 0;
  for (const int32_t op : *order) ranks[Index(op)] = rank++;
  return absl::OkStatus();
}

}  // namespace

OperationKind OrderingKindOf(const Program& graph, OpIndex op) {
  const Resource resource = ServerLanes::ResourceOf(graph, op);
  if (resource == Resource::kDownlink) return OperationKind::kDownload;
  return resource == Resource::kWorker ? OperationKind::kComputation : OperationKind::kOther;
}

absl::StatusOr<std::vector<int32_t>> TransferRanks(const Profile& profile, const Scenario& scenario,
                                                   const Program& graph, StopCheck stop) {
  Ranks ranks(Index(graph.size()), Ranking::kUnranked);
  absl::Status status;
  const bool computed = scenario.servers().transfer_order == TransferOrder::kTic ||
                        scenario.servers().transfer_order == TransferOrder::kTac;
  if (computed && graph.longest_step_ticks() >= static_cast<double>(kEndOfTime.ticks))
    return SimulatedTimeExhausted();
  switch (scenario.servers().transfer_order) {
    case TransferOrder::kGraph:
    case TransferOrder::kRecorded:
    case TransferOrder::kRandom:
      return Ranks{};
    case TransferOrder::kReverse:
      RankReverse(graph, ranks);
      break;
    case TransferOrder::kTic:
      status = RankTic(graph, stop, ranks);
      break;
    case TransferOrder::kTac:
      status = RankTac(graph, stop, ranks);
      break;
    case TransferOrder::kExplicit:
      status = RankExplicit(profile, scenario, graph, stop, ranks);
      break;
  }
  if (!status.ok()) return status;
  return ranks;
}

absl::StatusOr<Ranking> RankingOf(const Profile& profile, const Scenario& scenario,
                                  const Program& program, StopCheck stop) {
  switch (scenario.servers().transfer_order) {
    case TransferOrder::kGraph:
      return Ranking{};
    case TransferOrder::kRandom:
      return Ranking{.rule = Ranking::Rule::kShuffled};
    case TransferOrder::kRecorded:
      return Ranking{.rule = Ranking::Rule::kRecorded, .ranks = RecordedRanks(profile, program)};
    default:
      break;
  }
  absl::StatusOr<Ranks> ranks = TransferRanks(profile, scenario, program, stop);
  if (!ranks.ok()) return ranks.status();
  return Ranking{.rule = Ranking::Rule::kFixed, .ranks = *std::move(ranks)};
}

}  // namespace stepcast
