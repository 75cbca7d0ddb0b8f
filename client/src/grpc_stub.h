// The Stub that makes the calls over gRPC.
#pragma once

#include <memory>

#include "client/src/stub.h"

#include "stepcast/client_options.h"

namespace stepcast::client {

// Connects with the first call, and again after a loss.
std::unique_ptr<Stub> MakeGrpcStub(const ClientOptions& options);

}  // namespace stepcast::client
