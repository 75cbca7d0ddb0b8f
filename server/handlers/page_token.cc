#include "server/handlers/page_token.h"

#include "absl/strings/escaping.h"

#include "core/base/error.h"
#include "core/base/quoted.h"
#include "server/convert/sha256.h"
#include "server/handlers/profile_name.h"

namespace stepcast::server {

namespace {

constexpr char kVersion = '1';
constexpr size_t kFilterDigits = 16;

// The form's version, then the filter it belongs to.
std::string Binding(std::string_view filter) {
  return Sha256Hex(filter).substr(0, kFilterDigits).insert(0, 1, kVersion);
}

absl::Status Refused(std::string_view token, std::string_view why) {
  return FaultsError("REQUEST_INVALID",
                     {{.field = "page_token", .description = Quoted(token).append(why)}});
}

}  // namespace

std::string MakePageToken(std::string_view filter, std::string_view after) {
  return absl::WebSafeBase64Escape(Binding(filter).append(after));
}

absl::StatusOr<std::string> ReadPageToken(std::string_view token, std::string_view filter) {
  if (token.empty()) return std::string();
  std::string text;
  const std::string binding = Binding(filter);
  if (!absl::WebSafeBase64Unescape({token.data(), token.size()}, &text) ||
      text.size() <= binding.size() || !IsProfileId(text.substr(binding.size()))) {
    return Refused(token, " is no token of this service");
  }
  if (text.compare(0, binding.size(), binding) != 0)
    return Refused(token, " was made with another filter");
  return text.substr(binding.size());
}

}  // namespace stepcast::server
