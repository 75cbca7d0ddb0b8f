// The formats of ImportProfile: each makes a profile of the bytes that follow its header.
//
// Failure: INVALID_ARGUMENT, reason IMPORT_INVALID or REQUEST_INVALID: faults of what is imported
// are at `line N`, `recording` or `graph`, all others at fields of the request; what the bytes'
// sources and `stop` fail with.
#pragma once

#include <optional>
#include <vector>

#include "absl/status/statusor.h"

#include "core/base/stop_check.h"
#include "core/importing/common/byte_source.h"
#include "core/importing/common/imported_profile.h"
#include "core/importing/common/rank_matching.h"
#include "core/model/profile_limits.h"
#include "core/replay/job_recording_report.h"
#include "server/convert/stored_requests.h"

namespace stepcast::server {

// Borrowed.
struct ImportBytes {
  ByteSource& recording;
  ByteSource* graph = nullptr;  // null: none follows
  // Of several workers, at least two, `recording` the first of them; else empty.
  std::vector<RankTrace> recordings = {};
};

// The profile before its display name and labels.
struct ImportedFormat {
  ImportedProfile imported;
  std::optional<JobRecordingReport> recording;  // of several workers
};

// The cost of collectives to the computation beside them, and of it to them, is taken out of the
// times of several workers: as much as the call says, else what they tell for certain
// (core/replay/recorded_overlap.h).
// Faults of one of several recordings are at `recordings[2]`, those of all at `recordings`; their
// clocks are put on one time, which fails with reason CLOCKS_CONTRADICT.
absl::StatusOr<ImportedFormat> ImportFormat(const ImportProfileCall& call, const ImportBytes& bytes,
                                            const ProfileLimits& limits, StopCheck stop);

}  // namespace stepcast::server
