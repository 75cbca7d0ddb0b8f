#include "server/app/replica_id.h"

#include <unistd.h>

#include <array>

#include "absl/strings/str_cat.h"

#include "server/store/profile_rules.h"

namespace stepcast::server {

std::string ReplicaId(const std::string& given) {
  constexpr size_t kRandomDigits = 8;
  std::array<char, 256> host{};
  const bool has_name = gethostname(host.data(), host.size() - 1) == 0;
  const absl::StatusOr<std::string> random = NewEtag();
  const std::string name = !given.empty() ? given : has_name ? host.data() : "stepcastd";
  return absl::StrCat(name, "-",
                      random.ok() ? random->substr(0, kRandomDigits) : absl::StrCat(getpid()));
}

}  // namespace stepcast::server
