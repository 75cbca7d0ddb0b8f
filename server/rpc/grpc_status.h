// The one way a failure leaves the service.
#pragma once

#include <grpcpp/support/status.h>

#include "absl/status/status.h"

namespace stepcast::server {

// The same code, with message and details as ToWireError bounds them. OK for OK.
grpc::Status ToGrpcStatus(const absl::Status& status);

}  // namespace stepcast::server
