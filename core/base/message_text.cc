#include "core/base/message_text.h"

#include <cmath>
#include <cstdint>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace stepcast {

std::string NumberText(double value) {
  const double size = std::abs(value);
  return size >= 9999.5 && size < 1e15 ? absl::StrFormat("%.0f", value)
                                       : absl::StrFormat("%.4g", value);
}

std::string DurationText(int64_t ns) {
  const auto length = static_cast<double>(ns);
  const double size = std::fabs(length);
  if (size < 1e3) return absl::StrCat(ns, " ns");
  if (size < 1e6) return absl::StrFormat("%.4g us", length / 1e3);
  if (size < 1e9) return absl::StrFormat("%.4g ms", length / 1e6);
  if (size < 1e13) return absl::StrFormat("%.4g s", length / 1e9);
  return absl::StrFormat("%.0f s", length / 1e9);
}

std::string ClockText(int64_t ns) {
  constexpr uint64_t kSecond = 1'000'000'000;
  const auto size = ns < 0 ? uint64_t{0} - static_cast<uint64_t>(ns) : static_cast<uint64_t>(ns);
  return absl::StrFormat("%s%d.%09d s", ns < 0 ? "-" : "", size / kSecond, size % kSecond);
}

namespace {

constexpr size_t kMaxShown = 64;

}  // namespace

std::string Quoted(std::string_view text) {
  const std::string_view shown = text.substr(0, kMaxShown);
  const std::string escaped = absl::CHexEscape(absl::string_view(shown.data(), shown.size()));
  return absl::StrCat("\"", escaped, shown.size() < text.size() ? "..." : "", "\"");
}

}  // namespace stepcast
