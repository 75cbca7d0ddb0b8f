// The PROFILE that a command is about: a stored profile's name, or a file.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "client/cli/input_files.h"
#include "client/cli/session.h"

#include "stepcast/v1/profile.pb.h"

namespace CLI {
class App;
}

namespace stepcast::client {

// The help on it.
inline constexpr char kProfileArgumentHelp[] =
    "A file with a profile (-: standard input), or the name of a stored one. If both exist, the "
    "file is used. A file needs no server";

// The help on a FILE that holds a profile.
inline constexpr char kProfileFileHelp[] =
    "A profile in proto JSON, text or binary, recognised by its content; -: standard input";

// `collection`, which ends in a slash, and the id, of either `ID` or `COLLECTION/ID`; none for an
// argument that cannot be one.
std::optional<std::string> NameIn(std::string_view collection, std::string_view argument);

// `profiles/NAME` for a name without `profiles/`. INVALID_ARGUMENT for what cannot be one.
absl::StatusOr<std::string> StoredName(const std::string& argument);

// The job that is asked about: the name of a stored profile, or a profile.
using ProfileSource = std::variant<std::string, v1::Profile>;

// Failure: as input_files.h for a file that holds no profile; INVALID_ARGUMENT without a
// reason for an argument that is neither.
absl::StatusOr<ProfileSource> ProfileFromArgument(const Session& session,
                                                  const std::string& argument);

// Puts the source into a request that has one.
template <typename Request>
void SetSource(ProfileSource source, Request& request) {
  if (auto* const name = std::get_if<std::string>(&source)) {
    request.set_profile(std::move(*name));
  } else {
    *request.mutable_inline_profile() = std::get<v1::Profile>(std::move(source));
  }
}

// Reports what ProfileFromArgument failed with, or what the service answered to a profile from
// there.
ExitCode ReportProfileFailure(const Session& session, const std::string& argument,
                              const absl::Status& status);

// The flags of commands that may replace what is stored under the id they name.
class ReplaceFlags {
 public:
  void Declare(CLI::App& app);
  // Not OK: what does not go together. `id`: that of --id.
  absl::Status Check(const std::string& id) const;
  bool any() const { return replace_ || !etag_.empty(); }

  template <typename Header>
  void Fill(Header& header) const {
    header.set_allow_replace(replace_);
    header.set_etag(etag_);
  }

 private:
  bool replace_ = false;
  std::string etag_;
};

}  // namespace stepcast::client
