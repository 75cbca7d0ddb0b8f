// The rules that a profile's recorded steps keep: those of one worker, and those of a recording of
// several.
//
// Threads: pure functions. Cost: linear in the recorded times; a number of them above its limit is
// one fault and costs nothing more.
#pragma once

#include <cstddef>

#include "core/model/fault_list.h"
#include "core/model/profile.h"
#include "core/model/profile_limits.h"

namespace stepcast {

// Workers x steps x collectives that a recording of several workers may have.
inline constexpr size_t kMaxCollectiveRuns = 2'000'000;

// Adds a fault for each rule of ValidateProfile that a step breaks.
void CheckSteps(const ProfileDraft& draft, const ProfileLimits& limits, FaultList& faults);

// Adds a fault below `recording` for each rule that it breaks: from 2 to kMaxRecordedWorkers
// workers with names of their own; at least one collective; as many steps, begins, ends and runs of
// each worker as there are steps and collectives; steps in the order of time; no end before its
// begin; no time that an alignment of clocks would refuse. REQUIRES: the draft has a recording.
void CheckRecording(const ProfileDraft& draft, bool has_collectives, const ProfileLimits& limits,
                    FaultList& faults);

}  // namespace stepcast
