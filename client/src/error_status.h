// Statuses with the details of an error as payloads: from the wire, and of the client itself.
#pragma once

#include <map>
#include <string>
#include <string_view>

#include "absl/status/status.h"

namespace stepcast::client {

// A failure as it travels. `details` is a serialised google.rpc.Status: each detail in it becomes a
// payload under its type URL; one that cannot be read is dropped.
absl::Status StatusFromWire(absl::StatusCode code, std::string_view message,
                            std::string_view details);

// An error that the client itself finds, in the form of those of the service: with ErrorInfo of the
// domain `stepcast`.
absl::Status MakeLocalError(absl::StatusCode code, std::string_view reason,
                            std::string_view message,
                            const std::map<std::string, std::string>& metadata = {});

}  // namespace stepcast::client
