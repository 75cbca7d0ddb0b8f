// How long a connection may take to come about.
#pragma once

namespace stepcast::client {

// For gRPC's GRPC_ARG_MIN_RECONNECT_BACKOFF_MS, which is this, and no pause: an attempt that takes
// longer is given up. A handshake over a slow link, or with a server that is busy, takes seconds.
inline constexpr int kMaxConnectMs = 10'000;

}  // namespace stepcast::client
