// The cost of collectives to the computation beside them in a recording of several workers, and of
// computation to them: told from the recording and its replay, and taken out of its times.
//
// Recorded times hold those costs where a collective happened to run. Elsewhere, with other links
// or another number of workers, other computations have one beside them; so times are stored as if
// alone, and whoever simulates them puts the costs back (JobRecording::overlap_slowdown and
// collective_slowdown). Threads: pure functions.
#pragma once

#include <optional>
#include <vector>

#include "absl/status/statusor.h"

#include "core/base/stop_check.h"
#include "core/model/multi_rank_recording.h"
#include "core/model/profile.h"
#include "core/replay/clock_alignment.h"
#include "core/replay/collective_slowdown.h"
#include "core/replay/overlap_slowdown.h"

namespace stepcast {

// As FindOverlapSlowdown has it, of the replay's first steps (OptionsToFollow); none, too, where a
// single one has more than kMaxExecutedOperations. `clocks`: by worker. REQUIRES, here and below:
// the recording's profile holds it. Failure, likewise: as RecordedJobOf and Simulate.
absl::StatusOr<std::optional<OverlapSlowdown>> OverlapSlowdownOf(
    const MultiRankRecording& recording, const std::vector<NodeClock>& clocks, StopCheck stop);

// As FindCollectiveSlowdown has it, likewise.
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
