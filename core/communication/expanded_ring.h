// Collectives by rings, chunk by chunk: each worker sends to the next, over the links between them.
//
// A collective of W workers becomes a joint operation of launch_seconds, with which it begins, its
// rounds, and one of no length, which all workers have ready at its end: 2(W-1) rounds of an
// all-reduce, W-1 of a reduce-scatter or an all-gather. In a round each worker sends a chunk of S/W
// to the next one, then the chunk is under way for the latency, and in the rounds of a
// reduce-scatter it is added. A worker sends in a round what came to it in the one before. A
// broadcast, which has no rounds, and collectives of one worker have no chunks and last as long as
// CollectiveTimes says.
//
// A chunk crosses one link of its own, the slower of its sender's and its receiver's, or the one
// inside their node; from one rack to another also the link of either to the spine, which all
// chunks in that direction share max-min fairly. On equal links a collective takes as long as
// CollectiveTimes says, but for half a tick a chunk, half a tick a latency and one a collective.
// Source of the rounds: Patarasuk and Yuan, JPDC 2009.
// Threads: pure functions.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/statusor.h"

#include "core/base/stop_check.h"
#include "core/communication/step_plan.h"
#include "core/engine/job_graph.h"
#include "core/engine/program.h"
#include "core/model/all_reduce.h"
#include "core/model/profile.h"
#include "core/model/scenario.h"

namespace stepcast {

// The parts of an expanded job besides its program.
struct ExpandedRing {
  // Program of workers that the one before reaches inside their node, where the latency there is
  // another; else null.
  std::shared_ptr<const Program> inside;
  std::vector<PeerEdge> peer_edges;
};

struct ExpandedProgram {
  Program program;
  ExpandedRing ring;
  std::vector<OpIndex> begins;  // by operation of the plan: of a collective, what it begins with
  std::vector<OpIndex> ends;    // likewise
};

// INVALID_ARGUMENT, reason SCENARIO_INVALID, field all_reduce.fidelity: more operations than
// max_expanded_operations, or, times the recorded steps, than max_expanded_times. REQUIRES, here
// and below: the scenario was resolved, with kExpanded.
absl::Status CheckExpanded(const Profile& profile, const StepPlan& plan, const Scenario& scenario,
                           const AllReduceLimits& limits = {});

// Linear in the number of operations. Failure: what `stop` returns. REQUIRES: CheckExpanded is OK.
absl::StatusOr<ExpandedProgram> ExpandedProgramOf(const Profile& profile, const StepPlan& plan,
                                                  const Scenario& scenario, StopCheck stop);

// True if a collective of that kind goes in rounds.
bool HasRounds(Collective kind, int32_t workers);

// Adds to a job with this scenario's program what chunks need: networks, programs of workers inside
// nodes, and what waits for the worker before.
void ConnectRing(const Scenario& scenario, const ExpandedRing& ring, JobGraph& job);

// True if both have the same expanded programs, of one plan.
bool HaveSameExpansion(const Scenario& a, const Scenario& b);

}  // namespace stepcast
