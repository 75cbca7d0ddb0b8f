#include "client/src/utf8.h"

#include <cstdint>

#include "absl/strings/str_cat.h"

namespace stepcast::client {

namespace {

// What a lead byte asks for: so many more bytes, the first of them from `low` to `high` (RFC 3629,
// section 4).
struct Lead {
  int more = -1;  // -1: no lead byte
  uint8_t low = 0x80;
  uint8_t high = 0xbf;
};

Lead LeadOf(uint8_t byte) {
  if (byte < 0x80) return {.more = 0};
  if (byte >= 0xc2 && byte <= 0xdf) return {.more = 1};
  if (byte == 0xe0) return {.more = 2, .low = 0xa0};
  if (byte == 0xed) return {.more = 2, .high = 0x9f};
  if (byte >= 0xe1 && byte <= 0xef) return {.more = 2};
  if (byte == 0xf0) return {.more = 3, .low = 0x90};
  if (byte == 0xf4) return {.more = 3, .high = 0x8f};
  if (byte >= 0xf1 && byte <= 0xf3) return {.more = 3};
  return {};
}

}  // namespace

bool IsUtf8(std::string_view text) {
  for (size_t at = 0; at < text.size(); ++at) {
    Lead lead = LeadOf(static_cast<uint8_t>(text[at]));
    if (lead.more < 0) return false;
    for (; lead.more > 0; --lead.more) {
      if (++at == text.size()) return false;
      const auto byte = static_cast<uint8_t>(text[at]);
      if (byte < lead.low || byte > lead.high) return false;
      lead.low = 0x80;
      lead.high = 0xbf;
    }
  }
  return true;
}

std::string FirstBrokenText(const Profile& profile) {
  if (!IsUtf8(profile.name)) return "name";
  if (!IsUtf8(profile.display_name)) return "display_name";
  if (!IsUtf8(profile.model)) return "model";
  if (!IsUtf8(profile.framework)) return "framework";
  for (const auto& [key, value] : profile.labels) {
    if (!IsUtf8(key) || !IsUtf8(value)) return "labels";
  }
  for (size_t i = 0; i < profile.operations.size(); ++i) {
    if (!IsUtf8(profile.operations[i].name)) return absl::StrCat("operations[", i, "].name");
    if (!IsUtf8(profile.operations[i].parameter))
      return absl::StrCat("operations[", i, "].parameter");
  }
  if (!IsUtf8(profile.digest)) return "digest";
  if (!IsUtf8(profile.etag)) return "etag";
  if (!IsUtf8(profile.owner)) return "owner";
  return "";
}

}  // namespace stepcast::client
