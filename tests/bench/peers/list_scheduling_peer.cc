#include "tests/bench/peers/list_scheduling_peer.h"

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <vector>

#include "tests/bench/cpu_clock.h"
#include "tests/bench/peers/sampled_steps.h"

namespace stepcast::bench {

namespace {

constexpr int64_t kIdle = std::numeric_limits<int64_t>::max();

class Pass {
 public:
  explicit Pass(const FlatGraph& graph)
      : graph_(graph),
        waiting_(graph.size()),
        order_(graph.size()),
        lanes_(static_cast<size_t>(graph.lanes)) {
    int32_t first = 0;
    for (size_t i = 0; i < lanes_.size(); ++i) {
      lanes_[i].first = first;
      first += graph.operations_on[i];
    }
  }

  // One step; returns when it ends.
  int64_t Run(int64_t begin, int32_t recorded) {
    std::memcpy(waiting_.data(), graph_.dependency_count.data(), waiting_.size() * sizeof(int32_t));
    alone_ = &graph_.alone[static_cast<size_t>(recorded) * graph_.size()];
    now_ = begin;
    for (Lane& lane : lanes_) lane = {.first = lane.first, .head = lane.first, .tail = lane.first};
    for (const int32_t root : graph_.roots) Add(root);
    for (size_t left = graph_.size(); left > 0; --left) CompleteEarliest();
    return now_;
  }

 private:
  struct Lane {
    int32_t first = 0;  // of its part of order_
    int32_t head = 0;   // runs, or is the next to
    int32_t tail = 0;
    int64_t end = kIdle;
  };

  void Add(int32_t op) {
    Lane& lane = lanes_[static_cast<size_t>(graph_.lane[static_cast<size_t>(op)])];
    order_[static_cast<size_t>(lane.tail++)] = op;
    if (lane.end == kIdle) lane.end = now_ + alone_[op].ticks;
  }

  void CompleteEarliest() {
    Lane* earliest = lanes_.data();
    for (Lane& lane : lanes_) {
      if (lane.end < earliest->end) earliest = &lane;
    }
    now_ = earliest->end;
    const auto op = static_cast<size_t>(order_[static_cast<size_t>(earliest->head++)]);
    earliest->end = earliest->head == earliest->tail
                        ? kIdle
                        : now_ + alone_[order_[static_cast<size_t>(earliest->head)]].ticks;
    for (int32_t i = graph_.first_dependent[op]; i < graph_.first_dependent[op + 1]; ++i) {
      const int32_t dependent = graph_.dependents[static_cast<size_t>(i)];
      if (--waiting_[static_cast<size_t>(dependent)] == 0) Add(dependent);
    }
  }

  const FlatGraph& graph_;
  std::vector<int32_t> waiting_;  // by operation: for how many others
  std::vector<int32_t> order_;    // of service, a part for each lane
  std::vector<Lane> lanes_;
  const Span* alone_ = nullptr;  // of the step at hand
  int64_t now_ = 0;
};

}  // namespace

PeerResult ListSchedulingPeer::Run(const RunOptions& options) const {
  PeerResult result;
  std::vector<double>& ends = result.step_ends.emplace_back();
  const double begin = ThreadCpuNs();
  SampledSteps samples(graph_.steps, options);
  Pass pass(graph_);
  int64_t now = options.start_offsets.front().ticks;
  for (int32_t step = 0; step < options.steps_per_worker; ++step) {
    now = pass.Run(now, samples.Next(0));
    ends.push_back(ToSeconds(Span{now}));
  }
  result.cost = {
      .cpu_ns = ThreadCpuNs() - begin,
      .operations = int64_t{options.steps_per_worker} * static_cast<int64_t>(graph_.size())};
  return result;
}

}  // namespace stepcast::bench
