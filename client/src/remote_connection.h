// The Connection to a server: a Stub, and retries of what may be repeated.
#pragma once

#include <memory>

#include "client/src/connection.h"
#include "client/src/retry_environment.h"
#include "client/src/stub.h"

namespace stepcast::client {

std::shared_ptr<Connection> MakeRemoteConnection(std::unique_ptr<Stub> stub,
                                                 std::unique_ptr<RetryEnvironment> environment);

}  // namespace stepcast::client
