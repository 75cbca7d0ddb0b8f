// The work of one lane of one worker, run in a single loop once all its arrivals are known.
//
// A lane's operations wait for transfers (sources), which arrive, and for each other; transfers
// that wait for them (sinks) become ready. Where nothing that the lane does can change when its
// sources arrive, there is no need for a queue of events: the loop pops, runs and releases, with
// the rounds of an instant as core/README.md defines them, and the instants are the plain engine's.
// Cost: some nanoseconds an operation and dependency. Threads: none; the scratch memory belongs to
// one run.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "core/base/time.h"
#include "core/engine/program.h"

namespace stepcast {

// A watcher of LaneSchedule: busy time until some instant.
struct BusyUntil {
  void Ran(int32_t /*op*/, Instant start, Instant end) {
    if (start < until) busy += (std::min(end, until) - start).ticks;
  }

  Instant until;
  int64_t busy = 0;
};

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
    int32_t round =
        0;  // of the instant: 0 for what is there when the instant's first ends are done
  };
  // A no-op watcher, for a run of which only the end is wanted.
  struct Unwatched {
    void Ran(int32_t /*op*/, Instant /*start*/, Instant /*end*/) const {}
  };

  LaneSchedule() = default;
  // Each ascending. Dependencies on or of other operations do not count. `arrival_order`: by
  // source, greater for what arrives later on the same lane; then of the sources of a lane that
  // something waits for, only the last counts. Empty: not known.
  LaneSchedule(const Program& graph, std::vector<OpIndex> sources, std::vector<OpIndex> operations,
               std::vector<OpIndex> sinks, const std::vector<int32_t>& arrival_order = {});

  const std::vector<OpIndex>& sources() const { return sources_; }
  const std::vector<OpIndex>& operations() const { return operations_; }
  const std::vector<OpIndex>& sinks() const { return sinks_; }
  // True if the arrival of a source can do anything but be the last.
  bool Matters(int32_t source) const {
    return first_target_[static_cast<size_t>(source)] <
           first_target_[static_cast<size_t>(source) + 1];
  }
  // By operation: the index, in `arriving`, of the last source that it waits for, if only through
  // other operations; -1 where it waits for none. REQUIRES: sources arrive in that order, and no
  // two at one instant; those that are left out do not matter.
  std::vector<int32_t> LastAwaited(std::span<const int32_t> arriving);

  // Runs one step; returns the instant of the last arrival or end. `durations`: of the operations.
  // `ready`: every sink is appended, in the order in which they become ready. REQUIRES: arrivals
  // ascend and are after `begin`, when operations that wait for nothing are there; those that do
  // not matter may be left out.
  template <typename Watcher>
  Instant Run(Instant begin, std::span<const Arrival> arrivals, const int64_t* durations,
              std::vector<Ready>& ready, Watcher&& watcher) {
    if (in_order_of_arrival_) return RunInOrderOfArrival(begin, arrivals, durations, watcher);
    std::copy(pending_counts_.begin(), pending_counts_.end(), pending_.begin());
    int32_t* const pending = pending_.data();
    const auto operations = static_cast<int32_t>(operations_.size());
    const int32_t* head = queue_.data();
    int32_t* tail = std::copy(roots_.begin(), roots_.end(), queue_.data());
    const Arrival* arrival = arrivals.data();
    const Arrival* const last = arrival + arrivals.size();
    Instant now = begin;
    int32_t round = 0;

    // Everything that waits for a node, a source or an operation, joins the queue or becomes ready.
    const auto release = [&](size_t node) __attribute__((always_inline)) {
      const int32_t* const end = targets_.data() + first_target_[node + 1];
      for (const int32_t* target = targets_.data() + first_target_[node]; target != end; ++target) {
        if (--pending[*target] != 0) continue;
        if (*target < operations) {
          *tail++ = *target;
        } else {
          ready.push_back({.at = now, .sink = *target - operations, .round = round});
        }
      }
    };
    const auto release_operation = [&](int32_t op) {
      release(static_cast<size_t>(op) + sources_.size());
    };
    // The arrivals of one instant, with what has been released at it already, are one round, which
    // queues in graph order.
    const auto take_rest_of_instant = [&](int32_t* tail_before, size_t ready_before) {
      while (arrival != last && arrival->at == now) release(static_cast<size_t>(arrival++->source));
      std::sort(tail_before, tail);
      std::sort(ready.begin() + static_cast<std::ptrdiff_t>(ready_before), ready.end(),
                [](const Ready& a, const Ready& b) { return a.sink < b.sink; });
    };
    const auto take_arrivals = [&]() __attribute__((always_inline)) {
      now = arrival->at;
      round = 0;
      int32_t* const tail_before = tail;
      const size_t ready_before = ready.size();
      release(static_cast<size_t>(arrival->source));
      if (++arrival != last && arrival->at == now) take_rest_of_instant(tail_before, ready_before);
    };

    while (true) {
      if (head == tail) {
        if (arrival == last) break;
        take_arrivals();
        continue;
      }
      const int32_t op = *head++;
      const Instant start = now;
      const Instant end = start + Span{durations[op]};
      // Zero-length work forms the next round of the same instant.
      const int32_t end_round = start == end ? round + 1 : 0;
      while (arrival != last && arrival->at < end) take_arrivals();
      now = end;
      round = end_round;
      if (arrival != last && arrival->at == end) {
        int32_t* const tail_before = tail;
        const size_t ready_before = ready.size();
        release_operation(op);
        take_rest_of_instant(tail_before, ready_before);
      } else {
        release_operation(op);
      }
      watcher.Ran(op, start, end);
    }
    return now;
  }

 private:
  using Edges = std::vector<std::vector<int32_t>>;  // targets by source

  Edges TargetsOfSources(const Program& graph, const std::vector<int32_t>& target_of,
                         const std::vector<int32_t>& arrival_order) const;
  void AddNode(const std::vector<int32_t>& targets);
  bool RunsInOrderOfArrival(const Program& graph) const;
  // Run, given in_order_of_arrival_.
  template <typename Watcher>
  Instant RunInOrderOfArrival(Instant begin, std::span<const Arrival> arrivals,
                              const int64_t* durations, Watcher&& watcher) {
    Instant now = begin;
    for (const Arrival& arrival : arrivals) {
      const int32_t op = only_target_[static_cast<size_t>(arrival.source)];
      const Instant start = std::max(now, arrival.at);
      now = op < 0 ? start : start + Span{durations[op]};
      if (op >= 0) watcher.Ran(op, start, now);
    }
    return now;
  }

  std::vector<OpIndex> sources_;
  std::vector<OpIndex> operations_;
  std::vector<OpIndex> sinks_;
  std::vector<int32_t> targets_;
  std::vector<int32_t> first_target_;    // by node: sources, then operations; one entry more
  std::vector<int32_t> pending_counts_;  // by target: operations, then sinks
  std::vector<int32_t> roots_;
  // Every source releases at most one operation, operations release nothing, and sources arrive one
  // at a time.
  bool in_order_of_arrival_ = false;
  std::vector<int32_t> only_target_;  // by source, the operation that waits for it; -1: none; if
                                      // in_order_of_arrival_
  // State of a run.
  std::vector<int32_t> pending_;
  std::vector<int32_t> queue_;
};

}  // namespace stepcast
