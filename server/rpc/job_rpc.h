// JobService over gRPC: checks that a request is one, and leaves it in the store of operations.
#pragma once

#include <grpcpp/impl/service_type.h>

#include <memory>

#include "server/rpc/operation_environment.h"

namespace stepcast::server {

// Borrows the environment.
std::unique_ptr<grpc::Service> MakeJobService(const OperationEnvironment& environment);

}  // namespace stepcast::server
