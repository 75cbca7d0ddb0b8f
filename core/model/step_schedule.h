// Steps as one worker would have recorded them, made from known durations: for profiles that nobody
// recorded.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/base/error.h"
#include "core/model/profile.h"

namespace stepcast {

// The random variation of made steps: standard deviations as shares of a computation's duration, 0
// to kMaxVariationShare.
struct StepVariation {
  double own = 0;      // of each computation by itself
  double common = 0;   // of a factor that all computations of a worker share in a step
  int32_t steps = 20;  // if there is variation; without any one step is made, exactly as given
  uint64_t seed = 1;

  bool varies() const { return own > 0 || common > 0; }
};

// A variation as asked for. A share that is not given is 0: how steps vary is not made up here,
// since predictions vary them (step_model.h), and made steps would pass for recorded ones.
struct StepVariationDraft {
  std::optional<double> own;
  std::optional<double> common;
  std::optional<int32_t> steps;  // default 20, or as many as the limits allow
  uint64_t seed = 1;
};

inline constexpr double kMaxVariationShare = 0.5;
inline constexpr int32_t kMaxMadeSteps = 1000;

// With its defaults, for a graph of so many operations. Faults at `step_time_variation` (own),
// `common_time_variation` and `steps` for what is out of bounds, or makes more times than the
// limits allow.
StepVariation ResolveStepVariation(const StepVariationDraft& draft, size_t operations,
                                   const ProfileLimits& limits, FaultList& faults);

// The note of an import on the steps that it made, a sentence.
std::string NoteOn(const StepVariation& variation);

// One step: the schedule of one worker alone on its platform, by the rules of the simulation (ICPE
// 2020, 3.2; window multiplexing where the platform has a window; parsing overhead computed by the
// receiver, shown as a gap between a transfer and what waits for it), rounded to nanoseconds. Each
// stream of the worker runs by itself; collectives of one worker take no time.
//
// A collective takes no time: one worker meets nobody. `durations_ns` is parallel to the
// operations; those of transfers and collectives are not used. Times saturate at
// kFarNs. REQUIRES: a single parameter server (several would share the worker's own link); the
// operations keep the rules of ValidateProfile, the platform those of CheckPlatform; no duration is
// negative; all computations of the worker are on one stream. Cost: O(n log n) in operations and
// dependencies.
inline constexpr int64_t kFarNs = int64_t{1} << 60;
RecordedStep ScheduleStep(const std::vector<Operation>& operations,
                          const std::vector<int64_t>& durations_ns, const Platform& platform);

// One step, or with variation so many as asked for: in each, every computation's duration is
// multiplied by max(0.05, 1 + own * Normal()), drawn in graph order from a generator keyed by
// {seed, step}; and a worker's by max(0.05, 1 +- common * Normal()), one for all of a step and
// keyed by {seed, pair, 1}: the steps 2k and 2k + 1 are a pair with opposite signs (antithetic
// variates), the last one of an odd number has the factor 1, so that a few steps have the mean that
// many would.
std::vector<RecordedStep> MakeSteps(const std::vector<Operation>& operations,
                                    const std::vector<int64_t>& durations_ns,
                                    const Platform& platform, const StepVariation& variation);

}  // namespace stepcast
