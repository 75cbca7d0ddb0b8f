// The gate that knows callers by token or certificate, and what their roles let them call.
//
// A token is the metadata `authorization: Bearer TOKEN`. A caller that shows one is who the token
// says, whatever its certificate; without one, it is whom its certificate names. Who is not in the
// list of principals is nobody; without a list, everybody may call everything, by the name in a
// certificate that the connection was made with. Refusals: UNAUTHENTICATED with reason
// CREDENTIALS_MISSING, CREDENTIALS_MALFORMED, TOKEN_UNKNOWN or CERTIFICATE_UNKNOWN;
// PERMISSION_DENIED with reason ROLE_TOO_LOW and the role that is needed. None quotes what was
// shown.
#pragma once

#include <memory>
#include <string>

#include "server/base/mutex.h"
#include "server/rpc/call_gate.h"
#include "server/security/principals.h"

namespace stepcast::server {

// An observer of every refusal.
// Threads: called by any; must not block.
class RejectionObserver {
 public:
  virtual ~RejectionObserver() = default;
  // `peer` is the caller's address.
  virtual void OnRejected(const CalledMethod& method, const std::string& peer,
                          const absl::Status& status) = 0;
};

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
