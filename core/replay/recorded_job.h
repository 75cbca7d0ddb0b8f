// The job of a recording of several workers: its clocks aligned, and the job simulated as it was
// recorded.
//
// Source: dPRO (MLSys 2022), sections 4.2 and 4.3. Threads: pure functions.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

#include "core/base/stop_check.h"
#include "core/base/time.h"
#include "core/communication/job.h"
#include "core/engine/job_graph.h"
#include "core/engine/simulation.h"
#include "core/model/multi_rank_recording.h"
#include "core/replay/clock_alignment.h"

namespace stepcast {

// "server 0".
std::string NameOfServer(int32_t server);

// The recording's exchanges for AlignClocks, its workers the first nodes: its collectives; with
// parameter servers, which are the nodes after them ("server 0"), every transfer that waits for
// something on its other end, sent when that ended. A server without any is no node. Failure: what
// `stop` returns.
absl::StatusOr<RecordedExchanges> ExchangesOf(const MultiRankRecording& recording, StopCheck stop);

// A recording as the engine runs it: each worker repeats its own steps, one after the other, from
// the instant at which it began the first one, and meets the others in the recorded collectives or
// at the parameter servers, asynchronously, on links as the profile's platform has them.
struct RecordedJob {
  JobProgram program;
  JobGraph job;
  RunOptions options;  // as many steps as were recorded, step ends kept
  // By worker and step: the recorded end, from the first begin of any worker.
  std::vector<std::vector<Span>> recorded_ends;
  // Mean by step of the time from a worker's end of one step to its begin of the next, which the
  // recorded steps do not hold.
  double between_steps_seconds = 0;
};

// Job of workers that meet in collectives: as many go on at once as a worker had under way
// (CollectivesAtOnce). One takes as long in every step: the mean over the steps of what it took the
// worker that came last, which is the shortest of all workers' times, on whatever clock. A clock of
// a worker says when that began its first step, and nothing else.
//
// `clocks`: by worker. REQUIRES: the recording's profile holds it. Failure: what `stop` returns;
// FAILED_PRECONDITION, reason COLLECTIVES_UNMATCHED, where the profile's collectives are not the
// recorded ones; OUT_OF_RANGE, reason SIMULATED_TIME_EXHAUSTED, where workers began more than two
// days apart.
absl::StatusOr<RecordedJob> RecordedJobOf(const MultiRankRecording& recording,
                                          const std::vector<NodeClock>& clocks, StopCheck stop);

// The options of a run of its first steps, at most kMaxFollowedOperations but at least one step,
// whose ends are not kept.
inline constexpr int64_t kMaxFollowedOperations = 2'000'000;
RunOptions OptionsToFollow(const RecordedJob& job);

// The replay of a recording beside what was recorded.
struct RecordingReplay {
  // By worker: its first begin, from the first begin of any worker.
  std::vector<Span> begins;
  // By worker and step, from the first begin of any worker.
  std::vector<std::vector<Span>> replayed_ends;
  std::vector<std::vector<Span>> recorded_ends;
  // From a worker's first begin to its last end, over the steps; mean over the workers.
  double replayed_step_seconds = 0;
  double recorded_step_seconds = 0;
  double between_steps_seconds = 0;  // of the recorded ones: see RecordedJob
  // Time of a replayed step, mean over the workers, in which one has reached a collective, waits
  // for others, and has nothing else to do.
  double waiting_seconds = 0;

  // Above 0: the replay is faster than the recording by this share of it.
  double gap() const {
    return (recorded_step_seconds - replayed_step_seconds) / recorded_step_seconds;
  }
};

// Failure: as RecordedJobOf and Simulate.
absl::StatusOr<RecordingReplay> ReplayRecording(const MultiRankRecording& recording,
                                                const std::vector<NodeClock>& clocks,
                                                StopCheck stop);

}  // namespace stepcast
