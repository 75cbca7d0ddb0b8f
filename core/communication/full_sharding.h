// Parameters of which every worker keeps a share: ZeRO-3, PyTorch's FullyShardedDataParallel.
//
// A unit is what is gathered together: the gradients that one bucket carries. Before the forward
// and again before the backward of a unit its parameters are all-gathered, and after its backward
// its gradients are reduce-scattered: 3(W-1)/W of its bytes on every link, half more than
// all-reducing them. At most two gathered units are alive: an all-gather may begin when the run
// before the last one has ended, so it overlaps the last one, and only the first is fully exposed.
// All-gathers and reduce-scatters are one sequence, in which the next all-gather of the backward
// stands before the reduce-scatter of the unit at hand (BACKWARD_PRE).
// Source: Zhao et al., "PyTorch FSDP", VLDB 2023; implicit prefetching and limit_all_gathers of
// PyTorch's FSDP notes.
// Threads: a pure function.
#pragma once

#include <vector>

#include "absl/status/statusor.h"

#include "core/communication/step_plan.h"
#include "core/model/profile.h"
#include "core/model/scenario.h"

namespace stepcast {

// The state that workers keep shares of; none where there are servers.
inline Sharding ShardingOf(const Scenario& scenario) {
  return scenario.has_servers() ? Sharding::kNone : scenario.all_reduce().sharding;
}

// By operation of the profile: a worker's computation of the update of parameters, of which a
// sharded job's workers make a share each. It has the pass OPTIMIZER or, where no operation says a
// pass, waits for the sum of a gradient, however indirectly. None of a profile whose gradients were
// scattered when it was recorded, whose shares they are already. Cost: linear.
std::vector<bool> UpdatesOf(const Profile& profile);
// The plan with updates of the profile as long as the share of one of so many workers.
StepPlan WithSharedUpdates(const Profile& profile, StepPlan plan, int32_t workers);
// The scenario whose step has the shortest updates of all numbers of workers up to `most`: of a
// sharded job that of the most, collectives each as one.
Scenario WithShortestUpdates(Scenario scenario, int32_t most);

// The plan with each unit's parameters sharded; `counts`: all-reduces of each unit, in graph order.
//
// A profile does not say which computation uses which parameters. The backward of a unit begins
// with the first computation that one of its gradients is made by: the last that it waits for. Its
// forward begins with the first computation before any gradient is made that names a parameter of
// its gradients, or waited for the download of one; where none does, with the one that lies as far
// from the end of the forward, counted in computations, as its last gradient is made from the
// begin of the backward. The forward is what comes before any gradient is made, at most
// half of the computations that need no sum: of layers, each with a forward and a backward
// computation, that is exact. What follows lasts until the next unit begins; units that begin with
// the same computation are gathered one after the other and count as one.
//
// Cost: O(n log n) in operations and dependencies. Failure: INVALID_ARGUMENT, reason
// SCENARIO_INVALID, field all_reduce.sharding: nothing is all-reduced, a gradient waits for no
// computation or for the sum of another, or no computation precedes all gradients. REQUIRES: the
// plan's collectives can run in graph order; the counts add up to its all-reduces.
absl::StatusOr<StepPlan> WithShardedParameters(const Profile& profile, const StepPlan& plan,
                                               const std::vector<int32_t>& counts);

// A forward pass.
struct ForwardUse {
  // The computations before any gradient is made, of the plan, in an order that can run.
  std::vector<int32_t> computations;
  // By all-reduce, in graph order: the first of them that uses its parameter.
  std::vector<int32_t> uses;
};
// By the rule above. Failure: as above, with field `field`.
absl::StatusOr<ForwardUse> ForwardUses(const Profile& profile, const StepPlan& plan,
                                       const char* field);
// The forward pass as the profile itself says it, without the rule's estimate. A computation uses a
// parameter that it names, or for whose download it waited; where none does, and the computation
// that makes the gradient is named backward/X, it is forward/X. Failure: as ForwardUses, and where
// neither says which.
absl::StatusOr<ForwardUse> ForwardAsRecorded(const Profile& profile, const StepPlan& plan,
                                             const char* field);

}  // namespace stepcast
