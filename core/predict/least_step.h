// One step of one worker alone, every operation at its least recorded time: what an order of transfers is judged by.
//
// Source: TicTac (SysML 2019), sections 3.2 and 5.
// Threads: immutable after Build.
#pragma once

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"

#include "core/base/stop_check.h"
#include "core/base/time.h"
#include "core/engine/step_graph.h"
#include "core/model/profile.h"
#include "core/model/scenario.h"
#include "core/ordering/schedule_bounds.h"

namespace stepcast {

class LeastStep {
 public:
  // Of the scenario: bandwidth, parsing overhead, servers and multiplexing; all workers but one, and what sets workers apart, are left out.
  // Failure: OUT_OF_RANGE, reason SIMULATED_TIME_EXHAUSTED, where all operations one after the other take longer than there is simulated time.
  // REQUIRES: scenario was resolved for this profile.
  static absl::StatusOr<LeastStep> Build(const Profile& profile, const Scenario& scenario);

  const StepGraph& graph() const { return graph_; }
  // Over all operations: uploads and updates on servers too. The downloads of all servers share the worker's own link, so they are one resource here;
  // so are the uploads.
  const ScheduleBounds& bounds() const { return bounds_; }
  // By the engine. `ranks` by operation of graph(); empty: graph order.
  // Failure: as Simulate.
  absl::StatusOr<Span> Makespan(const std::vector<int32_t>& ranks, StopCheck stop) const;

 private:
  LeastStep(StepGraph graph, double bandwidth_bytes_per_second);

  StepGraph graph_;
  double bandwidth_bytes_per_second_;
  ScheduleBounds bounds_;
};

}  // namespace stepcast
