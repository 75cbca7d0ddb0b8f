// Import of Chakra execution traces: a step's computations, collectives and what each waits for, of
// one rank or of every rank of a job. README.md says what becomes of what.
#pragma once

#include <cstdint>
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

struct ChakraTraceOptions {
  RecordingOptions recording;
  StepVariationDraft variation;  // a trace has one step
};

// Memory: that of the nodes. Failure: INVALID_ARGUMENT, reason IMPORT_INVALID, at `recording` with
// what is missing, or at a field of the options; what the source or `stop` fails with.
absl::StatusOr<ImportedProfile> ImportChakraTrace(ByteSource& recording,
                                                  const ChakraTraceOptions& options,
                                                  const ProfileLimits& limits, StopCheck stop);

// Recording of several ranks, one trace each, by the rank that its file's name says
// (RankOfChakraName). Each one's collectives are its kernels' times, on its clock. Memory: the
// nodes of one trace, and of each what its profile takes. Failure: as above and as ImportRanks;
// where a collective has no recorded time.
absl::StatusOr<MultiRankRecording> ImportChakraRanks(const std::vector<RankTrace>& traces,
                                                     const ChakraTraceOptions& options,
                                                     const ProfileLimits& limits, StopCheck stop);

// RankOfName, or else the number before the ending, as in "resnet.3.et.gz"; -1: there is none.
int64_t RankOfChakraName(const std::string& name);

}  // namespace stepcast
