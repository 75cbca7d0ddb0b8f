// Steps as one worker would have recorded them, made from known durations: for profiles that nobody recorded.
#pragma once

#include <cstdint>
#include <vector>

#include "core/model/fault_list.h"
#include "core/model/profile.h"
#include "core/model/profile_limits.h"

namespace stepcast {

// How the made steps differ from each other.
struct StepVariation {
  double share = 0;    // standard deviation of a computation's duration, as a share of it; 0: one step, exactly as given
  int32_t steps = 20;  // when there is variation
  uint64_t seed = 1;
};

inline constexpr double kMaxVariationShare = 0.5;
inline constexpr int32_t kMaxMadeSteps = 1000;

// Faults at `step_time_variation` and `steps` for what is out of bounds, or makes more times of so many operations than the limits allow.
void CheckStepVariation(const StepVariation& variation, size_t operations, const ProfileLimits& limits, FaultList& faults);

// One step: the schedule of one worker alone on its platform, by the rules of the simulation (ICPE 2020, 3.2; window multiplexing where the platform
// has a window; parsing overhead computed by the receiver, shown as a gap between a transfer and what waits for it), rounded to nanoseconds.
//
// `durations_ns` is parallel to the operations; those of transfers are not used. Times saturate at kFarNs.
// REQUIRES: a single parameter server (several would share the worker's own link); the operations keep the rules of ValidateProfile, the platform
// those of CheckPlatform; no duration is negative. Cost: O(n log n) in operations and dependencies.
inline constexpr int64_t kFarNs = int64_t{1} << 60;
RecordedStep ScheduleStep(const std::vector<Operation>& operations, const std::vector<int64_t>& durations_ns, const Platform& platform);

// One step, or with variation so many as asked for: in each, every computation's duration is multiplied by max(0.05, 1 + share * Normal()), drawn in
// graph order from a generator keyed by {seed, step}.
std::vector<RecordedStep> MakeSteps(const std::vector<Operation>& operations, const std::vector<int64_t>& durations_ns, const Platform& platform,
                                    const StepVariation& variation);

}  // namespace stepcast
