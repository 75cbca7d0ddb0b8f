// A file that is read as a whole: configuration, tokens, certificates.
#pragma once

#include <cstddef>
#include <string>

#include "absl/status/statusor.h"

namespace stepcast::server {

// Its bytes. FAILED_PRECONDITION, reason FILE_UNREADABLE, saying why without naming it: it is not
// there, cannot be read, is a directory, or has more than `max_bytes`.
absl::StatusOr<std::string> ReadSmallFile(const std::string& path, size_t max_bytes);

}  // namespace stepcast::server
