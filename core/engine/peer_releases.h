// The operations of a run that wait for operations of other workers, step by step.
//
// A worker that is ahead may end an operation before the waiting worker has begun the same step, so
// ends are counted. What other workers' ends release (edges) begins a round of its own; gatherings
// are known before the round in which they are completed goes on. Threads: none. Cost: O(edges of
// the operation) an end, O(workers) an end that completes a gathering, O(edges and gatherings) a
// step.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "core/engine/job_graph.h"

namespace stepcast {

class PeerReleases {
 public:
  // The job must outlive it.
  explicit PeerReleases(const JobGraph& job)
      : edges_(job.peer_edges),
        gatherings_(job.gatherings),
        workers_(job.workers()),
        begun_(Index(workers_), 0),
        gathered_(gatherings_.size()) {
    ended_.assign(edges_.size() * Index(workers_), 0);
    for (size_t edge = 0; edge < edges_.size(); ++edge)
      ListOf(edges_from_, edges_[edge].before).push_back(edge);
    for (size_t i = 0; i < gatherings_.size(); ++i) {
      for (const OpIndex before : gatherings_[i].befores)
        ListOf(gatherings_of_, before).push_back(i);
    }
  }

  bool has_edges() const { return !edges_.empty(); }
  bool has_gatherings() const { return !gatherings_.empty(); }

  // The worker's next step begins; adds to `pending` what each of its operations has to wait for.
  void BeginStep(int32_t worker, int32_t* pending) {
    const int64_t step = ++begun_[Index(worker)];
    for (size_t edge = 0; edge < edges_.size(); ++edge) {
      if (EndedOf(edge, worker) < step) ++pending[edges_[edge].after];
    }
    for (size_t i = 0; i < gatherings_.size(); ++i) {
      if (gathered_[i].steps < NeededBy(i, step)) ++pending[gatherings_[i].after];
    }
  }

  // An operation of the worker's step has ended. Nobody knows before TakeReleased, so that the
  // order of workers within an instant does not show.
  void End(int32_t worker, OpIndex op) {
    if (Index(op) >= edges_from_.size()) return;
    for (const size_t edge : edges_from_[Index(op)]) {
      const int32_t waiting =
          (worker - edges_[edge].worker_offset % workers_ + workers_) % workers_;
      told_.emplace_back(waiting, edge);
    }
  }
  bool HasReleased() const { return !told_.empty(); }
  // Calls release(worker, op) for each end since the last call that a step under way waits for, and
  // run(worker) after those of a worker; workers and operations ascend.
  template <typename Release, typename Run>
  void TakeReleased(Release release, Run run) {
    std::vector<std::pair<int32_t, OpIndex>> released;
    for (const auto& [waiting, edge] : told_) {
      // A step that begins later looks for itself.
      if (++EndedOf(edge, waiting) == begun_[Index(waiting)])
        released.emplace_back(waiting, edges_[edge].after);
    }
    told_.clear();
    std::sort(released.begin(), released.end());
    for (size_t i = 0; i < released.size(); ++i) {
      release(released[i].first, released[i].second);
      if (i + 1 == released.size() || released[i + 1].first != released[i].first)
        run(released[i].first);
    }
  }

  // An operation of the worker's step ends in the round at hand; calls release(worker, op) for all
  // that gatherings which it completes have kept from steps under way.
  template <typename Release>
  void Gather(int32_t worker, OpIndex op, Release release) {
    if (Index(op) >= gatherings_of_.size()) return;
    for (const size_t i : gatherings_of_[Index(op)]) {
      int64_t& count = gathered_[i].ends[static_cast<size_t>(begun_[Index(worker)] % 2)];
      if (++count < static_cast<int64_t>(gatherings_[i].befores.size()) * workers_) continue;
      count = 0;
      const int64_t steps = ++gathered_[i].steps;
      for (int32_t waiting = 0; waiting < workers_; ++waiting) {
        if (NeededBy(i, begun_[Index(waiting)]) == steps) release(waiting, gatherings_[i].after);
      }
    }
  }

 private:
  struct Gathered {
    int64_t steps = 0;  // in which all was there
    // By step, odd or even: a worker that is in the one after the next has waited for all of it.
    std::array<int64_t, 2> ends{};
  };

  static std::vector<size_t>& ListOf(std::vector<std::vector<size_t>>& lists, OpIndex op) {
    if (Index(op) >= lists.size()) lists.resize(Index(op) + 1);
    return lists[Index(op)];
  }
  int64_t& EndedOf(size_t edge, int32_t worker) {
    return ended_[edge * Index(workers_) + Index(worker)];
  }
  // The steps that must have been gathered before the operation of that step, from 1, may begin.
  int64_t NeededBy(size_t gathering, int64_t step) const {
    return gatherings_[gathering].of_last_step ? step - 1 : step;
  }

  const std::vector<PeerEdge>& edges_;
  const std::vector<Gathering>& gatherings_;
  const int32_t workers_;
  std::vector<std::vector<size_t>> edges_from_;     // by operation
  std::vector<std::vector<size_t>> gatherings_of_;  // likewise
  std::vector<int64_t> begun_;                      // by worker: steps
  std::vector<int64_t> ended_;                      // by edge and waiting worker
  std::vector<Gathered> gathered_;                  // by gathering
  std::vector<std::pair<int32_t, size_t>> told_;    // waiting worker, edge
};

}  // namespace stepcast
