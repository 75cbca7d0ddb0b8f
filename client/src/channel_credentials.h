// How a channel proves who it is to, and for whom it speaks.
#pragma once

#include <grpcpp/security/credentials.h>

#include <memory>

#include "stepcast/client_options.h"

namespace stepcast::client {

// Over TLS if the options have roots, a certificate or ask for it; a token goes with every call. In
// clear a token goes to this machine only: calls to another fail with UNAVAILABLE, unsent.
std::shared_ptr<grpc::ChannelCredentials> ChannelCredentialsOf(const ClientCredentials& options);

}  // namespace stepcast::client
