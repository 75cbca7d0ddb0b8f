// The work of one lane of one worker, run in a single loop once all its arrivals are known.
//
// A lane's operations wait for transfers (sources), which arrive, and for each other; transfers that wait for them (sinks) become ready. Where
// nothing that the lane does can change when its sources arrive, there is no need for a queue of events: the loop pops, runs and releases, with the
// rounds of an instant as core/README.md defines them, and the instants are the plain engine's. Cost: some nanoseconds an operation and dependency.
// Threads: none; the scratch memory belongs to one run.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <vector>

#include "core/base/time.h"
#include "core/engine/step_graph.h"

namespace stepcast {

class LaneSchedule {
 public:
  // Sources, operations and sinks are counted from 0, in the order in which they were given.
  struct Arrival {
    Instant at;
    int32_t source = 0;
  };
  struct Ready {
    Instant at;
    int32_t sink = 0;
    bool late = false;  // not in the first round of the instant: behind what was stopped at it
  };
  // What runs, as it runs; for whoever wants to know no more than the end.
  struct Unwatched {
    void Ran(int32_t /*op*/, Instant /*start*/, Instant /*end*/) const {}
  };

  LaneSchedule() = default;
  // Each ascending. Dependencies on or of other operations do not count.
  LaneSchedule(const StepGraph& graph, std::vector<OpIndex> sources, std::vector<OpIndex> operations, std::vector<OpIndex> sinks);

  const std::vector<OpIndex>& sources() const { return sources_; }
  const std::vector<OpIndex>& operations() const { return operations_; }
  const std::vector<OpIndex>& sinks() const { return sinks_; }

  // Runs one step; returns the instant of the last arrival or end. `durations`: of the operations. `ready`: every sink is appended, in the order in
  // which they become ready. REQUIRES: arrivals ascend and are after `begin`, but for operations that wait for nothing, which are there at `begin`.
  template <typename Watcher>
  Instant Run(Instant begin, std::span<const Arrival> arrivals, const int64_t* durations, std::vector<Ready>& ready, Watcher&& watcher) {
    std::memcpy(pending_.data(), pending_counts_.data(), pending_counts_.size() * sizeof(int32_t));
    int32_t* const queue = queue_.data();
    const int32_t* tail = std::copy(roots_.begin(), roots_.end(), queue);
    tail_ = queue + (tail - queue);
    ready_ = &ready;
    now_ = begin;
    late_ = false;
    const int32_t* head = queue;
    const Arrival* arrival = arrivals.data();
    const Arrival* const last = arrival + arrivals.size();
    while (true) {
      if (head == tail_) {
        if (arrival == last) break;
        now_ = arrival->at;
        arrival = Arrive(arrival, last, -1);
        continue;
      }
      const int32_t op = *head++;
      const int64_t duration = durations[op];
      const Instant start = now_;
      const Instant end = start + Span{duration};
      while (arrival != last && arrival->at < end) {
        now_ = arrival->at;
        arrival = Arrive(arrival, last, -1);
      }
      now_ = end;
      if (arrival != last && arrival->at == end) {
        arrival = Arrive(arrival, last, op);
      } else {
        late_ = duration == 0;
        Release(static_cast<size_t>(op) + sources_.size());
        late_ = false;
      }
      watcher.Ran(op, start, end);
    }
    return now_;
  }

 private:
  // Of a node, first a source or an operation: what waits for it. Targets below operations_.size() are operations, the others sinks.
  void Release(size_t node) {
    const auto operations = static_cast<int32_t>(operations_.size());
    for (int32_t i = first_target_[node]; i < first_target_[node + 1]; ++i) {
      const int32_t target = targets_[static_cast<size_t>(i)];
      if (--pending_[static_cast<size_t>(target)] != 0) continue;
      if (target < operations) {
        *tail_++ = target;
      } else {
        ready_->push_back({.at = now_, .sink = target - operations, .late = late_});
      }
    }
  }

  // All that arrives at the instant of `arrival`, and with it the end of `op` (-1: none): one round, whose releases queue in graph order.
  const Arrival* Arrive(const Arrival* arrival, const Arrival* last, int32_t op) {
    int32_t* const tail_before = tail_;
    const size_t ready_before = ready_->size();
    int released = 0;
    if (op >= 0) {
      Release(static_cast<size_t>(op) + sources_.size());
      ++released;
    }
    const Instant at = arrival->at;
    for (; arrival != last && arrival->at == at; ++arrival, ++released) Release(static_cast<size_t>(arrival->source));
    if (released > 1) {
      std::sort(tail_before, tail_);
      std::sort(ready_->begin() + static_cast<std::ptrdiff_t>(ready_before), ready_->end(),
                [](const Ready& a, const Ready& b) { return a.sink < b.sink; });
    }
    return arrival;
  }

  std::vector<OpIndex> sources_;
  std::vector<OpIndex> operations_;
  std::vector<OpIndex> sinks_;
  std::vector<int32_t> targets_;
  std::vector<int32_t> first_target_;    // by node: sources, then operations; one entry more
  std::vector<int32_t> pending_counts_;  // by target: operations, then sinks
  std::vector<int32_t> roots_;
  // Of a run.
  std::vector<int32_t> pending_;
  std::vector<int32_t> queue_;
  int32_t* tail_ = nullptr;
  std::vector<Ready>* ready_ = nullptr;
  Instant now_;
  bool late_ = false;
};

}  // namespace stepcast
