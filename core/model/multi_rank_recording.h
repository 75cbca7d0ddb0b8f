// A recording of several workers of one job: one program and each worker's times of it; where they
// meet in collectives, when each of them entered and left every one; where they meet at parameter
// servers, what each worker's steps know of the servers' clocks.
//
// Times are of each worker's own clock; core/replay puts them on one. Threads: a value.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

#include "core/base/index.h"
#include "core/base/stop_check.h"
#include "core/model/all_reduce.h"
#include "core/model/profile.h"

namespace stepcast {

// A collective as it was recorded, after fusing.
struct MatchedCollective {
  std::string name;  // "all_reduce/3": its kind, and its place among those of a step
  Collective kind = Collective::kAllReduce;
  int64_t size_bytes = 0;

  friend bool operator==(const MatchedCollective&, const MatchedCollective&) = default;
};

struct MultiRankRecording {
  // The operations of every worker, and each one's recorded steps, parallel to them: an operation
  // that a worker did not have takes no time. Its recording says what else is said here.
  Profile profile;
  std::vector<std::string> workers;  // names, by rank
  std::vector<int64_t> step_numbers;
  // By worker and step: when it began, on the worker's clock; what its times count from.
  std::vector<std::vector<int64_t>> step_begins_ns;
  std::vector<std::vector<int64_t>> step_ends_ns;
  std::vector<MatchedCollective> collectives;  // of every step, in the order of their launch
  std::vector<CollectiveRun> runs;             // by step, collective and worker
  // With parameter servers, by worker: WorkerRecording::server_shifts_ns.
  std::vector<std::vector<int64_t>> server_shifts_ns;
  int32_t job_workers = 0;  // JobRecording::job_workers
  std::vector<std::string> notes;

  int32_t worker_count() const { return static_cast<int32_t>(workers.size()); }
  bool has_servers() const { return !profile.has_collectives(); }
  int32_t step_count() const { return static_cast<int32_t>(step_numbers.size()); }
  const CollectiveRun& run(int32_t step, size_t collective, int32_t worker) const {
    return runs[(Index(step) * collectives.size() + collective) * workers.size() + Index(worker)];
  }
};

// The recording of several workers that a profile holds, its steps numbered from 0. Memory: as much
// as the profile's recording without its steps. Failure: what `stop` returns. REQUIRES: it has one.
absl::StatusOr<MultiRankRecording> RecordingOf(const Profile& profile, StopCheck stop);

// The form in which a profile holds it. `steps`: by worker; those of the first are the profile's
// own, and dropped.
JobRecording JobRecordingOf(const MultiRankRecording& recording,
                            std::vector<std::vector<RecordedStep>> steps);

// The seconds that each collective took the worker that came last to it, as if no worker had
// computed beside it where the recording knows that (AloneNsOf); mean over the steps. By
// collective, at least 0. Failure: what `stop` returns.
absl::StatusOr<std::vector<double>> CollectiveSecondsOf(const JobRecording& recording,
                                                        StopCheck stop);

// The most collectives that a worker had under way at once: entered, and not left within 2 us, the
// resolution of traces in microseconds. At least 1. Failure: what `stop` returns.
absl::StatusOr<int32_t> CollectivesAtOnce(const JobRecording& recording, StopCheck stop);

// The seconds of CollectiveSecondsOf as points of a benchmark, one for each kind and size, of as
// many workers as there are: those of an equal kind and size in the mean, what takes no time a
// nanosecond. Of a sample, as many workers as the job has.
std::vector<MeasuredCollective> MeasuredCollectivesOf(const JobRecording& recording);

// "all_reduce/3": a collective's kind and its place among those of a step.
std::string NameOfCollective(Collective kind, size_t place);

}  // namespace stepcast
