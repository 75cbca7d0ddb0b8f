#include "core/orders/graph_cut.h"

#include <algorithm>
#include <cstddef>

#include "core/base/index.h"

namespace stepcast {

namespace {

using Targets = std::vector<std::vector<int32_t>>;

// How many operations wait for each one that is at some time the only one that could be next: all
// that is not done then. -1 for others.
std::vector<int32_t> WaitingForOnlyChoices(const Targets& after) {
  std::vector<int32_t> pending(after.size());
  for (const std::vector<int32_t>& targets : after) {
    for (const int32_t op : targets) ++pending[Index(op)];
  }
  std::vector<int32_t> order;
  for (size_t op = 0; op < after.size(); ++op) {
    if (pending[op] == 0) order.push_back(static_cast<int32_t>(op));
  }
  std::vector<int32_t> waiting(after.size(), -1);
  for (size_t done = 0; done < order.size(); ++done) {
    if (order.size() == done + 1)
      waiting[Index(order[done])] = static_cast<int32_t>(after.size() - done) - 1;
    for (const int32_t op : after[Index(order[done])]) {
      if (--pending[Index(op)] == 0) order.push_back(op);
    }
  }
  return waiting;
}

}  // namespace

// It is the only choice in both directions, and those that wait for it and those that it waits for
// are all others.
GraphCut FirstCutBehindDownloads(const TransferGraph& graph) {
  Targets after(Index(graph.size()));
  Targets before(Index(graph.size()));
  for (int32_t op = 0; op < graph.size(); ++op) {
    for (const int32_t dependent : graph.dependents(op)) {
      after[Index(op)].push_back(dependent);
      before[Index(dependent)].push_back(op);
    }
  }
  const std::vector<int32_t> behind = WaitingForOnlyChoices(after);
  const std::vector<int32_t> ahead = WaitingForOnlyChoices(before);
  size_t downloads_left = graph.downloads().size();
  const std::vector<int32_t>& order = graph.topological();
  for (size_t i = 0; i < order.size(); ++i) {
    if (graph.operation(order[i]).kind == OperationKind::kDownload) --downloads_left;
    const int32_t op = order[i];
    if (graph.operation(op).kind != OperationKind::kComputation || downloads_left > 0) continue;
    if (behind[Index(op)] < 0 || ahead[Index(op)] < 0 ||
        behind[Index(op)] + ahead[Index(op)] + 1 < graph.size())
      continue;
    GraphCut cut{.operation = op,
                 .up_to_it = {order.begin(), order.begin() + static_cast<std::ptrdiff_t>(i) + 1}};
    std::sort(cut.up_to_it.begin(), cut.up_to_it.end());
    return cut;
  }
  return {};
}

}  // namespace stepcast
