// Import of Horovod's timeline (HOROVOD_TIMELINE): of each tensor when this worker had it ready and
// what it was, step by step. README.md says what becomes of what.
#pragma once

#include "absl/status/statusor.h"

#include "core/base/stop_check.h"
#include "core/importing/common/byte_source.h"
#include "core/importing/common/recording_import.h"
#include "core/model/profile.h"

namespace stepcast {

struct HorovodTimelineOptions {
  RecordingOptions recording;
};

// One all-reduce a tensor, in the order in which they became ready, and the computation between as
// WORKER operations; a step begins where the communication of the one before it has ended, and the
// first two are left out. Failure: INVALID_ARGUMENT, reason IMPORT_INVALID, at `recording` with
// what is missing, or at a field of the options; what the source or `stop` fails with.
// Source: horovod/horovod, horovod/common/timeline.cc, of 2019 to 2023.
absl::StatusOr<ImportedProfile> ImportHorovodTimeline(ByteSource& recording,
                                                      const HorovodTimelineOptions& options,
                                                      const ProfileLimits& limits, StopCheck stop);

}  // namespace stepcast
