#include "server/rpc/call_gate.h"

#include <grpcpp/security/auth_context.h>

#include <iterator>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

#include "core/base/error.h"
#include "server/security/principals.h"

namespace stepcast::server {

std::string ClientOf(const Caller* caller, const grpc::CallbackServerContext& context) {
  if (caller != nullptr) return caller->name;
  // ipv4:127.0.0.1:50000, ipv6:%5B::1%5D:50000, or unix:... without a port.
  const std::string peer = context.peer();
  return peer.compare(0, 3, "ipv") == 0 ? peer.substr(0, peer.rfind(':')) : peer;
}

namespace {

using Callers = absl::StatusOr<std::shared_ptr<const Principal>>;

std::string_view ViewOf(const grpc::string_ref& text) { return {text.data(), text.size()}; }

absl::Status Unauthenticated(const char* reason, const char* why) {
  return MakeError(absl::StatusCode::kUnauthenticated, why,
                   {.reason = reason, .metadata = {{"scheme", "Bearer"}}});
}

// Names in the certificate that the caller has proved to own: alternative names, then the common
// name.
std::vector<std::string> CertificateNames(const grpc::CallbackServerContext& context) {
  std::vector<std::string> names;
  const std::shared_ptr<const grpc::AuthContext> connection = context.auth_context();
  if (connection == nullptr || !connection->IsPeerAuthenticated()) return names;
  for (const grpc::string_ref& name : connection->GetPeerIdentity())
    names.emplace_back(ViewOf(name));
  for (const grpc::string_ref& name : connection->FindPropertyValues("x509_common_name"))
    names.emplace_back(ViewOf(name));
  return names;
}

Callers ByToken(const Principals& principals, std::string_view authorization) {
  constexpr std::string_view kScheme = "Bearer ";
  const bool is_bearer =
      authorization.size() > kScheme.size() &&
      absl::EqualsIgnoreCase(absl::string_view(authorization.data(), kScheme.size()),
                             absl::string_view(kScheme.data(), kScheme.size()));
  if (!is_bearer)
    return Unauthenticated("CREDENTIALS_MALFORMED", "authorization must be `Bearer TOKEN`");
  std::shared_ptr<const Principal> principal =
      principals.ByToken(authorization.substr(kScheme.size()));
  if (principal == nullptr) return Unauthenticated("TOKEN_UNKNOWN", "the token is not known here");
  return principal;
}

Callers Identify(const Principals& principals, const grpc::CallbackServerContext& context) {
  const auto [first, last] = context.client_metadata().equal_range("authorization");
  if (first != last && std::next(first) != last)
    return Unauthenticated("CREDENTIALS_MALFORMED", "there are two authorizations");
  if (first != last) return ByToken(principals, ViewOf(first->second));
  const std::vector<std::string> names = CertificateNames(context);
  for (const std::string& name : names) {
    if (std::shared_ptr<const Principal> principal = principals.ByCertificateName(name))
      return principal;
  }
  if (!names.empty())
    return Unauthenticated("CERTIFICATE_UNKNOWN",
                           "nobody here has a name that is in the certificate");
  return Unauthenticated("CREDENTIALS_MISSING", "a token is needed: `authorization: Bearer TOKEN`");
}

absl::Status CheckRole(const Principal& principal, Access access) {
  const std::optional<Role> needed = RoleFor(access);
  if (!needed || principal.role >= *needed) return absl::OkStatus();
  const std::string role(RoleName(principal.role));
  const std::string needed_role(RoleName(*needed));
  return MakeError(
      absl::StatusCode::kPermissionDenied,
      absl::StrCat(principal.name, " has the role ", role, ", and this needs ", needed_role),
      {.reason = "ROLE_TOO_LOW",
       .metadata = {{"caller", principal.name}, {"role", role}, {"needed", needed_role}}});
}

}  // namespace

void GuardedGate::SetPrincipals(std::shared_ptr<const Principals> principals) {
  MutexLock lock(mutex_);
  principals_ = std::move(principals);
}

absl::StatusOr<std::shared_ptr<const Caller>> GuardedGate::Admit(
    const CalledMethod& method, const grpc::CallbackServerContext& context) {
  std::shared_ptr<const Principals> principals;
  {
    MutexLock lock(mutex_);
    principals = principals_;
  }
  if (principals == nullptr) {
    const std::vector<std::string> names = CertificateNames(context);
    return names.empty() ? nullptr : std::make_shared<const Caller>(Caller{.name = names.front()});
  }
  const Access access = AccessOf(method.service, method.name);
  if (access == Access::kAnybody) return nullptr;
  const Callers caller = Identify(*principals, context);
  const absl::Status status = caller.ok() ? CheckRole(**caller, access) : caller.status();
  if (status.ok()) return std::make_shared<const Caller>(Caller{.name = (*caller)->name});
  observer_.OnRejected(method, context.peer(), status);
  return status;
}

}  // namespace stepcast::server
