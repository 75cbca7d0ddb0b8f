// `profile upload`, `get`, `list` and `delete`: the keyed store of profiles.
#include <CLI/App.hpp>
#include <algorithm>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "client/cli/commands/commands.h"
#include "client/cli/flags/profile_argument.h"
#include "client/cli/texts/answer_texts.h"
#include "client/cli/texts/progress.h"
#include "client/cli/texts/table.h"

#include "stepcast/json.h"

namespace stepcast::client {

namespace {

ExitCode NeedsServer(const Session& session, std::string_view command) {
  return session.Misused(absl::StrCat("profile ", std::string(command),
                                      " is about a server's store, which --local does not have"));
}

absl::StatusOr<v1::Profile> Upload(const Session& session, const std::string& path,
                                   const v1::UploadProfileRequest::Header& header) {
  const absl::StatusOr<std::string> bytes = ReadProfileBytes(path);
  if (!bytes.ok()) return bytes.status();
  const Progress progress(session.console, "uploading");
  absl::StatusOr<v1::Profile> stored = session.client.UploadProfileBytes(*bytes, header);
  if (stored.ok()) return stored;
  return NamingFiles(stored.status(), {{"chunk", InputAt(path).Name()}});
}

class UploadCommand : public Command {
 public:
  CLI::App* Declare(CLI::App& parent) override {
    CLI::App* app = parent.add_subcommand(
        "upload", "Store a profile; the same content stored twice is one profile");
    app->add_option("FILE", path_, kProfileFileHelp)->required()->type_name("");
    app->add_option("--id", id_, "Its name: a-z, 0-9 and - (default: from its content)")
        ->type_name("ID");
    app->add_option("--request-id", request_id_,
                    "A UUID that makes repeating the command safe (default: a new one)")
        ->type_name("UUID");
    replace_.Declare(*app);
    return app;
  }

  ExitCode Run(const Session& session) const override {
    if (session.local) return NeedsServer(session, "upload");
    if (!IsFile(path_)) return session.Misused(WhyNoFile(path_));
    if (const absl::Status fits = replace_.Check(id_); !fits.ok())
      return session.Misused({fits.message().data(), fits.message().size()});
    v1::UploadProfileRequest::Header header;
    header.set_profile_id(id_);
    header.set_request_id(request_id_);
    replace_.Fill(header);
    const absl::StatusOr<v1::Profile> profile = Upload(session, path_, header);
    if (!profile.ok()) return session.Refused(profile.status());
    return session.Answer(ToJson(*profile), [&] { return ProfileText(*profile); });
  }

 private:
  std::string path_;
  std::string id_;
  std::string request_id_;
  ReplaceFlags replace_;
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

  // A name of both is the stored profile, which is what the command is for.
  bool NeedsNoServer() const override { return IsFile(argument_) && !StoredName(argument_).ok(); }

  ExitCode Run(const Session& session) const override {
    const absl::StatusOr<std::string> name = Name(session);
    if (!name.ok()) return ReportProfileFailure(session, argument_, name.status());
    v1::GetProfileRequest request;
    request.set_name(*name);
    request.set_view(basic_ ? v1::BASIC : v1::FULL);
    const absl::StatusOr<v1::Profile> profile = [&] {
      const Progress progress(session.console, "reading");
      return session.client.GetProfile(request);
    }();
    if (!profile.ok()) return session.Refused(profile.status());
    return session.Answer(ToJson(*profile), [&] { return ProfileText(*profile); });
  }

 private:
  absl::StatusOr<std::string> Name(const Session& session) const {
    if (!session.local) return StoredName(argument_);
    if (!IsFile(argument_)) return absl::InvalidArgumentError(WhyNoFile(argument_));
    const absl::StatusOr<v1::Profile> stored = Upload(session, argument_, {});
    if (!stored.ok()) return stored.status();
    return stored->name();
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
    app->add_option("--filter", filter_,
                    "Terms joined by AND: model = \"resnet50\", labels.KEY = \"VALUE\", labels:KEY")
        ->type_name("TEXT");
    app->add_option("--page-size", page_size_, "Show one page of at most so many")->type_name("N");
    app->add_option("--page-token", page_token_, "Show the page that goes on from here")
        ->type_name("TOKEN");
    return app;
  }

  ExitCode Run(const Session& session) const override {
    if (session.local) return NeedsServer(session, "list");
    const absl::StatusOr<v1::ListProfilesResponse> response = List(session);
    if (!response.ok()) return session.Refused(response.status());
    return session.Answer(ToJson(*response), [&] {
      std::string text = ProfileTable(*response);
      if (!response->next_page_token().empty())
        absl::StrAppend(&text, "next page: --page-token ", response->next_page_token(), "\n");
      return text;
    });
  }

 private:
  absl::StatusOr<v1::ListProfilesResponse> List(const Session& session) const {
    const Progress progress(session.console, "listing");
    constexpr int32_t kLargestPage = 1000;
    v1::ListProfilesRequest request;
    request.set_filter(filter_);
    request.set_page_token(page_token_);
    request.set_page_size(page_size_.value_or(0));
    if (page_size_ || !page_token_.empty()) return session.client.ListProfiles(request);
    request.set_page_size(kLargestPage);
    return session.client.ListAllProfiles(request);
  }

  std::string filter_;
  std::string page_token_;
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
    v1::DeleteProfileRequest request;
    request.set_name(*name);
    request.set_etag(etag_);
    const absl::Status status = session.client.DeleteProfile(request);
    if (!status.ok()) return session.Refused(status);
    // The reply is google.protobuf.Empty.
    return session.Answer("{}\n", [&] { return absl::StrCat("deleted: ", *name, "\n"); });
  }

 private:
  std::string argument_;
  std::string etag_;
};

std::string OrDash(const std::string& text) { return text.empty() ? "-" : text; }

std::string LabelsText(const v1::Profile& profile) {
  const std::map<std::string, std::string> in_order(profile.labels().begin(),
                                                    profile.labels().end());
  return OrDash(absl::StrJoin(in_order, " ", absl::PairFormatter("=")));
}

std::string CreatedText(const v1::Profile& profile) {
  return profile.has_create_time() ? TimeText(profile.create_time()) : "-";
}

// The number of operations on a kind of resource, and the bytes they move.
std::string KindText(const v1::Profile& profile, v1::Operation::Resource resource) {
  int64_t count = 0;
  int64_t bytes = 0;
  for (const v1::Operation& operation : profile.operations()) {
    if (operation.resource() != resource) continue;
    ++count;
    bytes += operation.size_bytes();
  }
  return bytes > 0 ? absl::StrCat(count, ", ", BytesText(bytes)) : absl::StrCat(count);
}

}  // namespace

std::string ProfileTable(const v1::ListProfilesResponse& response) {
  constexpr auto kLeft = Table::Align::kLeft;
  Table table({{"name", kLeft},
               {"model", kLeft},
               {"batch"},
               {"servers"},
               {"operations"},
               {"steps"},
               {"size"},
               {"created", kLeft},
               {"labels", kLeft}});
  for (const v1::Profile& profile : response.profiles()) {
    table.AddRow({profile.name(), OrDash(profile.model()), absl::StrCat(profile.batch_size()),
                  absl::StrCat(profile.parameter_servers()),
                  absl::StrCat(profile.operation_count()), absl::StrCat(profile.step_count()),
                  BytesText(profile.size_bytes()), CreatedText(profile), LabelsText(profile)});
  }
  return table.Text();
}

std::string ProfileText(const v1::Profile& profile) {
  constexpr auto kLeft = Table::Align::kLeft;
  Table table({{"profile", kLeft}, {OrDash(profile.name()), kLeft}});
  table.AddRow({"display name", OrDash(profile.display_name())});
  table.AddRow({"model", OrDash(profile.model())});
  table.AddRow({"framework", OrDash(profile.framework())});
  table.AddRow({"labels", LabelsText(profile)});
  table.AddRow({"batch size", absl::StrCat(profile.batch_size())});
  const bool meets_in_collectives = std::any_of(
      profile.operations().begin(), profile.operations().end(), [](const v1::Operation& operation) {
        return operation.resource() == v1::Operation::COLLECTIVE;
      });
  if (!meets_in_collectives)
    table.AddRow({"parameter servers", absl::StrCat(profile.parameter_servers())});
  table.AddRow({"operations", absl::StrCat(profile.operation_count())});
  if (!profile.operations().empty()) {
    if (!meets_in_collectives)
      table.AddRow({"  downloads", KindText(profile, v1::Operation::DOWNLINK)});
    table.AddRow({"  worker's", KindText(profile, v1::Operation::WORKER)});
    if (meets_in_collectives) {
      table.AddRow({"  collectives", KindText(profile, v1::Operation::COLLECTIVE)});
    } else {
      table.AddRow({"  uploads", KindText(profile, v1::Operation::UPLINK)});
      table.AddRow({"  servers'", KindText(profile, v1::Operation::PARAMETER_SERVER)});
    }
    table.AddRow(
        {"bandwidth",
         absl::StrCat(NumberText(profile.platform().bandwidth_bytes_per_second()), " bytes/s")});
  }
  table.AddRow({"steps", absl::StrCat(profile.step_count())});
  if (profile.has_recording()) {
    const int recorded = profile.recording().workers_size();
    const int of = profile.recording().job_workers();
    table.AddRow(
        {"recorded on",
         absl::StrCat(recorded, of > recorded ? absl::StrCat(" of ", of) : "", " workers")});
    if (const double slowdown = profile.recording().overlap_slowdown(); slowdown > 1)
      table.AddRow({"beside a collective", absl::StrCat(NumberText(slowdown), " times as long")});
    if (const double slowdown = profile.recording().collective_slowdown(); slowdown > 1)
      table.AddRow({"collectives beside it", absl::StrCat(NumberText(slowdown), " times as long")});
  }
  table.AddRow({"size", BytesText(profile.size_bytes())});
  table.AddRow({"created", CreatedText(profile)});
  if (!profile.owner().empty()) table.AddRow({"owner", profile.owner()});
  table.AddRow({"digest", OrDash(profile.digest())});
  table.AddRow({"etag", OrDash(profile.etag())});
  return table.Text();
}

std::unique_ptr<Command> MakeUploadCommand() { return std::make_unique<UploadCommand>(); }
std::unique_ptr<Command> MakeGetCommand() { return std::make_unique<GetCommand>(); }
std::unique_ptr<Command> MakeListCommand() { return std::make_unique<ListCommand>(); }
std::unique_ptr<Command> MakeDeleteCommand() { return std::make_unique<DeleteCommand>(); }

}  // namespace stepcast::client
