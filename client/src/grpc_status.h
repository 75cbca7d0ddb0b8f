// Statuses as gRPC has them, turned into those of Abseil.
#pragma once

#include <grpcpp/support/status.h>

#include "absl/status/status.h"

namespace stepcast::client {

// The same code and message; each detail of the google.rpc.Status inside becomes a payload under its type URL. Details that cannot be read are
// dropped.
absl::Status FromGrpc(const grpc::Status& status);

}  // namespace stepcast::client
