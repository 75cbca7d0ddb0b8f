// The step in which every operation takes its least time: its makespan by an order, and bounds of
// that.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "absl/status/statusor.h"

#include "core/base/stop_check.h"
#include "core/base/time.h"
#include "core/communication/parameter_servers.h"
#include "core/engine/job_graph.h"
#include "core/engine/program.h"
#include "core/model/profile.h"
#include "core/model/scenario.h"
#include "core/orders/transfer_graph.h"

namespace stepcast {

// Bounds of the time that a step takes: for every schedule of it, and for every order of downloads.
//
// Threads: pure functions.

// The bounds of makespans: between which of them every schedule of one step lies, and where a given
// one lies between them.
//
// Source: TicTac (SysML 2019), section 3.2.
struct ScheduleBounds {
  Span upper;  // everything after one another (Eq. 1)
  Span lower;  // the busiest resource never idle (Eq. 2)

  // (upper - makespan) / (upper - lower): 1 is the best schedule thinkable, 0 the worst (Eq. 3). 1
  // where the bounds coincide.
  double Efficiency(Span makespan) const;
  // (upper - lower) / lower: the most that an order could speed a step up (Eq. 4). 0 where nothing
  // takes any time.
  double SpeedupBound() const;

  friend bool operator==(const ScheduleBounds&, const ScheduleBounds&) = default;
};

// From the sum of times of each resource's operations. REQUIRES: their sum is a valid Span.
ScheduleBounds BoundsOf(std::span<const Span> time_by_resource);

// With more groups (DependencyGroups) than this only the transfers are looked at.
inline constexpr int32_t kMaxGroupsToBound = 4096;

// A time that no order of downloads can beat.
//
// Meaning: of the computations that wait, directly or through others, for a set of downloads, none
// begins before the whole set has travelled, and they are done one after the other; so no step is
// shorter than a set's transfers and the computations behind it. The greatest such sum over the
// sets of the graph is the bound. On a chain of layers it is the best makespan itself; with
// branches it may lie below.
// All downloads on one link, one after the other, all computations on one processor. Cost: as
// DependencyGroups::Build, and O(groups x dependencies between them). Failure: what `stop` returns.
absl::StatusOr<Span> LeastMakespan(const TransferGraph& graph, StopCheck stop);

// One step of one worker alone, every operation at its least recorded time: orders of transfers are
// judged by it.
//
// Its link and its speed are those of the scenario's first group of workers. Source: TicTac (SysML
// 2019), sections 3.2 and 5. Threads: immutable after Build.
class LeastStep {
 public:
  // The scenario's bandwidth, parsing overhead, servers, multiplexing and first group count; all
  // workers but one are left out. Failure: OUT_OF_RANGE, reason SIMULATED_TIME_EXHAUSTED, where all
  // operations one after the other take longer than there is simulated time; what `stop` returns.
  // REQUIRES: scenario was resolved for this profile.
  static absl::StatusOr<LeastStep> Build(const Profile& profile, const Scenario& scenario,
                                         StopCheck stop = NeverStop);

  const Program& graph() const { return *program_; }
  // Time of a computation, at the worker's speed.
  Span duration(OpIndex op) const;
  // True if the worker's own link may hold back what several servers send it, or get from it, at
  // once.
  bool worker_link_binds() const;
  // In units of 1/MaxMinNetwork::kUnit of a server's link.
  int64_t worker_link_capacity() const;
  // The time of the worker's own link for what a server's takes `time` for, rounded down.
  Span OnWorkerLink(Span time) const;
  // Over all operations: uploads and updates on servers too. Every server's link is a resource in
  // each direction, and so is the worker's own, which all of them share: links of several servers
  // are busy at once as far as the worker's own lets them.
  const ScheduleBounds& bounds() const { return bounds_; }
  // The same of each recorded step, its computations at their own times. Failure: as Build.
  // REQUIRES: as Build.
  static absl::StatusOr<std::vector<ScheduleBounds>> BoundsOfSteps(const Profile& profile,
                                                                   const Scenario& scenario,
                                                                   StopCheck stop);
  // By the engine. `ranks` by operation of graph(); empty: graph order.
  // Failure: as Simulate.
  absl::StatusOr<Span> Makespan(const std::vector<int32_t>& ranks, StopCheck stop) const;

 private:
  LeastStep(Program graph, const Scenario& alone);
  // A step of one worker alone, without bounds.
  static absl::StatusOr<LeastStep> Make(const Profile& profile, const Scenario& scenario,
                                        ProgramTimes times, StopCheck stop);

  // All operations one after the other. May be past what a Span holds.
  double TicksOfAll(int32_t step) const;
  Span DurationIn(int32_t step, OpIndex op) const;
  ScheduleBounds BoundsOfGraph(int32_t step) const;

  std::shared_ptr<const Program> program_;
  JobGraph job_;
  ScheduleBounds bounds_;
};

}  // namespace stepcast
