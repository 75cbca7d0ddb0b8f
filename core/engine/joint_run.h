// The engine of jobs whose workers meet in joint operations only, and whose way between them is
// fixed (JointPlan): a worker's step costs its joint operations and nodes.
//
// It gives the plain engine's ticks, in every number of the result.
// Threads: none. Memory: some numbers a worker and joint operation, and a recorded step's times for
// each speed of a worker.
#pragma once

#include "absl/status/statusor.h"

#include "core/base/stop_check.h"
#include "core/engine/job_graph.h"
#include "core/engine/joint_plan.h"
#include "core/engine/simulation.h"

namespace stepcast {

// True if it can run such a job: no links, other meetings, cycles or priorities, nothing that slows
// computation, and neither a trace nor an end of the run at an instant of its own.
bool HasJointWorkOnly(const JobGraph& job, const RunOptions& options);

// REQUIRES: HasJointWorkOnly; prepared is of the job's program, and has a plan. Failure: as
// Simulate.
absl::StatusOr<RunResult> RunJoint(const JobGraph& job, const PreparedJoint& prepared,
                                   const RunOptions& options, StopCheck stop);

}  // namespace stepcast
