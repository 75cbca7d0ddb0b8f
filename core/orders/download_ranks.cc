#include "core/orders/download_ranks.h"

#include <algorithm>
#include <cstddef>

#include "core/base/index.h"
#include "core/base/random.h"
#include "core/communication/parameter_servers.h"
#include "core/engine/simulation.h"
#include "core/orders/transfer_ranks.h"

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

}  // namespace stepcast
