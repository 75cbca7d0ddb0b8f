#include "server/handlers/profile_name.h"

#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"

#include "core/base/message_text.h"

namespace stepcast::server {

namespace {

constexpr std::string_view kProfiles = "profiles/";
constexpr size_t kMaxIdLength = 63;
constexpr size_t kDerivedDigits = 20;
constexpr std::string_view kIdRule =
    "1 to 63 characters of a-z, 0-9 and -, beginning with a letter and not ending with -";

bool IsUuid(std::string_view text) {
  if (text.size() != 36) return false;
  for (size_t i = 0; i < text.size(); ++i) {
    const bool dash = i == 8 || i == 13 || i == 18 || i == 23;
    if (dash ? text[i] != '-' : !absl::ascii_isxdigit(static_cast<unsigned char>(text[i])))
      return false;
  }
  return true;
}

std::string At(std::string_view prefix, std::string_view field) {
  return std::string(prefix).append(field);
}

}  // namespace

bool IsProfileId(std::string_view id) {
  const auto is_lower = [](char c) { return c >= 'a' && c <= 'z'; };
  const auto is_inner = [&](char c) { return is_lower(c) || (c >= '0' && c <= '9') || c == '-'; };
  return !id.empty() && id.size() <= kMaxIdLength && is_lower(id.front()) && id.back() != '-' &&
         std::all_of(id.begin(), id.end(), is_inner);
}

std::string DerivedProfileId(std::string_view digest) {
  return std::string("p-").append(digest.substr(0, kDerivedDigits));
}

std::string ProfileName(std::string_view id) { return std::string(kProfiles).append(id); }

absl::StatusOr<std::string> ProfileIdOf(std::string_view name, std::string_view field) {
  const bool in_collection = name.substr(0, kProfiles.size()) == kProfiles;
  if (in_collection && IsProfileId(name.substr(kProfiles.size())))
    return std::string(name.substr(kProfiles.size()));
  return FaultsError(
      "REQUEST_INVALID",
      {{.field = std::string(field),
        .description = name.empty() ? "a name `profiles/{profile}` is required"
                                    : Quoted(name)
                                          .append(" is not a name `profiles/{profile}`, with ")
                                          .append(kIdRule)}});
}

std::vector<Fault> FaultsOf(const ProfilePlacement& placement, std::string_view prefix) {
  std::vector<Fault> faults;
  if (!placement.profile_id.empty() && !IsProfileId(placement.profile_id)) {
    faults.push_back(
        {.field = At(prefix, "profile_id"),
         .description = Quoted(placement.profile_id).append(" is not ").append(kIdRule)});
  }
  if (!placement.request_id.empty() && !IsUuid(placement.request_id)) {
    faults.push_back({.field = At(prefix, "request_id"),
                      .description = Quoted(placement.request_id).append(" is no UUID")});
  }
  if (placement.allow_replace && placement.profile_id.empty()) {
    faults.push_back({.field = At(prefix, "profile_id"),
                      .description = "required with allow_replace: it says what is replaced"});
  }
  if (!placement.allow_replace && !placement.etag.empty()) {
    faults.push_back({.field = At(prefix, "etag"),
                      .description = Quoted(placement.etag).append(" needs allow_replace")});
  }
  return faults;
}

}  // namespace stepcast::server
