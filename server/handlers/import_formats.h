// The formats of ImportProfile: each makes a profile of the bytes that follow its header.
//
// Failure: INVALID_ARGUMENT, reason IMPORT_INVALID or REQUEST_INVALID: faults of what is imported
// are at `line N`, `recording` or `graph`, all others at fields of the request; what the bytes'
// sources and `stop` fail with.
#pragma once

#include "absl/status/statusor.h"

#include "core/base/stop_check.h"
#include "core/importing/byte_source.h"
#include "core/importing/imported_profile.h"
#include "core/model/profile_limits.h"
#include "server/convert/profile_requests.h"

namespace stepcast::server {

// Borrowed.
struct ImportBytes {
  ByteSource& recording;
  ByteSource* graph = nullptr;  // null: none follows
};

// The profile before its display name and labels.
absl::StatusOr<ImportedProfile> ImportFormat(const ImportProfileCall& call,
                                             const ImportBytes& bytes, const ProfileLimits& limits,
                                             StopCheck stop);

}  // namespace stepcast::server
