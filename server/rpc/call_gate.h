// The access decision for a call: who may call what.
//
// Asked by every call when it starts, on gRPC's own threads: it must not block. Threads: safe.
// Lifetime: outlives the calls.
#pragma once

#include <grpcpp/server_context.h>

#include <memory>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"

namespace stepcast::server {

// A client that is known by name.
struct Caller {
  std::string name;
};

// A method of the contract; both are literals or outlive the server.
struct CalledMethod {
  std::string_view service;  // stepcast.v1.ProfileService
  std::string_view name;     // GetProfile
};

class CallGate {
 public:
  virtual ~CallGate() = default;
  // Null: admitted without a name. Refused: UNAUTHENTICATED or PERMISSION_DENIED.
  virtual absl::StatusOr<std::shared_ptr<const Caller>> Admit(
      const CalledMethod& method, const grpc::CallbackServerContext& context) = 0;
};

// Whom the call is counted for: the caller's name, or the host of the peer's address, without its
// port.
std::string ClientOf(const Caller* caller, const grpc::CallbackServerContext& context);

}  // namespace stepcast::server
