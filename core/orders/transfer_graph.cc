#include "core/orders/transfer_graph.h"

#include <algorithm>
#include <utility>

#include "core/base/graph_cuts.h"
#include "core/base/index.h"

namespace stepcast {

TransferGraph::TransferGraph(std::vector<Operation> operations,
                             const std::vector<Dependency>& dependencies)
    : operations_(std::move(operations)),
      dependents_(dependencies.size()),
      first_dependent_(operations_.size() + 1) {
  for (int32_t op = 0; op < size(); ++op) {
    if (operation(op).kind == OperationKind::kDownload) downloads_.push_back(op);
  }
  for (const Dependency& dependency : dependencies)
    ++first_dependent_[static_cast<size_t>(dependency.before) + 1];
  for (size_t op = 0; op < operations_.size(); ++op)
    first_dependent_[op + 1] += first_dependent_[op];
  std::vector<size_t> next(first_dependent_.begin(), first_dependent_.end() - 1);
  for (const Dependency& dependency : dependencies)
    dependents_[next[static_cast<size_t>(dependency.before)]++] = dependency.after;
  SortTopologically();
}

std::span<const int32_t> TransferGraph::dependents(int32_t op) const {
  const size_t first = first_dependent_[static_cast<size_t>(op)];
  return std::span(dependents_)
      .subspan(first, first_dependent_[static_cast<size_t>(op) + 1] - first);
}

void TransferGraph::SortTopologically() {
  std::vector<int32_t> waiting(operations_.size());
  for (const int32_t op : dependents_) ++waiting[static_cast<size_t>(op)];
  topological_.reserve(operations_.size());
  for (int32_t op = 0; op < size(); ++op) {
    if (waiting[static_cast<size_t>(op)] == 0) topological_.push_back(op);
  }
  for (size_t done = 0; done < topological_.size(); ++done) {
    for (const int32_t op : dependents(topological_[done])) {
      if (--waiting[static_cast<size_t>(op)] == 0) topological_.push_back(op);
    }
  }
}

GraphCut FirstCutBehindDownloads(const TransferGraph& graph) {
  TargetLists dependents;
  for (int32_t op = 0; op < graph.size(); ++op) {
    const auto own = graph.dependents(op);
    dependents.targets.insert(dependents.targets.end(), own.begin(), own.end());
    dependents.EndNode();
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
