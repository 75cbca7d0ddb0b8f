// An obvious simulation of workers that meet in collectives: it rescans everything at every event,
// and shares nothing with the engine but the type of an instant.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "core/model/profile.h"
#include "core/model/scenario.h"

namespace stepcast::testing {

struct NaiveCollectives {
  Profile profile;    // one collective an operation: nothing is fused but by Horovod's cycles
  Scenario scenario;  // by a ring, one worker a node
  // The recorded step that a worker's step of that number repeats.
  std::function<int32_t(int32_t worker, int32_t step)> recorded;
  // With contention: threads of each ALL_REDUCE, in their order; 0, and of those beyond: the
  // scenario's.
  std::vector<int32_t> threads = {};
};

// By worker: the instants, in ticks, at which it ends its first `steps` steps, all workers starting
// at the scenario's offsets.
std::vector<std::vector<int64_t>> NaiveStepEnds(const NaiveCollectives& job, int32_t steps);

// A profile in which DistributedDataParallel's rule has fused the all-reduces: by walking, as its
// documentation says.
ProfileDraft NaivelyFused(const ProfileDraft& profile, int64_t first_bytes, int64_t cap_bytes);
// The same of groups of so many gradients.
ProfileDraft NaivelyGrouped(const ProfileDraft& profile, const std::vector<int32_t>& counts);

}  // namespace stepcast::testing
