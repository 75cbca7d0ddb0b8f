#include "server/security/role.h"

#include <array>

namespace stepcast::server {

namespace {

constexpr std::array<Role, 3> kRoles{Role::kReader, Role::kWriter, Role::kAdmin};

}  // namespace

std::string_view RoleName(Role role) {
  switch (role) {
    case Role::kReader:
      return "reader";
    case Role::kWriter:
      return "writer";
    case Role::kAdmin:
      return "admin";
  }
  return "";
}

std::optional<Role> RoleOf(std::string_view name) {
  for (const Role role : kRoles) {
    if (RoleName(role) == name) return role;
  }
  return std::nullopt;
}

}  // namespace stepcast::server
