#include "core/trace/json_string.h"

#include <cstddef>
#include <cstdint>

namespace stepcast {

namespace {

constexpr std::string_view kReplacement = "\xEF\xBF\xBD";  // U+FFFD

bool Within(char c, uint8_t least, uint8_t most) {
  return static_cast<uint8_t>(c) >= least && static_cast<uint8_t>(c) <= most;
}

// Of the well-formed sequence that `text` begins with (Unicode 15, table 3-7); 0 where it begins
// with none. REQUIRES: !text.empty().
size_t SequenceLength(std::string_view text) {
  const auto lead = static_cast<uint8_t>(text[0]);
  if (lead < 0x80) return 1;
  const size_t length = lead >= 0xF0 ? 4 : lead >= 0xE0 ? 3 : 2;
  if (lead < 0xC2 || lead > 0xF4 || text.size() < length) return 0;
  // No overlong forms, no surrogates, nothing past U+10FFFF.
  const uint8_t least = lead == 0xE0 ? 0xA0 : lead == 0xF0 ? 0x90 : 0x80;
  const uint8_t most = lead == 0xED ? 0x9F : lead == 0xF4 ? 0x8F : 0xBF;
  if (!Within(text[1], least, most)) return 0;
  for (size_t i = 2; i < length; ++i) {
    if (!Within(text[i], 0x80, 0xBF)) return 0;
  }
  return length;
}

void AppendAscii(char c, std::string& json) {
  constexpr char kHex[] = "0123456789abcdef";
  const auto byte = static_cast<uint8_t>(c);
  if (c == '"' || c == '\\') {
    json += '\\';
    json += c;
  } else if (byte < 0x20 || byte == 0x7F) {
    json += "\\u00";
    json += kHex[byte >> 4];
    json += kHex[byte & 0xF];
  } else {
    json += c;
  }
}

}  // namespace

void AppendJsonString(std::string_view text, std::string& json) {
  json += '"';
  while (!text.empty()) {
    const size_t length = SequenceLength(text);
    if (length == 1) {
      AppendAscii(text[0], json);
    } else {
      json += length == 0 ? kReplacement : text.substr(0, length);
    }
    text.remove_prefix(length == 0 ? 1 : length);
  }
  json += '"';
}

}  // namespace stepcast
