// The PROFILE that a command is about: a stored profile's name, or a file.
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "client/cli/session.h"

#include "stepcast/prediction.h"

namespace stepcast::client {

// What the help says of it.
inline constexpr char kProfileArgumentHelp[] =
    "A file with a profile (proto JSON, text or binary, by its content), or the name\nof a stored "
    "one, with or without `profiles/`. What is both is "
    "the file. A file\nneeds no server; one that is named is sent it with the request, and does "
    "not\nstore it. With --local it must be a file";

// Whether there is a file at `path`.
bool IsFile(const std::string& path);

// `profiles/NAME` for a name without `profiles/`. INVALID_ARGUMENT for what cannot be one.
absl::StatusOr<std::string> StoredName(const std::string& argument);

// Failure: INVALID_ARGUMENT, reason PROFILE_UNREADABLE, for a file that holds no profile; without a
// reason for an argument that is neither.
absl::StatusOr<ProfileSource> ProfileFromArgument(const Session& session,
                                                  const std::string& argument);

// Reports what ProfileFromArgument failed with, or what the service answered to a profile from
// there.
ExitCode ReportProfileFailure(const Session& session, const std::string& argument,
                              const absl::Status& status);

}  // namespace stepcast::client
