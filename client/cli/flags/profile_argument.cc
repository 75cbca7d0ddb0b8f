#include "client/cli/flags/profile_argument.h"

#include <CLI/App.hpp>
#include <algorithm>
#include <filesystem>
#include <system_error>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"

#include "stepcast/error_details.h"

namespace stepcast::client {

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
    std::error_code error;
    if (session.local || std::filesystem::is_symlink(argument, error))
      return absl::InvalidArgumentError(WhyNoFile(argument));
    const absl::StatusOr<std::string> name = StoredName(argument);
    if (!name.ok()) {
      if (std::filesystem::exists(std::filesystem::symlink_status(argument, error)))
        return absl::InvalidArgumentError(WhyNoFile(argument));
      const std::string dashed = absl::StrReplaceAll(argument, {{"_", "-"}});
      return absl::InvalidArgumentError(absl::StrCat(
          "\"", argument, "\" is neither a file nor the name of a stored profile",
          StoredName(dashed).ok() ? absl::StrCat("; names have - for _: ", dashed) : ""));
    }
    return ProfileSource(*name);
  }
  absl::StatusOr<v1::Profile> profile = ReadProfileInput(argument);
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
    session.console.err << "hint: " << WhyNoFile(argument)
                        << ", so it was taken for the name of a stored profile\n";
  }
  // gRPC itself refuses a message that is too large, without a reason of ours.
  if (!session.local && absl::IsResourceExhausted(status) && details.reason.empty() &&
      argument != kStandardInput && IsFile(argument)) {
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
