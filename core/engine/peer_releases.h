// The operations of a run that wait for operations of other workers, step by step.
//
// A worker that is ahead may end an operation before the waiting worker has begun the same step, so
// ends are counted. Threads: none. Cost: O(edges of the operation) an end, O(edges) a step.
#pragma once

#include <algorithm>
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
      : edges_(job.peer_edges), workers_(job.workers()), begun_(Index(workers_), 0) {
    ended_.assign(edges_.size() * Index(workers_), 0);
    for (size_t edge = 0; edge < edges_.size(); ++edge) {
      if (Index(edges_[edge].before) >= edges_from_.size())
        edges_from_.resize(Index(edges_[edge].before) + 1);
      edges_from_[Index(edges_[edge].before)].push_back(edge);
    }
  }

  bool empty() const { return edges_.empty(); }

  // The worker's next step begins; adds to `pending` what each of its operations has to wait for.
  void BeginStep(int32_t worker, int32_t* pending) {
    const int64_t step = ++begun_[Index(worker)];
    for (size_t edge = 0; edge < edges_.size(); ++edge) {
      if (EndedOf(edge, worker) < step) ++pending[edges_[edge].after];
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

 private:
  int64_t& EndedOf(size_t edge, int32_t worker) {
    return ended_[edge * Index(workers_) + Index(worker)];
  }

  const std::vector<PeerEdge>& edges_;
  const int32_t workers_;
  std::vector<std::vector<size_t>> edges_from_;   // by operation
  std::vector<int64_t> begun_;                    // by worker: steps
  std::vector<int64_t> ended_;                    // by edge and waiting worker
  std::vector<std::pair<int32_t, size_t>> told_;  // waiting worker, edge
};

}  // namespace stepcast
