// The report on a recording of several workers: their clocks on one time, and the recording
// replayed as it was recorded, beside what was recorded.
//
// Threads: pure functions.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

#include "core/base/stop_check.h"
#include "core/model/multi_rank_recording.h"
#include "core/replay/clock_alignment.h"
#include "core/replay/recorded_job.h"

namespace stepcast {

struct WorkerReport {
  std::string name;
  NodeClock clock;
  // From the worker's first begin to its last end, over the steps.
  double recorded_step_seconds = 0;
  double replayed_step_seconds = 0;
};

struct ServerReport {
  std::string name;  // "server 0"
  NodeClock clock;
};

// Seconds are of a step, and means over the workers.
struct JobRecordingReport {
  std::vector<WorkerReport> workers;
  std::vector<ServerReport> servers;  // none where workers meet in collectives
  int32_t steps = 0;                  // that all workers have
  int32_t collectives = 0;            // of each step
  int32_t job_workers = 0;            // above the number of workers: these are a sample
  // Excess of a step's collectives over the shortest of their kind and size, in a sample; none: no
  // two are alike.
  std::optional<double> beyond_shortest_seconds;
  double recorded_step_seconds = 0;
  double replayed_step_seconds = 0;
  // The replay with the clocks as they were read; none: they are more than two days apart.
  std::optional<double> unaligned_step_seconds;
  // Replayed time in which a worker has reached a collective, and waits for others.
  double waiting_seconds = 0;
  // Recorded time that is not replayed: between steps, and what nothing explains (below 0: the
  // replay takes longer).
  double between_steps_seconds = 0;
  double unexplained_seconds = 0;

  // Above 0: the replay is faster than the recording by this share of it.
  double gap() const {
    return (recorded_step_seconds - replayed_step_seconds) / recorded_step_seconds;
  }
};

// The job of the recording, on clocks that are aligned here. Failure: as AlignClocks and
// RecordedJobOf, faults at `recording`.
absl::StatusOr<RecordedJob> AlignedJobOf(const MultiRankRecording& recording, StopCheck stop);

// Failure: as AlignClocks and ReplayRecording, faults at `recording`.
absl::StatusOr<JobRecordingReport> ReportOnRecording(const MultiRankRecording& recording,
                                                     StopCheck stop);

}  // namespace stepcast
