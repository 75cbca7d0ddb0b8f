// A step without a barrier between its backward pass and the forward pass of the next one, as
// ByteScheduler trains.
//
// Source: Peng et al., "A generic communication scheduler for distributed DNN training
// acceleration", SOSP 2019, sections 3 and 4. Threads: a pure function.
#pragma once

#include "absl/status/statusor.h"

#include "core/communication/full_sharding.h"
#include "core/communication/step_plan.h"
#include "core/model/profile.h"

namespace stepcast {

// The step that begins with a backward pass and ends with the next forward pass, over which no
// collective goes on: its forward waits for all of them. All-reduces are ranked by the first
// computation of the forward pass that uses their parameter, which waits for them and for their
// update.
//
// An operation that waits for the sum of one gradient alone is its update. One that waits for
// several, as the recording of an optimizer of all parameters does, becomes an update of each
// gradient, as long as its share of the bytes: ByteScheduler updates parameter by parameter. The
// forward pass keeps the order of its computations on each stream, and begins there when the
// backward pass has ended. Micro-batches whose gradients add up (JobChange::accumulate) follow that
// forward pass, which is the first one's. The computations of a step are those of the plan, and
// take as long.
//
// Cost: O(n log n) in operations and dependencies. Failure: INVALID_ARGUMENT, reason
// SCENARIO_INVALID, field all_reduce.byte_scheduler: as ForwardAsRecorded, or a collective is no
// all-reduce. REQUIRES: `plan` is of the profile, nothing fused.
absl::StatusOr<StepPlan> WithoutStepBarrier(const Profile& profile, const StepPlan& plan);
// The same with a forward pass that is known. REQUIRES: every collective is an all-reduce.
StepPlan WithoutStepBarrier(const Profile& profile, const StepPlan& plan, ForwardUse forward);

}  // namespace stepcast
