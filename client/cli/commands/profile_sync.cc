#include <CLI/App.hpp>
#include <array>
#include <map>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "client/cli/commands/commands.h"
#include "client/cli/commands/profile_folder.h"
#include "client/cli/flags/profile_argument.h"
#include "client/cli/flags/quantity.h"
#include "client/cli/local_connection.h"
#include "client/cli/texts/json_text.h"
#include "client/cli/texts/progress.h"
#include "client/cli/texts/table.h"

#include "stepcast/error_details.h"

namespace stepcast::client {

namespace {

constexpr char kProfileCollection[] = "profiles/";

struct SyncOptions {
  std::string folder;
  std::string set;
  bool prunes = false;
  bool is_dry_run = false;
};

// Empty: none.
std::string SetOf(const v1::Profile& profile) {
  const auto label = profile.labels().find(kSyncLabel);
  return label == profile.labels().end() ? "" : label->second;
}

bool SaysTheSame(const v1::Profile& a, const v1::Profile& b) {
  const auto labels = [](const v1::Profile& profile) {
    return std::map<std::string, std::string>(profile.labels().begin(), profile.labels().end());
  };
  return a.display_name() == b.display_name() && labels(a) == labels(b);
}

// One run of `profile sync`.
class Synchronization {
 public:
  Synchronization(const Session& session, const SyncOptions& options)
      : session_(session), options_(options), here_(MakeLocalClient(session.options)) {}

  // Failure: what keeps all of it from being done. A file's own failure is in its outcome.
  absl::StatusOr<SyncReport> Run() {
    const absl::StatusOr<std::vector<FolderFile>> files = ListFolder(options_.folder);
    if (!files.ok()) return files.status();
    // Asked also where nothing is pruned: a server that does not answer is said once.
    v1::ListProfilesRequest request;
    request.set_filter(absl::StrCat("labels.", kSyncLabel, " = \"", options_.set, "\""));
    const absl::StatusOr<v1::ListProfilesResponse> ours = session_.client.ListAllProfiles(request);
    if (!ours.ok()) return ours.status();
    SyncReport report{.set = options_.set, .is_dry_run = options_.is_dry_run};
    std::set<std::string> names;
    for (const FolderFile& file : *files) {
      if (file.skipped.empty()) names.insert(kProfileCollection + file.id);
      report.outcomes.push_back(Store(file));
    }
    if (!options_.prunes) return report;
    if (names.empty() && ours->profiles_size() > 0) {
      return absl::FailedPreconditionError(absl::StrCat(
          options_.folder, " holds no profile, and --prune would delete all ",
          ours->profiles_size(), " of the set ", options_.set, ": is it the right folder?"));
    }
    for (const v1::Profile& profile : ours->profiles()) {
      if (!names.contains(profile.name())) report.outcomes.push_back(Prune(profile));
    }
    return report;
  }

 private:
  SyncOutcome Store(const FolderFile& file) {
    SyncOutcome outcome{.file = file.name};
    if (!file.skipped.empty()) {
      outcome.action = SyncAction::kSkip;
      outcome.note = file.skipped;
      return outcome;
    }
    absl::Status status = file.status;
    if (status.ok() && !lost_.ok()) status = lost_;
    if (status.ok()) status = Bring(file, outcome);
    // Neither will the others be answered, each after the whole time limit.
    if (absl::IsUnavailable(status) || absl::IsDeadlineExceeded(status)) lost_ = status;
    return status.ok() ? outcome : Failed(std::move(outcome), status);
  }

  // Makes the stored profile the file's.
  absl::Status Bring(const FolderFile& file, SyncOutcome& outcome) const {
    absl::StatusOr<v1::Profile> wanted = LoadFile(session_, file);
    if (!wanted.ok()) return wanted.status();
    (*wanted->mutable_labels())[kSyncLabel] = options_.set;
    const absl::StatusOr<v1::Profile> checked = Upload(here_, *wanted, file.id, Validate::kOnly);
    if (!checked.ok()) return checked.status();
    outcome.profile = kProfileCollection + file.id;
    outcome.digest = checked->digest();
    wanted->set_digest(checked->digest());
    const absl::StatusOr<std::optional<v1::Profile>> stored = Find(outcome.profile);
    if (!stored.ok()) return stored.status();
    outcome.action = ActionFor(*wanted, *stored);
    if (outcome.action == SyncAction::kKeep) return NoteKept(**stored, outcome);
    // A server of another version may know the same content by another digest.
    const bool is_new = outcome.action == SyncAction::kCreate;
    if (!is_new || options_.is_dry_run) {
      const auto there = Upload(session_.client, *wanted, "", Validate::kOnly);
      if (!there.ok()) return there.status();
      wanted->set_digest(there->digest());
      outcome.digest = there->digest();
      outcome.action = ActionFor(*wanted, *stored);
    }
    if (outcome.action == SyncAction::kKeep) return NoteKept(**stored, outcome);
    if (outcome.action == SyncAction::kFail) return NotOurs(**stored);
    if (options_.is_dry_run) return absl::OkStatus();
    // Content that was stored since the look, or changed, is not ours to replace unseen.
    return Upload(session_.client, *wanted, file.id, Validate::kAndStore,
                  is_new ? "" : (*stored)->etag())
        .status();
  }

  enum class Validate { kOnly, kAndStore };
  // In place of what is stored with `etag`, if one is given.
  static absl::StatusOr<v1::Profile> Upload(const Client& client, const v1::Profile& profile,
                                            const std::string& id, Validate validate,
                                            const std::string& etag = "") {
    v1::UploadProfileRequest::Header header;
    header.set_profile_id(id);
    header.set_allow_replace(!etag.empty());
    header.set_etag(etag);
    header.set_validate_only(validate == Validate::kOnly);
    return client.UploadProfile(profile, header);
  }

  absl::StatusOr<std::optional<v1::Profile>> Find(const std::string& name) const {
    v1::GetProfileRequest request;
    request.set_name(name);
    request.set_view(v1::BASIC);
    absl::StatusOr<v1::Profile> profile = session_.client.GetProfile(request);
    if (absl::IsNotFound(profile.status())) return std::nullopt;
    if (!profile.ok()) return profile.status();
    return std::optional<v1::Profile>(*std::move(profile));
  }

  absl::Status Delete(const v1::Profile& stored) const {
    v1::DeleteProfileRequest request;
    request.set_name(stored.name());
    request.set_etag(stored.etag());
    return session_.client.DeleteProfile(request);
  }

  SyncOutcome Prune(const v1::Profile& stored) const {
    SyncOutcome outcome{.action = SyncAction::kDelete,
                        .profile = stored.name(),
                        .digest = stored.digest(),
                        .note = "no file is named so any more"};
    if (options_.is_dry_run) return outcome;
    const absl::Status status = lost_.ok() ? Delete(stored) : lost_;
    return status.ok() ? outcome : Failed(std::move(outcome), status);
  }

  absl::Status NoteKept(const v1::Profile& stored, SyncOutcome& outcome) const {
    const std::string set = SetOf(stored);
    if (set != options_.set)
      outcome.note = set.empty() ? "stored by hand" : absl::StrCat("of the set ", set);
    return absl::OkStatus();
  }

  static absl::Status NotOurs(const v1::Profile& stored) {
    const std::string set = SetOf(stored);
    return absl::AlreadyExistsError(
        absl::StrCat(stored.name(), " has other content, and was stored ",
                     set.empty() ? "by hand" : absl::StrCat("by the set ", set),
                     ": it is replaced once it is deleted"));
  }

  SyncOutcome Failed(SyncOutcome outcome, const absl::Status& status) const {
    session_.console.err << (outcome.file.empty() ? outcome.profile : outcome.file) << ": "
                         << ErrorReport(status);
    outcome.action = SyncAction::kFail;
    outcome.status = status;
    outcome.note = absl::StatusCodeToString(status.code());
    return outcome;
  }

  const Session& session_;
  const SyncOptions& options_;
  const Client here_;
  absl::Status lost_;  // why the server is asked no more
};

class SyncCommand : public Command {
 public:
  CLI::App* Declare(CLI::App& parent) override {
    CLI::App* app = parent.add_subcommand(
        "sync",
        "Make stored profiles those of a folder: upload what is new, replace what changed, leave "
        "what is the same and what a sync did not store");
    app->add_option(
           "DIR", options_.folder,
           "A folder of profiles, each named ID.json, .pb, .binpb, .txtpb, .textproto or .pbtxt; "
           "or "
           "a recording\nbeside a file ID.import that has flags of `profile import`, one a line. "
           "Each may be compressed by gzip (.gz).\nHidden files are none of it, so that it may be "
           "a ConfigMap that is mounted")
        ->required()
        ->type_name("DIR");
    AddParsedOption(
        *app, "--set", "NAME",
        "The name of what this folder holds, kept as the label stepcast-sync: a-z, 0-9 and - "
        "(default: default)",
        ParseSet, [this](std::string set) { options_.set = std::move(set); });
    app->add_flag("--prune", options_.prunes,
                  "Delete what a sync of the set stored and DIR has no longer; needs --set, since "
                  "two folders of one set\nwould delete each other's");
    app->add_flag("--dry-run", options_.is_dry_run,
                  "Check everything, say what would be done, change nothing");
    return app;
  }

  ExitCode Run(const Session& session) const override {
    if (session.local)
      return session.Misused("profile sync is about a server's store, which --local does not have");
    if (options_.prunes && options_.set.empty())
      return session.Misused(
          "--prune needs --set NAME: what of that name is not in DIR is deleted");
    SyncOptions options = options_;
    if (options.set.empty()) options.set = "default";
    const absl::StatusOr<SyncReport> report = Synchronization(session, options).Run();
    if (!report.ok()) return session.Refused(report.status());
    const ExitCode code = session.Answer(SyncJson(*report), [&] { return SyncText(*report); });
    for (const SyncOutcome& outcome : report->outcomes) {
      if (outcome.action == SyncAction::kFail) return ExitCode::kRefused;
    }
    return code;
  }

 private:
  static absl::StatusOr<std::string> ParseSet(const std::string& text) {
    constexpr size_t kMaxSetName = 63;
    if (text.size() <= kMaxSetName && NameIn("", text)) return text;
    return absl::InvalidArgumentError(
        absl::StrCat("\"", text, "\" is not 1 to 63 characters of a-z, 0-9 and -"));
  }

  SyncOptions options_;
};

// An action in JSON, done and not done.
struct ActionWords {
  const char* json;
  const char* done;
  const char* intended;
};
constexpr std::array<ActionWords, 6> kActionWords{{{"CREATE", "created", "would create"},
                                                   {"REPLACE", "replaced", "would replace"},
                                                   {"KEEP", "unchanged", "unchanged"},
                                                   {"DELETE", "deleted", "would delete"},
                                                   {"SKIP", "skipped", "skipped"},
                                                   {"FAIL", "failed", "failed"}}};

const ActionWords& WordsOf(SyncAction action) { return kActionWords[static_cast<size_t>(action)]; }

}  // namespace

SyncAction ActionFor(const v1::Profile& wanted, const std::optional<v1::Profile>& stored) {
  if (!stored) return SyncAction::kCreate;
  const bool is_ours = SetOf(*stored) == SetOf(wanted);
  if (stored->digest() == wanted.digest() && (!is_ours || SaysTheSame(*stored, wanted)))
    return SyncAction::kKeep;
  return is_ours ? SyncAction::kReplace : SyncAction::kFail;
}

std::string SyncText(const SyncReport& report) {
  constexpr auto kLeft = Table::Align::kLeft;
  Table table({{"action", kLeft}, {"profile", kLeft}, {"file", kLeft}, {"note", kLeft}});
  std::array<int, kActionWords.size()> counts{};
  const auto word = [&report](const ActionWords& words) {
    return report.is_dry_run ? words.intended : words.done;
  };
  const auto or_dash = [](const std::string& text) { return text.empty() ? "-" : text; };
  for (const SyncOutcome& outcome : report.outcomes) {
    ++counts[static_cast<size_t>(outcome.action)];
    table.AddRow({word(WordsOf(outcome.action)), or_dash(outcome.profile), or_dash(outcome.file),
                  outcome.note});
  }
  std::vector<std::string> parts;
  for (size_t i = 0; i < counts.size(); ++i) {
    if (counts[i] > 0) parts.push_back(absl::StrCat(counts[i], " ", word(kActionWords[i])));
  }
  return absl::StrCat(report.outcomes.empty() ? "" : table.Text(), "set ", report.set, ": ",
                      parts.empty() ? "nothing" : absl::StrJoin(parts, ", "), "\n");
}

std::string SyncJson(const SyncReport& report) {
  using nlohmann::ordered_json;
  ordered_json object{
      {"set", report.set}, {"dryRun", report.is_dry_run}, {"profiles", ordered_json::array()}};
  for (const SyncOutcome& outcome : report.outcomes) {
    ordered_json row{{"action", WordsOf(outcome.action).json},
                     {"profile", outcome.profile},
                     {"file", outcome.file},
                     {"digest", outcome.digest},
                     {"note", outcome.note}};
    if (outcome.action == SyncAction::kFail) row["error"] = ErrorObject(outcome.status);
    object["profiles"].push_back(std::move(row));
  }
  return JsonText(object);
}

std::unique_ptr<Command> MakeSyncCommand() { return std::make_unique<SyncCommand>(); }

}  // namespace stepcast::client
