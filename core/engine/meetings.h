// The meetings of a run's workers: coupled operations, and ends of steps, that wait until every
// member of their group is there.
//
// Threads: none. Cost: O(1) for an arrival, O(members) for a meeting. Memory: 4 bytes a worker and
// coupled operation.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "core/base/time.h"
#include "core/engine/job_graph.h"

namespace stepcast {

class Meetings {
 public:
  // The job must outlive it. Ends of steps up to `warmup` do not count for StragglerFraction.
  Meetings(const JobGraph& job, int32_t warmup)
      : job_(job), warmup_(warmup), workers_(Index(job.workers())), states_(job.couplings.size()) {
    for (size_t i = 0; i < job.couplings.size(); ++i) {
      const Coupling& coupling = job.couplings[i];
      couples_operations_ = couples_operations_ || coupling.op != kStepEnd;
      if (RowOf(coupling.op) < 0) AddRow(coupling.op);
      for (const int32_t worker : MembersOf(i))
        coupling_of_[CellOf(worker, coupling.op)] = static_cast<int32_t>(i);
    }
  }

  // True if any operation but the end of a step is coupled.
  bool couples_operations() const { return couples_operations_; }
  bool Couples(int32_t worker, OpIndex op) const {
    return RowOf(op) >= 0 && coupling_of_[CellOf(worker, op)] >= 0;
  }
  // REQUIRES: Couples(worker, op).
  void Arrive(int32_t worker, OpIndex op, Instant now) {
    const auto coupling = Index(coupling_of_[CellOf(worker, op)]);
    State& state = states_[coupling];
    if (state.waiting++ == 0) state.first = now;
    if (Index(state.waiting) == MembersOf(coupling).size()) full_.push_back(coupling);
  }

  bool HasFull() const { return !full_.empty(); }
  // Calls pass(op, members) for every meeting that was full, in the order of the couplings.
  template <typename Pass>
  void PassFull(Instant now, Pass pass) {
    std::vector<size_t> full = std::move(full_);
    full_.clear();
    std::sort(full.begin(), full.end());
    for (const size_t coupling : full) {
      Note(coupling, now);
      pass(job_.couplings[coupling].op, std::span<const int32_t>(MembersOf(coupling)));
    }
  }

  // The largest share of an iteration that its first worker has waited at the end of its step for
  // the last one.
  double StragglerFraction() const { return straggler_fraction_; }

 private:
  struct State {
    int32_t waiting = 0;
    int64_t meetings = 0;
    Instant first;  // to arrive
    Instant last;   // meeting
  };

  const std::vector<int32_t>& MembersOf(size_t coupling) const {
    return job_.groups[Index(job_.couplings[coupling].group)];
  }
  int32_t RowOf(OpIndex op) const {
    const size_t at = Index(op + 1);
    return at < row_of_.size() ? row_of_[at] : -1;
  }
  void AddRow(OpIndex op) {
    if (Index(op + 1) >= row_of_.size()) row_of_.resize(Index(op + 1) + 1, -1);
    row_of_[Index(op + 1)] = static_cast<int32_t>(coupling_of_.size() / workers_);
    coupling_of_.resize(coupling_of_.size() + workers_, -1);
  }
  size_t CellOf(int32_t worker, OpIndex op) const {
    return Index(RowOf(op)) * workers_ + Index(worker);
  }

  void Note(size_t coupling, Instant now) {
    State& state = states_[coupling];
    state.waiting = 0;
    if (job_.couplings[coupling].op == kStepEnd && ++state.meetings > warmup_) {
      straggler_fraction_ =
          std::max(straggler_fraction_, ToSeconds(now - state.first) / ToSeconds(now - state.last));
    }
    state.last = now;
  }

  const JobGraph& job_;
  const int32_t warmup_;
  const size_t workers_;
  std::vector<State> states_;  // by coupling
  bool couples_operations_ = false;
  std::vector<int32_t> row_of_;       // by operation + 1, in coupling_of_; -1: none
  std::vector<int32_t> coupling_of_;  // by row and worker; -1: none
  std::vector<size_t> full_;
  double straggler_fraction_ = 0;
};

}  // namespace stepcast
