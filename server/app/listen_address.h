// Addresses to listen on: HOST:PORT, [HOST]:PORT for IPv6; port 0 means any free one.
#pragma once

#include <string>

#include "absl/status/status.h"

namespace stepcast::server {

// INVALID_ARGUMENT, reason FLAG_INVALID, naming `flag`, for what is no such address.
absl::Status CheckListenAddress(const std::string& flag, const std::string& address);

// True if only this machine can reach it: localhost, 127.0.0.0/8 or ::1, as they are written.
// REQUIRES: checked.
bool IsLoopback(const std::string& address);

// The same address with the port in use. REQUIRES: checked.
std::string WithPort(const std::string& address, int port);

// UNAVAILABLE, reason LISTEN_FAILED, saying why the address cannot be listened on, which gRPC does
// not: found out by trying. REQUIRES: checked.
absl::Status ListenError(const std::string& address);

}  // namespace stepcast::server
