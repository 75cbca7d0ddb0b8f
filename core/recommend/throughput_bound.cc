#include "core/recommend/throughput_bound.h"

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <limits>
#include <utility>
#include <vector>

#include "core/base/index.h"
#include "core/communication/all_reduce.h"
#include "core/predict/pipeline_job.h"

namespace stepcast {

namespace {

using Known = std::map<int32_t, double>;

double SlopeOf(Known::const_iterator a, Known::const_iterator b) {
  return (b->second - a->second) / (b->first - a->first);
}

}  // namespace

double CurveCeiling::At(int32_t workers) const {
  const auto right = known_.upper_bound(workers);
  auto left = known_.lower_bound(workers);
  const bool has_left = left != known_.begin();
  if (has_left) --left;
  double ceiling = std::numeric_limits<double>::infinity();
  if (has_left) {
    ceiling = left->second * workers / left->first;  // each as good as those before
    if (left != known_.begin()) {
      const double slope = std::max(0.0, SlopeOf(std::prev(left), left));
      ceiling = std::min(ceiling, left->second + slope * (workers - left->first));
    }
  }
  if (right == known_.end()) return ceiling;
  if (std::next(right) != known_.end()) {
    ceiling = std::min(ceiling,
                       right->second - SlopeOf(right, std::next(right)) * (right->first - workers));
  }
  // A curve that wavers may leave nothing above the straight line from one known number to the
  // next.
  const double chord = has_left ? left->second + SlopeOf(left, right) * (workers - left->first) : 0;
  return std::max(ceiling, chord);
}

double CurveCeiling::ExcessOf(int32_t workers, double found) const {
  return std::max(0.0, found / At(workers) - 1);
}

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

// Steps per second of one worker that is alone.
double AlonePerSecond(const Program& graph) {
  const std::vector<OpIndex> order = InTopologicalOrder(graph);
  double shortest = 0;  // mean over the recorded steps
  for (int32_t step = 0; step < graph.step_count(); ++step) {
    const std::vector<double> lanes = LaneTicks(graph, step);
    shortest += std::max(*std::max_element(lanes.begin(), lanes.end()),
                         LongestChainTicks(graph, step, order)) /
                graph.step_count();
  }
  return PerSecond(shortest);
}

}  // namespace

ThroughputBound::ThroughputBound(const JobProgram& job, const Scenario& scenario)
    : links_(std::numeric_limits<double>::infinity()),
      scenario_(scenario),
      collectives_(job.collectives) {
  const Program& graph = *job.program;
  alone_.push_back(AlonePerSecond(graph));
  for (size_t i = 1; i < job.of_recorded.size(); ++i)
    alone_.push_back(AlonePerSecond(*job.of_recorded[i]));
  const std::vector<double> lanes = LaneTicks(graph, 0);
  if (graph.lanes().networks() > 0)
    links_ = PerSecond(*std::max_element(lanes.begin() + graph.lanes().first_link(), lanes.end()));
}

ThroughputBound::ThroughputBound(PipelinePlan plan, const Scenario& scenario)
    : scenario_(scenario), plan_(std::move(plan)) {}

// Steps per second of all workers. Several at once share the link, and gain no more than what
// launches and latencies leave of it; cycles fuse what is ready; and rounds one by one are rounded,
// each. No bound is claimed of those.
double ThroughputBound::CollectivesAlone(int32_t workers) const {
  if (collectives_.empty() || !GoOneByOne(scenario_))
    return std::numeric_limits<double>::infinity();
  Scenario scenario = scenario_;
  scenario.workers = workers;
  const double seconds = CollectiveSeconds(collectives_, scenario);
  return seconds > 0 ? workers / seconds : std::numeric_limits<double>::infinity();
}

double ThroughputBound::StepsPerSecond(int32_t workers) const {
  if (plan_.has_value()) {
    // A mean of few of a replica's steps may by chance be so much shorter.
    constexpr double kByChance = 1.05;
    Scenario scenario = scenario_;
    scenario.workers = workers;
    return kByChance * MostStepsPerSecond(*plan_, scenario);
  }
  if (alone_.empty()) return std::numeric_limits<double>::infinity();
  double alone = 0;
  for (int32_t worker = 0; worker < workers; ++worker)
    alone += alone_[Index(worker) % alone_.size()];
  return std::min({alone, links_, CollectivesAlone(workers)});
}

}  // namespace stepcast
