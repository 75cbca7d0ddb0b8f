// Import of steps that TensorFlow recorded: serialised RunMetadata (run_metadata_profile.cc), and
// the JSON that TensorFlow 1's timeline writes (timeline_profile.cc). README.md says what becomes
// of what.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

#include "core/base/stop_check.h"
#include "core/importing/common/byte_source.h"
#include "core/importing/common/rank_matching.h"
#include "core/importing/common/recording_import.h"
#include "core/model/made_steps.h"
#include "core/model/multi_rank_recording.h"
#include "core/model/profile.h"

namespace stepcast {

// RunMetadata of a worker with its parameter servers.

// `graph`: a serialised GraphDef, for recordings without partition graphs; null: none. Reads it
// first. Memory: that of the profile, its names once more, and a step's rows; not the recording's.
// Asks `stop` before each 64 KiB that it reads. Failure: INVALID_ARGUMENT, reason IMPORT_INVALID,
// at `recording`, at `graph` or at a field of the options; what the sources or `stop` fail with.
absl::StatusOr<ImportedProfile> ImportRunMetadata(ByteSource& recording, ByteSource* graph,
                                                  const RecordingOptions& options,
                                                  const ProfileLimits& limits, StopCheck stop);

// The same of several workers of one job, one recording each with the servers' rows in it; a graph
// given is that of all of them. A worker's number is that in the name of its file (`rank3.pb`),
// else its task's. The k-th step of each is the k-th of all. Failure: also as ImportRanks.
absl::StatusOr<MultiRankRecording> ImportRunMetadataOfWorkers(const std::vector<RankTrace>& traces,
                                                              ByteSource* graph,
                                                              const RecordingOptions& options,
                                                              const ProfileLimits& limits,
                                                              StopCheck stop);

// The timeline of a step on one machine.
struct TimelineOptions {
  RecordingOptions recording;
  std::map<std::string, int64_t>
      variable_bytes;            // of those on a server, by the name of their operation
  StepVariationDraft variation;  // a timeline has one step
};

// `graph`: a serialised GraphDef whose variables with a known shape are on a server, too; null:
// none. Reads it first. Memory: that of the events. Failure: as ImportRunMetadata; also at
// `variable_bytes` where no sizes are given, or one of no variable.
absl::StatusOr<ImportedProfile> ImportTimeline(ByteSource& recording, ByteSource* graph,
                                               const TimelineOptions& options,
                                               const ProfileLimits& limits, StopCheck stop);

}  // namespace stepcast
