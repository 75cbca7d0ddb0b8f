// A failure as it travels, turned into a status of Abseil.
#pragma once

#include <string_view>

#include "absl/status/status.h"

namespace stepcast::client {

// `details` is a serialised google.rpc.Status: each detail in it becomes a payload under its type
// URL. What cannot be read is dropped.
absl::Status StatusFromWire(absl::StatusCode code, std::string_view message,
                            std::string_view details);

}  // namespace stepcast::client
