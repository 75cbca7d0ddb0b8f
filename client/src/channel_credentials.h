// The credentials of a channel, and the time it may take to connect.
#pragma once

#include <grpcpp/security/credentials.h>

#include <memory>

#include "stepcast/client_options.h"

namespace stepcast::client {

// For gRPC's GRPC_ARG_MIN_RECONNECT_BACKOFF_MS, which is this, and no pause: an attempt that takes
// longer is given up. A handshake over a slow link, or with a server that is busy, takes seconds.
inline constexpr int kMaxConnectMs = 10'000;

bool UsesTls(const ClientCredentials& options);

// Over TLS if the options have roots, a certificate or ask for it; a token goes with every call. In
// clear a token goes to this machine only: calls to another fail with UNAVAILABLE, unsent.
std::shared_ptr<grpc::ChannelCredentials> ChannelCredentialsOf(const ClientCredentials& options);

}  // namespace stepcast::client
