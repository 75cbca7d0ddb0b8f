#include "client/src/unreadable_file.h"

#include <cerrno>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "client/src/local_error.h"

namespace stepcast::client {

absl::Status UnreadableFile(const std::string& path, int error) {
  absl::StatusCode code = absl::StatusCode::kUnknown;
  if (error == ENOENT || error == ENOTDIR) code = absl::StatusCode::kNotFound;
  if (error == EACCES || error == EPERM) code = absl::StatusCode::kPermissionDenied;
  if (error == EISDIR) code = absl::StatusCode::kInvalidArgument;
  return MakeLocalError(code, "FILE_UNREADABLE",
                        absl::StrCat("cannot read ", path, ": ", std::strerror(error)),
                        {{"path", path}});
}

}  // namespace stepcast::client
