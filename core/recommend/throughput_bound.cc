#include "core/recommend/throughput_bound.h"

#include <algorithm>
#include <cstddef>
#include <limits>
#include <vector>

namespace stepcast {

namespace {

double WorkTicks(const Program& graph, int32_t step, OpIndex op) {
  return static_cast<double>(
      (graph.IsTransfer(op) ? graph.work(op).Total() : graph.duration(step, op)).ticks);
}

std::vector<OpIndex> InTopologicalOrder(const Program& graph) {
  std::vector<int32_t> waits = graph.dependency_counts();
  std::vector<OpIndex> order = graph.roots();
  for (size_t i = 0; i < order.size(); ++i) {
    for (const OpIndex dependent : graph.dependents(order[i])) {
      if (--waits[static_cast<size_t>(dependent)] == 0) order.push_back(dependent);
    }
  }
  return order;
}

double LongestChainTicks(const Program& graph, int32_t step, const std::vector<OpIndex>& order) {
  std::vector<double> ready(static_cast<size_t>(graph.size()), 0);
  double longest = 0;
  for (const OpIndex op : order) {
    const double end = ready[static_cast<size_t>(op)] + WorkTicks(graph, step, op);
    longest = std::max(longest, end);
    for (const OpIndex dependent : graph.dependents(op)) {
      double& at = ready[static_cast<size_t>(dependent)];
      at = std::max(at, end);
    }
  }
  return longest;
}

// By lane.
std::vector<double> LaneTicks(const Program& graph, int32_t step) {
  std::vector<double> work(static_cast<size_t>(graph.lanes().count()), 0);
  for (OpIndex op = 0; op < graph.size(); ++op)
    work[static_cast<size_t>(graph.lane(op))] += WorkTicks(graph, step, op);
  return work;
}

double PerSecond(double ticks) {
  return ticks > 0 ? kTicksPerNanosecond * 1e9 / ticks : std::numeric_limits<double>::infinity();
}

}  // namespace

ThroughputBound::ThroughputBound(const Program& graph) {
  const std::vector<OpIndex> order = InTopologicalOrder(graph);
  double shortest = 0;  // mean over the recorded steps
  for (int32_t step = 0; step < graph.step_count(); ++step) {
    const std::vector<double> lanes = LaneTicks(graph, step);
    shortest += std::max(*std::max_element(lanes.begin(), lanes.end()),
                         LongestChainTicks(graph, step, order)) /
                graph.step_count();
  }
  const std::vector<double> lanes = LaneTicks(graph, 0);
  const double busiest = *std::max_element(lanes.begin() + graph.lanes().first_link(), lanes.end());
  one_worker_ = PerSecond(shortest);
  links_ = PerSecond(busiest);
}

double ThroughputBound::StepsPerSecond(int32_t workers) const {
  return std::min(workers * one_worker_, links_);
}

}  // namespace stepcast
