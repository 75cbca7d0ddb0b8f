// The job that the engine runs, from a profile and a scenario of any kind: parameter servers or
// collectives.
//
// Threads: pure functions.
#pragma once

#include <memory>
#include <vector>

#include "absl/status/statusor.h"

#include "core/base/stop_check.h"
#include "core/communication/all_reduce.h"
#include "core/engine/job_graph.h"
#include "core/engine/program.h"
#include "core/model/profile.h"
#include "core/model/scenario.h"

namespace stepcast {

// The part that scenarios of a job share: it does not depend on the number of workers, their speeds
// and links, nor on their starts; of expanded collectives on their starts only.
struct JobProgram {
  std::shared_ptr<const Program> program;
  // Programs of a recording of several workers, with each one's times, the first of which is
  // `program`; else empty.
  std::vector<std::shared_ptr<const Program>> of_recorded;
  std::vector<PlannedCollective> collectives;     // none with parameter servers
  ExpandedRing ring;                              // of expanded collectives
  std::shared_ptr<const PreparedJoint> prepared;  // null: runs make their own, or none
  // One worker's step at the recorded speed where collectives take no time, mean over the recorded
  // steps: the longest way through the graph, with what a stream runs one after the other at least
  // as long. 0 with parameter servers. Of a recording of several: the first one's.
  double computation_seconds = 0;
};

// Worker w of a job, of a recording of several, repeats the steps of recorded worker w mod their
// number: all of them those of the same step of training where they meet in every step, else each
// what it draws for itself. Failure: what `stop` returns, and as BuildCollectiveProgram. REQUIRES,
// here and below: scenarios were resolved for this profile.
absl::StatusOr<JobProgram> BuildJobProgram(const Profile& profile, const Scenario& scenario,
                                           StopCheck stop);
bool HaveSameJobProgram(const Scenario& a, const Scenario& b);
// True if its transfers are ranked: those to parameter servers are.
inline bool IsRanked(const Scenario& scenario) { return scenario.has_servers(); }
// True if transfers of both are ranked alike, and wait for other workers alike. REQUIRES: they have
// the same program.
bool HaveSameRanking(const Scenario& a, const Scenario& b);
// REQUIRES: the program is this scenario's.
JobGraph JobOf(const JobProgram& job, std::shared_ptr<const Ranking> ranking,
               const Scenario& scenario);
// A bound of what a step of a worker is made of, told without building its program.
struct StepBound {
  double chunks = 0;  // services, parts and rounds of operations, and the step itself
  double lanes = 0;   // of a worker, with those that run nothing
};

// REQUIRES: the scenario was resolved for the profile, and has no pipeline.
StepBound StepBoundOf(const Profile& profile, const Scenario& scenario);
// The resource that a lane of the job's program stands for.
Resource ResourceOf(const LaneSpec& lane);

}  // namespace stepcast
