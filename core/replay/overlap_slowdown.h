// The slow-downs of computation beside collectives, and of collectives beside computation, in a
// recording of several workers: told from it, and taken out of its times.
//
// Threads: pure functions.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "absl/status/statusor.h"

#include "core/base/stop_check.h"
#include "core/communication/all_reduce.h"
#include "core/model/multi_rank_recording.h"
#include "core/model/profile.h"
#include "core/predict/throughput.h"
#include "core/replay/clock_alignment.h"
#include "core/replay/execution.h"

namespace stepcast {

// The factor by which computation takes longer beside a collective, told from an execution.
//
// An operation that runs at times alone and at times beside a collective tells it: the same work,
// both ways. A run is of one kind or the other where the collectives are or are not there for as
// long as the longest run of the operation would have taken: by its begin, then, for how long a run
// took must not choose its kind. All others are left out.
//
// Compared are logarithms, as the least squares of an effect of each operation of each worker, one
// of each step of each worker, and that of a collective beside. So neither a large operation nor a
// slow worker counts as slowed, nor does a step in which a worker is slow, comes last, and has the
// collective beside it at once while the others ran alone until then. The interval is the one that
// errors which all runs of a step share leave right (cluster-robust: Liang and Zeger, 1986; steps
// are the clusters), with Student's t.
struct OverlapSlowdown {
  // The time beside a collective over the time alone, operations weighted by how long they take.
  // Chance may bring it below 1.
  double slowdown = 1;
  Interval interval;
  int32_t operations = 0;  // of a worker each, that ran both ways
  int64_t runs_alone = 0;  // of these
  int64_t runs_beside = 0;
};

// Steps with such runs that it takes to tell an interval.
inline constexpr int32_t kMinOverlapSteps = 5;

// Slow-down of the computation of all counted steps; none: fewer than kMinOverlapSteps of them have
// runs that tell it. Cost: O(n log n) in operations. Failure: what `stop` returns.
absl::StatusOr<std::optional<OverlapSlowdown>> FindOverlapSlowdown(const Execution& execution,
                                                                   StopCheck stop);

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
// and is right however little the shares vary.
struct CollectiveSlowdown {
  // The time beside computation over the time alone. Chance may bring it below 1.
  double slowdown = 1;
  Interval interval;
  int32_t collectives = 0;        // of a step, that tell it
  int64_t runs = 0;               // of these
  double computing_fraction = 0;  // of their time, beside computation
};

// The fewest steps, counted by how much each has to tell, that tell an interval.
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

// The slow-down in the first steps, which `replay` executes, of all collectives but broadcasts,
// which do not end together. None: too little ran with other shares of computation beside it than
// the rest of its step, or times are without their overlap and computing_ns is not known.
absl::StatusOr<std::optional<CollectiveSlowdown>> FindCollectiveSlowdown(
    const Profile& profile, const std::vector<PlannedCollective>& planned, const Execution& replay,
    StopCheck stop);

// The cost of collectives to the computation beside them in a recording of several workers, and of
// computation to them: told from the recording and its replay, and taken out of its times.
//
// Recorded times hold those costs where a collective happened to run. Elsewhere, with other links
// or another number of workers, other computations have one beside them; so times are stored as if
// alone, and whoever simulates them puts the costs back (JobRecording::overlap_slowdown and
// collective_slowdown).

// FindOverlapSlowdown of the replay's first steps (OptionsToFollow); none, too, where a single one
// has more than kMaxExecutedOperations. `clocks`: by worker. REQUIRES, here and below:
// the recording's profile holds it. Failure: as RecordedJobOf and Simulate.
absl::StatusOr<std::optional<OverlapSlowdown>> OverlapSlowdownOf(
    const MultiRankRecording& recording, const std::vector<NodeClock>& clocks, StopCheck stop);

// FindCollectiveSlowdown of the same steps, with the same failures.
absl::StatusOr<std::optional<CollectiveSlowdown>> CollectiveSlowdownOf(
    const MultiRankRecording& recording, const std::vector<NodeClock>& clocks, StopCheck stop);

// The recording's profile with a collective_slowdown, and the computing_ns by which its collectives
// take what they would alone. REQUIRES: one from 1 to kMaxCollectiveSlowdown, and neither slow-down
// in the recording yet.
absl::StatusOr<Profile> FreeOfContention(const MultiRankRecording& recording,
                                         const std::vector<NodeClock>& clocks, double slowdown,
                                         const ProfileLimits& limits, StopCheck stop);

// The recording's profile with each computation as long as if nothing had run beside it: of what
// its replay has beside a collective only 1 / `slowdown` is left, which its recording then says.
// Gaps are kept, and computing_ns is as recorded. Its replay is the same but for the rounding of
// times to nanoseconds. REQUIRES: a slow-down from 1 to kMaxOverlapSlowdown, and no
// overlap_slowdown in the recording yet.
absl::StatusOr<Profile> FreeOfOverlap(const MultiRankRecording& recording,
                                      const std::vector<NodeClock>& clocks, double slowdown,
                                      const ProfileLimits& limits, StopCheck stop);

}  // namespace stepcast
