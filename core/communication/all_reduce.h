// A job whose workers meet in collectives, as programs for the engine, and the time of all
// collectives of a step together.
//
// Meaning: core/README.md. Gradients are fused, sharded and cut as the scenario says; what is left
// of a step is computation on the worker's streams, and collectives in graph order. Threads: pure
// functions.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

#include "core/base/stop_check.h"
#include "core/communication/expanded_ring.h"
#include "core/engine/job_graph.h"
#include "core/engine/program.h"
#include "core/model/profile.h"
#include "core/model/scenario.h"
#include "core/model/scenario_edits.h"

namespace stepcast {

// A collective of a step, after fusing, sharding and cutting. In Horovod's cycles, which fuse while
// the job runs, each gradient is one of its own.
struct PlannedCollective {
  OpIndex op = 0;        // of the program
  OpIndex last_op = -1;  // expanded: the one that ends it; -1: `op` does
  Collective kind = Collective::kAllReduce;
  bool is_gradient = true;  // gradients, or parts of their sums
  int64_t bytes = 0;
  std::vector<int32_t> members;  // the profile's operations whose buffers it carries, ascending
  int32_t threads = 0;           // of its group; 0: AllReduce::threads
  int32_t rank = 0;              // by ByteScheduler: the lowest first

  friend bool operator==(const PlannedCollective&, const PlannedCollective&) = default;
};

// The program of every worker, which does not depend on their number unless it is expanded, and its
// collectives in the order in which they begin.
struct CollectiveProgram {
  Program program;
  ExpandedRing ring;  // expanded
  std::vector<PlannedCollective> collectives;
};

// The buckets that a rule makes of gradients of so many bytes, in graph order: the number of
// gradients in each.
std::vector<int32_t> GradientsByBucket(const std::vector<int64_t>& gradient_bytes,
                                       const Fusion& fusion);

// Linear in the profile's size. Failure: what `stop` returns; INVALID_ARGUMENT, reason
// SCENARIO_INVALID, where fusing makes operations wait for each other, the profile does not say
// which parameters a computation needs that are sharded, or it is too large expanded. REQUIRES:
// scenario was resolved for this profile, and is of collectives.
absl::StatusOr<CollectiveProgram> BuildCollectiveProgram(const Profile& profile,
                                                         const Scenario& scenario, StopCheck stop);

// The failure of BuildCollectiveProgram, without building it; of parameter servers that of
// CheckServers.
absl::Status CheckCollectives(const Profile& profile, const Scenario& scenario);

// True if both have the same program, of one profile. REQUIRES: as above.
bool HaveSameCollectiveProgram(const Scenario& a, const Scenario& b);

// The collectives as joint operations, without their lengths.
JointWork JointWorkOf(const std::vector<PlannedCollective>& collectives, int32_t concurrent);

// The scenario's job: the lengths of its collectives, and the speeds of its workers.
JobGraph CollectiveJobOf(std::shared_ptr<const Program> program,
                         const std::vector<PlannedCollective>& collectives,
                         const ExpandedRing& ring, const Scenario& scenario);

// Seconds of a step's collectives one after the other, below which no step is, with contention each
// at the faster of its rates; in cycles, of its all-reduces as one, where that takes less.
double CollectiveSeconds(const std::vector<PlannedCollective>& collectives,
                         const Scenario& scenario);

// Seconds of a step's collectives one after the other while nothing is computed: those, or more
// with contention.
double LoneCollectiveSeconds(const std::vector<PlannedCollective>& collectives,
                             const Scenario& scenario);

// Seconds by which a step is shorter at most where a change of links makes the scenario `changed`,
// and its collectives took `lone_seconds` one after the other; infinite where they have no times of
// their own: in cycles, expanded, with contention.
double MostSavedSeconds(const std::vector<PlannedCollective>& collectives, double lone_seconds,
                        const Scenario& changed);

// True if collectives go one after the other, each in the time that it has alone: then no step is
// shorter than they are. Not so in cycles, expanded, or several at once.
bool GoOneByOne(const Scenario& scenario);

// True if a collective of hardly any bytes takes hardly any time, so that many small ones look as
// good as a few; there is none of one worker, or with parameter servers. REQUIRES: the scenario was
// resolved.
bool CollectivesStartFree(const Scenario& scenario);

// The links that collectives gain more of if they are twice as fast.
LinkPlace BindingLinks(const std::vector<PlannedCollective>& collectives, const Scenario& scenario);

}  // namespace stepcast
