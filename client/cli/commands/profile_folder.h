// A folder of profiles, a file each, as people keep them in Git or mount a ConfigMap.
//
// Threads: pure functions of the file system.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "client/cli/session.h"

#include "stepcast/v1/profile.pb.h"

namespace stepcast::client {

// An entry of such a folder.
struct FolderFile {
  std::string name;  // in the folder
  std::string path;
  std::string id;       // its profile's: the file's name without its extensions
  std::string flags;    // the path of ID.import, which says how to import it; empty: a profile
  absl::Status status;  // why it can be no profile
  std::string skipped;  // why it is not meant to be one; empty: it is
};

// The entries of `folder` in the order of their names, but for hidden ones (a ConfigMap's
// `..data`), folders, and what is only there for another entry (ID.import). Links are followed.
//
// A file is meant to be a profile by its extension, before `.gz`: json, pb, binpb, txtpb,
// textproto, pbtxt; and so is every file beside which there is an ID.import, with txt, et and bin,
// too. Its status is not OK where two files have the same id, and of an ID.import without another.
// Failure: NOT_FOUND, PERMISSION_DENIED, or INVALID_ARGUMENT for what is no folder.
absl::StatusOr<std::vector<FolderFile>> ListFolder(const std::string& folder);

// The words of a file of flags, which has one a line, with its value, as in
// `--batch-size 128`; empty lines and those that begin with # apart.
// Failure: INVALID_ARGUMENT, naming the first line that is wrong.
absl::StatusOr<std::vector<std::string>> ParseFlagLines(std::string_view text);

// The profile of a file, read or imported in this process. Not checked where it is read.
// REQUIRES: its status is OK and it is not skipped.
absl::StatusOr<v1::Profile> LoadFile(const Session& session, const FolderFile& file);

// The profile that `profile import` makes of a recording with these flags, checked, and stored
// nowhere. Files that flags name are taken from beside it. Failure: of the flags INVALID_ARGUMENT
// without a reason.
absl::StatusOr<v1::Profile> ImportHere(const Session& session, const std::string& path,
                                       const std::vector<std::string>& flags);

// A server's stored profiles made those of a folder.

// The label of what a sync stored; its value is the name of the set that it belongs to.
inline constexpr char kSyncLabel[] = "stepcast-sync";

enum class SyncAction { kCreate, kReplace, kKeep, kDelete, kSkip, kFail };

// One profile, or one file, of a sync.
struct SyncOutcome {
  SyncAction action = SyncAction::kKeep;
  std::string profile;  // `profiles/ID`; empty where there is none
  std::string file;     // empty: none any more
  std::string digest;   // empty: not known
  std::string note;     // for people; of kFail the first line of its error
  absl::Status status;  // of kFail
};

struct SyncReport {
  std::string set;
  bool is_dry_run = false;  // the actions are what would be done
  std::vector<SyncOutcome> outcomes;
};

// The action that makes `stored` (none: nothing has the name) the wanted profile, which has its
// digest and the label of its set. What a sync of this set did not store is never replaced: kFail,
// but kKeep where the content is the same.
SyncAction ActionFor(const v1::Profile& wanted, const std::optional<v1::Profile>& stored);

// A row an outcome, and how many there are of each.
std::string SyncText(const SyncReport& report);
// {"set", "dryRun", "profiles": [{"action", "profile", "file", "digest", "note", "error"}]}.
std::string SyncJson(const SyncReport& report);

}  // namespace stepcast::client
