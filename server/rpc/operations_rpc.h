// google.longrunning.Operations over gRPC: tells of operations, waits for them, cancels and deletes
// them.
#pragma once

#include <grpcpp/impl/service_type.h>

#include <memory>

#include "server/rpc/operation_environment.h"

namespace stepcast::server {

// Borrows the environment.
std::unique_ptr<grpc::Service> MakeOperationsService(const OperationEnvironment& environment);

}  // namespace stepcast::server
