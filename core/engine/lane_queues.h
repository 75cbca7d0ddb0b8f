// The chunks that wait for each lane of each worker, in the order in which they are served.
//
// Without ranks a lane serves first come first served; a transfer that its window has stopped
// rejoins at the back (ICPE 2020, 3.2.2). With ranks, a connection first serves the ranked
// transfers that have not been served yet, the lowest rank first, ties by arrival; then, first come
// first served, the unranked ones and those that were stopped, which are in line since they were
// stopped: an order cannot undo the switching (3.3), and does not touch what it does not name.
// Cost: O(1), with ranks O(log waiting). Memory: 4 bytes an operation and worker, 8 where transfers
// take turns. Threads: none.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "core/engine/job_graph.h"
#include "core/engine/program.h"

namespace stepcast {

// A piece of an operation that a lane serves without interruption.
struct Chunk {
  OpIndex op = -1;      // -1: none
  int32_t service = 0;  // of a transfer: which of its services

  explicit operator bool() const { return op >= 0; }
};

class LaneQueues {
 public:
  // The job must outlive it.
  LaneQueues(const JobGraph& job, bool ranked)
      : lane_count_(Index(job.lanes().count())),
        first_link_(job.lanes().first_link()),
        ranked_(ranked) {
    const auto workers = Index(job.workers());
    int32_t total = 0;
    int32_t most_services = 1;
    capacity_.assign(lane_count_, 0);
    for (const std::shared_ptr<const Program>& program : job.programs) {
      size_ = std::max(size_, Index(program->size()));
      most_services = std::max(most_services, program->most_services());
      for (LaneIndex lane = 0; Index(lane) < lane_count_; ++lane)
        capacity_[Index(lane)] = std::max(capacity_[Index(lane)], program->operations_on(lane));
    }
    for (const int32_t capacity : capacity_) {
      first_.push_back(total);
      total += capacity;
    }
    slots_per_worker_ = static_cast<size_t>(total);
    slots_.resize(slots_per_worker_ * workers);
    rings_.resize(lane_count_ * workers);
    if (ranked_) unserved_.resize(rings_.size());
    if (most_services > 2) services_.resize(workers * size_);
  }

  // `rank` (kUnranked: none) matters on ranked connections only.
  void Push(int32_t worker, LaneIndex lane, OpIndex op, int32_t rank) {
    if (ranked_ && rank != Ranking::kUnranked && lane >= first_link_) {
      std::vector<Ranked>& heap = unserved_[Ring(worker, lane)];
      heap.push_back({.rank = rank, .arrival = arrivals_++, .op = op});
      std::push_heap(heap.begin(), heap.end());
    } else {
      PushBack(worker, lane, op);
    }
  }

  // `next`: the service that it waits for.
  void PushStopped(int32_t worker, LaneIndex lane, Chunk next) {
    if (!services_.empty()) services_[ServiceOf(worker, next.op)] = next.service;
    PushBack(worker, lane, ~next.op);
  }

  // True if what comes to this lane next would also be served next, whatever else comes at the same
  // instant.
  bool NothingGoesBefore(int32_t worker, LaneIndex lane) const {
    return rings_[Ring(worker, lane)].size == 0 && !(ranked_ && lane >= first_link_);
  }

  // The next chunk, taken out; none where nothing waits.
  Chunk Pop(int32_t worker, LaneIndex lane) {
    if (ranked_ && lane >= first_link_) {
      std::vector<Ranked>& heap = unserved_[Ring(worker, lane)];
      if (!heap.empty()) {
        std::pop_heap(heap.begin(), heap.end());
        const OpIndex op = heap.back().op;
        heap.pop_back();
        return {.op = op};
      }
    }
    RingState& ring = rings_[Ring(worker, lane)];
    if (ring.size == 0) return {};
    const int32_t entry = slots_[Slot(worker, lane, ring.head)];
    ring.head = ring.head + 1 == capacity_[Index(lane)] ? 0 : ring.head + 1;
    --ring.size;
    if (entry >= 0) return {.op = entry};
    return {.op = ~entry, .service = services_.empty() ? 1 : services_[ServiceOf(worker, ~entry)]};
  }

 private:
  struct RingState {
    int32_t head = 0;
    int32_t size = 0;
  };
  struct Ranked {
    int32_t rank = 0;
    uint64_t arrival = 0;
    OpIndex op = 0;
    // The standard heap has its greatest first, so the first to be served is the greatest.
    friend bool operator<(const Ranked& a, const Ranked& b) {
      return a.rank != b.rank ? a.rank > b.rank : a.arrival > b.arrival;
    }
  };

  size_t Ring(int32_t worker, LaneIndex lane) const {
    return Index(worker) * lane_count_ + Index(lane);
  }
  size_t ServiceOf(int32_t worker, OpIndex op) const { return Index(worker) * size_ + Index(op); }
  size_t Slot(int32_t worker, LaneIndex lane, int32_t at) const {
    return static_cast<size_t>(worker) * slots_per_worker_ +
           static_cast<size_t>(first_[static_cast<size_t>(lane)] + at);
  }
  // An operation waits at most once at a time, so a ring of all the lane's operations never
  // overflows.
  void PushBack(int32_t worker, LaneIndex lane, int32_t entry) {
    RingState& ring = rings_[Ring(worker, lane)];
    int32_t at = ring.head + ring.size;
    if (at >= capacity_[Index(lane)]) at -= capacity_[Index(lane)];
    slots_[Slot(worker, lane, at)] = entry;
    ++ring.size;
  }

  const size_t lane_count_;
  const LaneIndex first_link_;
  const bool ranked_;
  size_t size_ = 0;                // operations of the largest program
  std::vector<int32_t> capacity_;  // by lane: the most that can wait
  std::vector<int32_t> first_;     // by lane: its first slot
  size_t slots_per_worker_ = 0;
  std::vector<int32_t> slots_;     // op, or ~op where it was stopped
  std::vector<RingState> rings_;   // by worker and lane
  std::vector<int32_t> services_;  // by worker and operation: the next one of what was stopped;
                                   // empty where it is always the second
  std::vector<std::vector<Ranked>> unserved_;  // by worker and lane; heaps
  uint64_t arrivals_ = 0;
};

}  // namespace stepcast
