// The roles of known callers: each may do what the one before it may, and more.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace stepcast::server {

enum class Role : uint8_t {
  kReader,  // read profiles and jobs, and predict from them
  kWriter,  // change what is stored, and start jobs
  kAdmin    // look into the server and change what it does
};

// "reader", "writer" or "admin".
std::string_view RoleName(Role role);
std::optional<Role> RoleOf(std::string_view name);

}  // namespace stepcast::server
