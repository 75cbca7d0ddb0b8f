#include "server/store/etag.h"

#include <unistd.h>

#include <array>

#include "absl/strings/escaping.h"
#include "absl/strings/string_view.h"

#include "server/store/store_error.h"

namespace stepcast::server {

absl::StatusOr<std::string> NewEtag() {
  std::array<char, 16> bits{};
  if (getentropy(bits.data(), bits.size()) != 0)
    return StoreUnavailable("the system gives no random bits");
  return absl::BytesToHexString(absl::string_view(bits.data(), bits.size()));
}

}  // namespace stepcast::server
