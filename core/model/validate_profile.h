// The rules a profile keeps, and those of what describes machines and links, wherever it is given:
// in a profile, a scenario or an import's options.
#pragma once

#include <cstddef>
#include <string_view>
#include <vector>

#include "core/base/error.h"
#include "core/model/profile.h"

namespace stepcast {

// Longest time a receiver may need for a tensor's byte and for a tensor: beyond them a unit was
// mistaken.
inline constexpr double kMaxOverheadSecondsPerByte = 1;
inline constexpr double kMaxOverheadSeconds = 3600;

// A fault at `path` unless the value is finite and from Bandwidth::kMinBytesPerSecond to
// Bandwidth::kMaxBytesPerSecond.
void CheckBandwidth(std::string_view path, double bytes_per_second, FaultList& faults);

// A fault below `path` for each coefficient that is not finite, negative, or above its constant.
void CheckParsingOverhead(std::string_view path, const ParsingOverhead& overhead,
                          FaultList& faults);

// All of the above, and a window that is not negative; paths below `path`.
void CheckPlatform(std::string_view path, const Platform& platform, FaultList& faults);

// A fault below `path` for each limit below 1.
void CheckBuckets(std::string_view path, const Buckets& buckets, FaultList& faults);

// Every rule that `draft` breaks, in the order of its fields, each with its path; empty: it is
// valid. Faults beyond the first thousand are dropped.
//
// Rules: at least one operation and one step; names unique and not empty; resources known; indices
// in range; no cycle (its operations are named); transfers and collectives with a size, nothing
// else with one; kept and output bytes of a worker's computations alone, groups of collectives
// alone; either collectives or parameter servers; recorded buckets that the all-reduces fill; no
// negative size, time or overhead; no end before its start; steps as long as the graph; every
// number finite; some recorded computation or transfer in each step, so that no step takes no time;
// a recording of several workers with as many steps and runs of each as it says, in the order of
// time; all limits. Cost: linear in the draft's size.
std::vector<Fault> ValidateProfile(const ProfileDraft& draft, const ProfileLimits& limits);

// The rules that a profile's recorded steps keep: those of one worker, and those of a recording of
// several (validate_steps.cc).
//
// Cost: linear in the recorded times; a number of them above its limit is one fault and costs
// nothing more.

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
