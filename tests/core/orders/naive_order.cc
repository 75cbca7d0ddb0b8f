#include "tests/core/orders/naive_order.h"

#include <algorithm>
#include <cstddef>

namespace stepcast::testing {

namespace {

bool GoesBefore(const NaiveProperties& a, const NaiveProperties& b) {
  const Span left = std::min(b.freed_computation, a.transfer_time);
  const Span right = std::min(a.freed_computation, b.transfer_time);
  return left == right ? a.impending_load < b.impending_load : left < right;
}

}  // namespace

std::vector<std::set<int32_t>> NaiveDependencies(const TransferGraph& graph) {
  std::vector<std::set<int32_t>> dependencies(static_cast<size_t>(graph.size()));
  for (const int32_t download : graph.downloads()) {
    std::vector<int32_t> reached{download};
    for (size_t i = 0; i < reached.size(); ++i) {
      if (!dependencies[static_cast<size_t>(reached[i])].insert(download).second) continue;
      for (const int32_t after : graph.dependents(reached[i])) reached.push_back(after);
    }
  }
  return dependencies;
}

std::vector<NaiveProperties> NaiveUpdate(const TransferGraph& graph,
                                         const std::set<int32_t>& outstanding, bool unit_times) {
  const std::vector<std::set<int32_t>> dependencies = NaiveDependencies(graph);
  const auto time_of = [&](int32_t op) {
    if (!unit_times) return graph.operation(op).time;
    return Span{graph.operation(op).kind == OperationKind::kDownload ? 1 : 0};
  };
  std::vector<NaiveProperties> properties(dependencies.size());
  for (const int32_t download : outstanding)
    properties[static_cast<size_t>(download)].transfer_time = time_of(download);
  for (int32_t op = 0; op < graph.size(); ++op) {
    if (graph.operation(op).kind != OperationKind::kComputation) continue;
    std::vector<int32_t> waiting;
    Span load;
    for (const int32_t download : dependencies[static_cast<size_t>(op)]) {
      if (!outstanding.contains(download)) continue;
      waiting.push_back(download);
      load += time_of(download);
    }
    for (const int32_t download : waiting) {
      NaiveProperties& of = properties[static_cast<size_t>(download)];
      if (waiting.size() == 1) of.freed_computation += time_of(op);
      if (waiting.size() > 1) of.impending_load = std::min(of.impending_load, load);
    }
  }
  return properties;
}

std::vector<int32_t> NaiveTacOrder(const TransferGraph& graph) {
  std::set<int32_t> outstanding(graph.downloads().begin(), graph.downloads().end());
  std::vector<int32_t> order;
  while (!outstanding.empty()) {
    const std::vector<NaiveProperties> properties = NaiveUpdate(graph, outstanding, false);
    int32_t best = *outstanding.begin();
    for (const int32_t candidate : outstanding) {
      if (GoesBefore(properties[static_cast<size_t>(candidate)],
                     properties[static_cast<size_t>(best)]))
        best = candidate;
    }
    order.push_back(best);
    outstanding.erase(best);
  }
  return order;
}

}  // namespace stepcast::testing
