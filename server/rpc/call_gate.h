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

#include "server/base/mutex.h"
#include "server/security/principals.h"

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

// An observer of every refusal.
// Threads: called by any; must not block.
class RejectionObserver {
 public:
  virtual ~RejectionObserver() = default;
  // `peer` is the caller's address.
  virtual void OnRejected(const CalledMethod& method, const std::string& peer,
                          const absl::Status& status) = 0;
};

// The gate that knows callers by token or certificate, and what their roles let them call.
//
// A token is the metadata `authorization: Bearer TOKEN`. A caller that shows one is who the token
// says, whatever its certificate; without one, it is whom its certificate names. Who is not in the
// list of principals is nobody; without a list, everybody may call everything, by the name in a
// certificate that the connection was made with. Refusals: UNAUTHENTICATED with reason
// CREDENTIALS_MISSING, CREDENTIALS_MALFORMED, TOKEN_UNKNOWN or CERTIFICATE_UNKNOWN;
// PERMISSION_DENIED with reason ROLE_TOO_LOW and the role that is needed. None quotes what was
// shown.
class GuardedGate final : public CallGate {
 public:
  // Borrows the observer. Until principals are set everybody may call everything.
  explicit GuardedGate(RejectionObserver& observer) : observer_(observer) {}

  // For calls to come; null: there is no list.
  void SetPrincipals(std::shared_ptr<const Principals> principals);

  absl::StatusOr<std::shared_ptr<const Caller>> Admit(
      const CalledMethod& method, const grpc::CallbackServerContext& context) override;

 private:
  RejectionObserver& observer_;
  Mutex mutex_;
  std::shared_ptr<const Principals> principals_ STEPCAST_GUARDED_BY(mutex_);
};

}  // namespace stepcast::server
