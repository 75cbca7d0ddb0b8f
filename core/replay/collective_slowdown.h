// The slow-down of collectives while some worker computes, told from what several workers
// recorded: LIBRA's rate of transfers beside computation against that alone (INFOCOM 2023, Eq. 6
// and 7), each collective with all of its threads.
//
// The time of a collective is that of the worker that came last, which no clock can spoil, nor can
// one spoil how much of it a worker computed: on each worker's own clock it ends when the
// collective ends there. Of D seconds b beside computation it has done the work of D - b + b / s
// alone ones, s being the slow-down. s is that of which the logarithms of such works, less an
// effect of each collective of a step and one of each step, do not go with computation beside them.
// So neither does a large collective count as slowed, nor does a step in which all is slow.
//
// Not with b / D: a collective that happens to take long has a smaller share of it beside
// computation, which ends meanwhile, and leaves the next one less. But with the share that it has
// in the replay, where each takes its mean time, whatever it took: an instrument, in the
// statisticians' term. The interval is that of the s for which such products, summed by step, have
// a mean that Student's t does not tell from 0 (Anderson and Rubin, 1949, with steps as clusters),
// and is right however little the shares vary. Threads: pure functions.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "absl/status/statusor.h"

#include "core/base/stop_check.h"
#include "core/communication/all_reduce.h"
#include "core/model/profile.h"
#include "core/predict/throughput.h"
#include "core/replay/execution.h"

namespace stepcast {

struct CollectiveSlowdown {
  // The time beside computation over the time alone. Chance may bring it below 1.
  double slowdown = 1;
  Interval interval;
  int32_t collectives = 0;        // of a step, that tell it
  int64_t runs = 0;               // of these
  double computing_fraction = 0;  // of their time, beside computation
};

// As many steps, counted by how much each has to tell, that it takes to tell an interval.
inline constexpr int32_t kMinContendingSteps = 5;
// A slow-down above it, or below its inverse, is not looked for.
inline constexpr double kMostContention = 1000;

// JobRecording::computing_ns of the profile's steps. An operation ran after the last of those that
// it waits for, or that its stream ran before it, as long after it as the step has it; a step's
// times may be without what it waited for collectives, of which the runs say when they ended.
//
// `planned`: the recording's collectives as a RecordedJob has them. REQUIRES, here and below: a
// recording of workers that meet in collectives. Here: computations are as long as recorded (no
// overlap_slowdown). Cost: O(n log n) in operations. Failure, here and below: what `stop` returns.
absl::StatusOr<std::vector<int64_t>> ComputingBesideCollectives(
    const Profile& profile, const std::vector<PlannedCollective>& planned, StopCheck stop);

// Of the first steps, which `replay` is the execution of, and of all collectives but broadcasts,
// which do not end together. None: too little ran with other shares of computation beside it than
// the rest of its step, or times are without their overlap and computing_ns is not known.
absl::StatusOr<std::optional<CollectiveSlowdown>> FindCollectiveSlowdown(
    const Profile& profile, const std::vector<PlannedCollective>& planned, const Execution& replay,
    StopCheck stop);

}  // namespace stepcast
