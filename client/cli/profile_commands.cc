#include "client/cli/profile_commands.h"

#include <optional>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "client/cli/check_text.h"
#include "client/cli/profile_argument.h"
#include "client/cli/profile_table.h"
#include "client/cli/progress.h"
#include "client/cli/recording_json.h"
#include "client/local/recording_report.h"
#include "client/local/replay_report.h"

#include "stepcast/json.h"
#include "stepcast/profile_encoding.h"

namespace stepcast::client {

namespace {

constexpr char kFileHelp[] = "A profile in proto JSON, text or binary, recognised by its content";

ExitCode NeedsServer(const Session& session, std::string_view command) {
  return session.Misused(absl::StrCat("profile ", std::string(command),
                                      " is about a server's store, which --local does not have"));
}

absl::StatusOr<Profile> Upload(const Session& session, const std::string& path,
                               const StoreOptions& store) {
  const Progress progress(session.console, store.validate_only ? "checking" : "uploading");
  return session.client.UploadProfileFile(path, store);
}

class UploadCommand : public Command {
 public:
  CLI::App* Declare(CLI::App& parent) override {
    CLI::App* app = parent.add_subcommand(
        "upload", "Store a profile; the same content stored twice is one profile");
    app->add_option("FILE", path_, kFileHelp)->required()->type_name("");
    app->add_option("--id", store_.profile_id,
                    "Its name: a-z, 0-9 and - (default: from its content)")
        ->type_name("ID");
    app->add_option("--request-id", store_.request_id,
                    "A UUID that makes repeating the command safe (default: a new one)")
        ->type_name("UUID");
    return app;
  }

  ExitCode Run(const Session& session) const override {
    if (session.local) return NeedsServer(session, "upload");
    if (!IsFile(path_)) return session.Misused(absl::StrCat("there is no file \"", path_, "\""));
    const absl::StatusOr<Profile> profile = Upload(session, path_, store_);
    if (!profile.ok()) return session.Refused(profile.status());
    return session.Answer(ToJson(*profile), [&] { return ProfileText(*profile); });
  }

 private:
  std::string path_;
  StoreOptions store_;
};

class CheckCommand : public Command {
 public:
  CLI::App* Declare(CLI::App& parent) override {
    CLI::App* app =
        parent.add_subcommand("check",
                              "Say everything that is wrong with a profile, how well its steps are "
                              "explained, and what to do; stores nothing");
    app->add_option("FILE", path_, kFileHelp)->required()->type_name("");
    app->add_flag("--details", details_,
                  "Also each link's bandwidth, start and window, and how well each way of sharing "
                  "it explains the recording");
    return app;
  }

  bool NeedsNoServer() const override { return true; }

  ExitCode Run(const Session& session) const override {
    if (!IsFile(path_)) return session.Misused(absl::StrCat("there is no file \"", path_, "\""));
    const absl::StatusOr<Profile> profile = Upload(session, path_, {.validate_only = true});
    if (!profile.ok()) return session.Refused(profile.status());
    const absl::StatusOr<Explanation> explained = Explain(session);
    if (!explained.ok()) return session.Refused(explained.status());
    return session.Answer(CheckJson(*profile, explained->replay, explained->recording), [&] {
      return absl::StrCat("valid: ", profile->operation_count, " operations, ", profile->step_count,
                          " steps, digest ", profile->digest, "\n",
                          CheckSummary(explained->replay, explained->recording),
                          details_ ? CheckDetails(explained->recording) : "");
    });
  }

 private:
  struct Explanation {
    ReplayReport replay;
    RecordingReport recording;
  };

  absl::StatusOr<Explanation> Explain(const Session& session) const {
    const Progress progress(session.console, "replaying");
    const absl::StatusOr<std::string> bytes = ReadFile(path_);
    if (!bytes.ok()) return bytes.status();
    const absl::StatusOr<ReplayReport> replay = ReplayProfile(*bytes);
    if (!replay.ok()) return replay.status();
    absl::StatusOr<RecordingReport> recording = ReportRecording(*bytes);
    if (!recording.ok()) return recording.status();
    return Explanation{.replay = *replay, .recording = *std::move(recording)};
  }

  std::string path_;
  bool details_ = false;
};

class GetCommand : public Command {
 public:
  CLI::App* Declare(CLI::App& parent) override {
    CLI::App* app = parent.add_subcommand("get", "Show a profile");
    app->add_option("PROFILE", argument_,
                    "The name of a stored profile, with or without `profiles/`; with --local, or "
                    "where no stored one can\nhave that name, a file")
        ->required()
        ->type_name("");
    app->add_flag("--basic", basic_, "Leave operations and steps out");
    return app;
  }

  // What could be both is the stored profile, which is what the command is for.
  bool NeedsNoServer() const override { return IsFile(argument_) && !StoredName(argument_).ok(); }

  ExitCode Run(const Session& session) const override {
    absl::StatusOr<std::string> name = Name(session);
    if (!name.ok()) return ReportProfileFailure(session, argument_, name.status());
    const absl::StatusOr<Profile> profile = [&] {
      const Progress progress(session.console, "reading");
      return session.client.GetProfile(
          {.name = *std::move(name), .view = basic_ ? ProfileView::kBasic : ProfileView::kFull});
    }();
    if (!profile.ok()) return session.Refused(profile.status());
    return session.Answer(ToJson(*profile), [&] { return ProfileText(*profile); });
  }

 private:
  absl::StatusOr<std::string> Name(const Session& session) const {
    if (!session.local) return StoredName(argument_);
    if (!IsFile(argument_))
      return absl::InvalidArgumentError(absl::StrCat("there is no file \"", argument_, "\""));
    const absl::StatusOr<Profile> stored = Upload(session, argument_, {});
    if (!stored.ok()) return stored.status();
    return stored->name;
  }

  std::string argument_;
  bool basic_ = false;
};

class ListCommand : public Command {
 public:
  CLI::App* Declare(CLI::App& parent) override {
    CLI::App* app = parent.add_subcommand("list",
                                          "Show what is stored, in the order of names; without "
                                          "--page-size and --page-token all of it");
    app->add_option("--filter", request_.filter,
                    "Terms joined by AND: model = \"resnet50\", labels.KEY = \"VALUE\", labels:KEY")
        ->type_name("TEXT");
    app->add_option("--page-size", page_size_, "Show one page of at most so many")->type_name("N");
    app->add_option("--page-token", request_.page_token, "Show the page that goes on from here")
        ->type_name("TOKEN");
    return app;
  }

  ExitCode Run(const Session& session) const override {
    if (session.local) return NeedsServer(session, "list");
    const absl::StatusOr<ListProfilesResponse> response = List(session);
    if (!response.ok()) return session.Refused(response.status());
    return session.Answer(ToJson(*response), [&] {
      std::string text = ProfileTable(response->profiles);
      if (!response->next_page_token.empty())
        absl::StrAppend(&text, "next page: --page-token ", response->next_page_token, "\n");
      return text;
    });
  }

 private:
  absl::StatusOr<ListProfilesResponse> List(const Session& session) const {
    const Progress progress(session.console, "listing");
    ListProfilesRequest request = request_;
    request.page_size = page_size_.value_or(0);
    if (page_size_ || !request_.page_token.empty()) return session.client.ListProfiles(request);
    constexpr int32_t kLargestPage = 1000;
    request.page_size = kLargestPage;
    absl::StatusOr<std::vector<Profile>> all = session.client.ListAllProfiles(request);
    if (!all.ok()) return all.status();
    return ListProfilesResponse{.profiles = *std::move(all)};
  }

  ListProfilesRequest request_;
  std::optional<int32_t> page_size_;
};

class DeleteCommand : public Command {
 public:
  CLI::App* Declare(CLI::App& parent) override {
    CLI::App* app = parent.add_subcommand("delete", "Remove a profile");
    app->add_option("PROFILE", argument_, "Its name, with or without `profiles/`")
        ->required()
        ->type_name("");
    app->add_option("--etag", etag_, "Only if this is still its etag")->type_name("ETAG");
    return app;
  }

  ExitCode Run(const Session& session) const override {
    if (session.local) return NeedsServer(session, "delete");
    const absl::StatusOr<std::string> name = StoredName(argument_);
    if (!name.ok()) return ReportProfileFailure(session, argument_, name.status());
    const absl::Status status = session.client.DeleteProfile({.name = *name, .etag = etag_});
    if (!status.ok()) return session.Refused(status);
    // The reply is google.protobuf.Empty.
    return session.Answer("{}\n", [&] { return absl::StrCat("deleted: ", *name, "\n"); });
  }

 private:
  std::string argument_;
  std::string etag_;
};

}  // namespace

std::unique_ptr<Command> MakeUploadCommand() { return std::make_unique<UploadCommand>(); }
std::unique_ptr<Command> MakeGetCommand() { return std::make_unique<GetCommand>(); }
std::unique_ptr<Command> MakeListCommand() { return std::make_unique<ListCommand>(); }
std::unique_ptr<Command> MakeDeleteCommand() { return std::make_unique<DeleteCommand>(); }
std::unique_ptr<Command> MakeCheckCommand() { return std::make_unique<CheckCommand>(); }

}  // namespace stepcast::client
