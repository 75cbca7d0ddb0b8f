// Import of a Chakra execution trace of one rank: a step's computations, collectives and what each
// waits for. README.md says what becomes of what.
#pragma once

#include "absl/status/statusor.h"

#include "core/base/stop_check.h"
#include "core/importing/byte_source.h"
#include "core/importing/imported_profile.h"
#include "core/importing/recording_options.h"
#include "core/model/profile_limits.h"
#include "core/model/step_schedule.h"

namespace stepcast {

struct ChakraTraceOptions {
  RecordingOptions recording;
  StepVariationDraft variation;  // a trace has one step
};

// Memory: that of the nodes. Failure: INVALID_ARGUMENT, reason IMPORT_INVALID, at `recording` with
// what is missing, or at a field of the options; what the source or `stop` fails with.
absl::StatusOr<ImportedProfile> ImportChakraTrace(ByteSource& recording,
                                                  const ChakraTraceOptions& options,
                                                  const ProfileLimits& limits, StopCheck stop);

}  // namespace stepcast
