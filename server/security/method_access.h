// Roles of known callers, and the access control table: the access that each method of every
// service asks of its caller.
//
// Threads: pure functions.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace stepcast::server {

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

// Of a method that is not in the table, kKnown: that there is none may be said to known callers
// only.
Access AccessOf(std::string_view service, std::string_view method);

// The least role that has the access; none: no role is needed.
std::optional<Role> RoleFor(Access access);

}  // namespace stepcast::server
