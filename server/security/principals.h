// The principals who are known to the server, their roles, and the access that each method asks
// for.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"

namespace stepcast::server {

// Roles of known callers, and the access control table: the access that each method of every
// service asks of its caller.
//
// Threads: pure functions.

// The roles of known callers: each may do what the one before it may, and more.
enum class Role : uint8_t {
  kReader,  // read profiles and jobs, and predict from them
  kWriter,  // change what is stored, and start jobs
  kAdmin    // look into the server and change what it does
};

// "reader", "writer" or "admin".
std::string_view RoleName(Role role);
std::optional<Role> RoleOf(std::string_view name);

enum class Access : uint8_t {
  kAnybody,  // no credentials
  kKnown,    // any caller that is known, whatever its role
  kReader,
  kWriter,
  kAdmin
};

// A row of the table.
struct MethodAccess {
  std::string_view method;  // "stepcast.v1.ProfileService/GetProfile"
  Access access;
};

// Sorted by method.
const std::vector<MethodAccess>& MethodAccessTable();

// The access that a method needs. kKnown for one that is not in the table: that there is none may
// be said to known callers only.
Access AccessOf(std::string_view service, std::string_view method);

// The least role that has the access; none: no role is needed.
std::optional<Role> RoleFor(Access access);

// The SHA-256 of a token: what is kept and compared instead of the token.
using TokenDigest = std::array<uint8_t, 32>;

TokenDigest DigestOf(std::string_view token);

// Digest in 64 hexadecimal digits; none for anything else.
std::optional<TokenDigest> ParseDigest(std::string_view hex);

// In a time that does not depend on where they differ.
bool IsSame(const TokenDigest& one, const TokenDigest& other);

struct Principal {
  std::string name;
  Role role = Role::kReader;
};

// The principals: those who are known to the server, by a token or by the name in their
// certificate.
//
// Written as a YAML list. An entry has a name, a role, and one of three proofs:
//   - {name: scheduler, role: writer, sha256: 9f86d0...}      SHA-256 of its token, in hexadecimal
//   - {name: laptop, role: reader, token: 0123456789abcdef}   the token itself
//   - {name: ci, role: admin, certificate: ci.example.com}    a subject alternative name or the
//                                                             common name
// A name may have several entries of the same role, so that a token can be replaced while the old
// one is still good.
// Threads: a value that does not change.
class Principals {
 public:
  static constexpr size_t kMaxEntries = 1000;  // each token costs every call a comparison
  static constexpr size_t kMinTokenBytes = 16;
  static constexpr size_t kMaxNameBytes = 64;

  // INVALID_ARGUMENT, reason TOKENS_INVALID, with every fault under "LINE: "; no fault quotes what
  // was refused: a slip of the pen puts a token where something else is expected.
  static absl::StatusOr<Principals> Parse(const std::string& text);

  // Null: nobody. Cost: a SHA-256 and a comparison with every token, whichever it is.
  std::shared_ptr<const Principal> ByToken(std::string_view token) const;
  std::shared_ptr<const Principal> ByCertificateName(std::string_view name) const;

  size_t size() const { return tokens_.size() + certificates_.size(); }

 private:
  class Reader;

  struct Token {
    TokenDigest digest;
    std::shared_ptr<const Principal> principal;
  };

  std::vector<Token> tokens_;
  std::map<std::string, std::shared_ptr<const Principal>, std::less<>> certificates_;
};

}  // namespace stepcast::server
