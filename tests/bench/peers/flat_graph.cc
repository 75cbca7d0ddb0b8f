#include "tests/bench/peers/flat_graph.h"

namespace stepcast::bench {

FlatGraph::FlatGraph(const Program& graph)
    : lanes(graph.lanes().count()),
      steps(graph.step_count()),
      dependency_count(graph.dependency_counts()),
      roots(graph.roots()) {
  for (OpIndex op = 0; op < graph.size(); ++op) {
    lane.push_back(graph.lane(op));
    first_dependent.push_back(static_cast<int32_t>(dependents.size()));
    for (const OpIndex dependent : graph.dependents(op)) dependents.push_back(dependent);
  }
  first_dependent.push_back(static_cast<int32_t>(dependents.size()));
  for (LaneIndex i = 0; i < lanes; ++i) operations_on.push_back(graph.operations_on(i));
  for (int32_t step = 0; step < steps; ++step) {
    for (OpIndex op = 0; op < graph.size(); ++op)
      alone.push_back(graph.IsTransfer(op) ? graph.work(op).first : graph.duration(step, op));
  }
}

}  // namespace stepcast::bench
