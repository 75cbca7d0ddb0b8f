#include "core/base/quoted.h"

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"

namespace stepcast {

namespace {

constexpr size_t kMaxShown = 64;

}  // namespace

std::string Quoted(std::string_view text) {
  const std::string_view shown = text.substr(0, kMaxShown);
  const std::string escaped = absl::CHexEscape(absl::string_view(shown.data(), shown.size()));
  return absl::StrCat("\"", escaped, shown.size() < text.size() ? "..." : "", "\"");
}

}  // namespace stepcast
