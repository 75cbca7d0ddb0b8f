#include "core/orders/transfer_ranks.h"

#include <algorithm>
#include <cstddef>
#include <string>
#include <utility>

#include "core/base/index.h"
#include "core/communication/parameter_servers.h"
#include "core/engine/simulation.h"
#include "core/orders/tic_tac.h"

namespace stepcast {

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

void RankExplicit(const Profile& profile, const Scenario& scenario, const Program& graph,
                  Ranks& ranks) {
  for (OpIndex op = 0; op < graph.size(); ++op) {
    if (!graph.IsTransfer(op)) continue;
    const auto named = scenario.servers().transfer_priorities.find(
        profile.operations()[Index(graph.source(op))].name);
    if (named != scenario.servers().transfer_priorities.end()) ranks[Index(op)] = named->second;
  }
}

absl::Status RankTic(const Program& graph, StopCheck stop, Ranks& ranks) {
  const TransferGraph transfers = ToTransferGraph(graph);
  const absl::StatusOr<std::vector<int32_t>> tic = TicRanks(transfers, stop);
  if (!tic.ok()) return tic.status();
  for (size_t d = 0; d < tic->size(); ++d) ranks[Index(transfers.downloads()[d])] = (*tic)[d];
  return absl::OkStatus();
}

absl::Status RankTac(const Program& graph, StopCheck stop, Ranks& ranks) {
  const absl::StatusOr<std::vector<int32_t>> order = TacOrder(ToTransferGraph(graph), stop);
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
      RankExplicit(profile, scenario, graph, ranks);
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
