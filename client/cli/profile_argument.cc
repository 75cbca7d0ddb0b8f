#include "client/cli/profile_argument.h"

#include <CLI/App.hpp>
#include <algorithm>
#include <filesystem>
#include <system_error>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"

#include "core/importing/file_kind.h"
#include "stepcast/error_details.h"
#include "stepcast/profile_encoding.h"

namespace stepcast::client {

namespace {

// A sentence for people on a file that is no profile: its likely format, and which can be read.
// Empty where it may be a profile, or cannot be read at all.
std::string NoProfileHint(const std::string& path) {
  const absl::StatusOr<std::string> start = ReadFileStart(path, kKindBytes);
  if (!start.ok()) return "";
  const FileKind kind = KindOf(*start);
  if (kind == FileKind::kProfileJson || kind == FileKind::kProfileText || kind == FileKind::kBinary)
    return "";
  return absl::StrCat(path, " looks like ", std::string(TextOf(kind)), "; ",
                      std::string(kReadableFormats), ": stepcast profile import");
}

}  // namespace

bool IsFile(const std::string& path) {
  std::error_code error;
  const std::filesystem::file_status status = std::filesystem::status(path, error);
  return !error && std::filesystem::exists(status) && !std::filesystem::is_directory(status);
}

std::optional<std::string> NameIn(std::string_view collection, std::string_view argument) {
  if (argument.substr(0, collection.size()) == collection)
    argument.remove_prefix(collection.size());
  const auto is_of_ids = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-';
  };
  if (argument.empty() || !std::all_of(argument.begin(), argument.end(), is_of_ids))
    return std::nullopt;
  return std::string(collection).append(argument);
}

absl::StatusOr<std::string> StoredName(const std::string& argument) {
  const std::optional<std::string> name = NameIn("profiles/", argument);
  if (!name)
    return absl::InvalidArgumentError(
        absl::StrCat("\"", argument, "\" cannot be the name of a stored profile"));
  return *name;
}

absl::StatusOr<ProfileSource> ProfileFromArgument(const Session& session,
                                                  const std::string& argument) {
  if (!IsFile(argument)) {
    if (session.local)
      return absl::InvalidArgumentError(absl::StrCat("there is no file \"", argument, "\""));
    const absl::StatusOr<std::string> name = StoredName(argument);
    if (!name.ok()) {
      const std::string dashed = absl::StrReplaceAll(argument, {{"_", "-"}});
      return absl::InvalidArgumentError(absl::StrCat(
          "\"", argument, "\" is neither a file nor the name of a stored profile",
          StoredName(dashed).ok() ? absl::StrCat("; names have - for _: ", dashed) : ""));
    }
    return ProfileSource(*name);
  }
  const absl::StatusOr<std::string> bytes = ReadFile(argument);
  if (!bytes.ok()) return bytes.status();
  absl::StatusOr<v1::Profile> profile = ParseProfile(*bytes);
  if (!profile.ok()) return profile.status();
  return ProfileSource(*std::move(profile));
}

ExitCode ReportProfileFailure(const Session& session, const std::string& argument,
                              const absl::Status& status) {
  const ErrorDetails details = GetErrorDetails(status);
  if (absl::IsInvalidArgument(status) && details.reason.empty())
    return session.Misused({status.message().data(), status.message().size()});
  const ExitCode code = session.Refused(status);
  if (!session.local && absl::IsUnavailable(status) && !argument.empty() && !IsFile(argument)) {
    session.console.err << "hint: there is no file \"" << argument
                        << "\", so it was taken for the name of a stored profile\n";
  }
  if (const std::string hint = details.reason == "PROFILE_UNREADABLE" && !argument.empty()
                                   ? NoProfileHint(argument)
                                   : "";
      !hint.empty()) {
    session.console.err << "hint: " << hint << '\n';
  }
  // gRPC itself refuses a message that is too large, without a reason of ours.
  if (!session.local && absl::IsResourceExhausted(status) && details.reason.empty() &&
      IsFile(argument)) {
    session.console.err << "hint: the file may be too large to be sent with a request; store it "
                           "with `stepcast profile upload "
                        << argument << "` and give its name\n";
  }
  return code;
}

void ReplaceFlags::Declare(CLI::App& app) {
  app.add_flag("--replace", replace_,
               "Put it in place of what is stored under --id, if anything is: who asks meanwhile "
               "has the former or the new one");
  app.add_option("--etag", etag_,
                 "With --replace: only if this is still the etag of what is stored")
      ->type_name("ETAG");
}

absl::Status ReplaceFlags::Check(const std::string& id) const {
  if (replace_ && id.empty())
    return absl::InvalidArgumentError("--replace needs --id: the name of what is replaced");
  if (!replace_ && !etag_.empty()) return absl::InvalidArgumentError("--etag needs --replace");
  return absl::OkStatus();
}

}  // namespace stepcast::client
