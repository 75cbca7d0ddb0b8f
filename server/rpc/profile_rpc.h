// ProfileService over gRPC: parses, hands to the handler, writes the reply.
#pragma once

#include <grpcpp/impl/service_type.h>

#include <memory>

#include "server/handlers/profile_handler.h"
#include "server/rpc/call_environment.h"

namespace stepcast::server {

// Borrows both.
std::unique_ptr<grpc::Service> MakeProfileService(const ProfileHandler& handler,
                                                  const CallEnvironment& environment);

}  // namespace stepcast::server
