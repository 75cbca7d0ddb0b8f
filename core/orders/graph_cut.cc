#include "core/orders/graph_cut.h"

#include <algorithm>
#include <cstddef>

#include "core/base/graph_cuts.h"
#include "core/base/index.h"

namespace stepcast {

GraphCut FirstCutBehindDownloads(const TransferGraph& graph) {
  std::vector<std::vector<int32_t>> dependents(Index(graph.size()));
  for (int32_t op = 0; op < graph.size(); ++op) {
    for (const int32_t dependent : graph.dependents(op)) dependents[Index(op)].push_back(dependent);
  }
  const std::vector<bool> cuts = CutsOf(dependents);
  size_t downloads_left = graph.downloads().size();
  const std::vector<int32_t>& order = graph.topological();
  for (size_t i = 0; i < order.size(); ++i) {
    const OperationKind kind = graph.operation(order[i]).kind;
    if (kind == OperationKind::kDownload) --downloads_left;
    if (kind != OperationKind::kComputation || downloads_left > 0 || !cuts[Index(order[i])])
      continue;
    GraphCut cut{.operation = order[i],
                 .up_to_it = {order.begin(), order.begin() + static_cast<std::ptrdiff_t>(i) + 1}};
    std::sort(cut.up_to_it.begin(), cut.up_to_it.end());
    return cut;
  }
  return {};
}

}  // namespace stepcast
