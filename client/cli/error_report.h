// An error of the service, in lines for people.
#pragma once

#include <string>

#include "absl/status/status.h"

namespace stepcast::client {

// First `error: CODE: REASON: message`, then, indented, each violation on a line of its own, the
// limits reached, the resource, and when to try again. Control characters of the service's texts
// become spaces, so that nothing in them can drive a terminal.
std::string ErrorReport(const absl::Status& status);

}  // namespace stepcast::client
