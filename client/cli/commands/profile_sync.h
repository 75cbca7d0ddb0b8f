// A server's stored profiles made those of a folder.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"

#include "stepcast/v1/profile.pb.h"

namespace stepcast::client {

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
