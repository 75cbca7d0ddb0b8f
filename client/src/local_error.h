// Errors that the client itself finds, in the form of those of the service.
#pragma once

#include <map>
#include <string>
#include <string_view>

#include "absl/status/status.h"

namespace stepcast::client {

// With ErrorInfo of the domain `stepcast`.
absl::Status MakeLocalError(absl::StatusCode code, std::string_view reason,
                            std::string_view message,
                            const std::map<std::string, std::string>& metadata = {});

}  // namespace stepcast::client
