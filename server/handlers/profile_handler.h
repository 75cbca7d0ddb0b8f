// The handler of ProfileService, and the formats of recordings that it imports.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"

#include "core/base/stop_check.h"
#include "core/importing/common/byte_source.h"
#include "core/importing/common/rank_matching.h"
#include "core/importing/common/recording_import.h"
#include "core/model/profile.h"
#include "core/replay/job_recording_report.h"
#include "server/convert/stored_requests.h"
#include "server/store/profile_store.h"

namespace stepcast::server {

// The formats of ImportProfile: each makes a profile of the bytes that follow its header;
// import_formats.cc has them.
//
// Failure: INVALID_ARGUMENT, reason IMPORT_INVALID or REQUEST_INVALID: faults of what is imported
// are at `line N`, `recording` or `graph`, all others at fields of the request; what the bytes'
// sources and `stop` fail with.

// Borrowed.
struct ImportBytes {
  ByteSource& recording;
  ByteSource* graph = nullptr;  // null: none follows
  // The traces of several workers, at least two, `recording` the first of them; else empty.
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

// The handler of ProfileService, in plain types: checks, names, stores and finds profiles.
//
// Knows nothing of gRPC, proto or threads.
// Threads: safe, as its store is; calls may block on the store.
// Failure: INVALID_ARGUMENT with every fault (reasons PROFILE_INVALID, PROFILE_MALFORMED,
// IMPORT_INVALID, REQUEST_INVALID; paths relative to the request, those of an uploaded profile to
// the profile), and what ProfileStore fails with.
class ProfileHandler {
 public:
  // The store is borrowed.
  ProfileHandler(ProfileStore& store, const ProfileLimits& limits);

  // The four that store ask `stop` last before they do, so that what a caller has given up on
  // leaves nothing behind.
  absl::StatusOr<ProfileAnswer> Create(CreateProfileCall call, StopCheck stop) const;
  // NOT_FOUND with what is like it, as Get.
  absl::StatusOr<ProfileAnswer> Update(UpdateProfileCall call, StopCheck stop) const;
  absl::StatusOr<ProfileAnswer> Upload(const UploadProfileCall& call, std::string bytes,
                                       StopCheck stop) const;
  absl::StatusOr<ImportProfileAnswer> Import(const ImportProfileCall& call,
                                             const ImportBytes& bytes, StopCheck stop) const;

  absl::StatusOr<ProfileAnswer> Get(const GetProfileCall& call) const;
  // A page holds fewer than asked for where they would not fit into kMaxPageBytes.
  absl::StatusOr<ListProfilesAnswer> List(const ListProfilesCall& call) const;
  absl::Status Delete(const DeleteProfileCall& call) const;

  static constexpr int32_t kDefaultPageSize = 50;
  static constexpr int32_t kMaxPageSize = 1000;
  // Below the 4 MiB that clients accept by default.
  static constexpr size_t kMaxPageBytes = size_t{3} << 20;

 private:
  // `own_name`: the id it has by default where that is free; empty: the digest's.
  absl::StatusOr<ProfileAnswer> Store(const Profile& profile, const ProfilePlacement& placement,
                                      const std::string& own_name, StopCheck stop) const;
  // In place of what has its id.
  absl::StatusOr<ProfileAnswer> Replace(const StoredProfile& profile,
                                        const ProfilePlacement& placement) const;
  // The answer to what would be stored, if it were.
  absl::StatusOr<ProfileAnswer> OnlyValidate(const StoredProfile& profile,
                                             const WriteTerms& terms) const;
  // Gives `draft` what an update does not take of it as it is stored, and returns the etag of that;
  // where nothing is stored and that is allowed, an empty one.
  absl::StatusOr<std::string> Complete(const UpdateProfileCall& call, const std::string& id,
                                       ProfileDraft& draft) const;
  absl::StatusOr<std::string> DefaultId(const std::string& own_name,
                                        const std::string& digest) const;

  ProfileStore& store_;
  const ProfileLimits limits_;
};

}  // namespace stepcast::server
