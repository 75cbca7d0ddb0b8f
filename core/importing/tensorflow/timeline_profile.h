// Import of the JSON that TensorFlow 1's timeline writes of a step on one machine. README.md says
// what becomes of what.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "absl/status/statusor.h"

#include "core/base/stop_check.h"
#include "core/importing/common/byte_source.h"
#include "core/importing/common/recording_import.h"
#include "core/model/profile.h"
#include "core/model/step_schedule.h"

namespace stepcast {

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
