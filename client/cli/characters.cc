#include "client/cli/characters.h"

#include <array>
#include <cstddef>

#include "absl/strings/str_cat.h"

namespace stepcast::client {

namespace {

constexpr char32_t kBroken = 0xfffd;
constexpr char32_t kEllipsis = 0x2026;

bool IsSafe(char32_t c) {
  if (c < 0x20 || (c >= 0x7f && c < 0xa0)) return false;  // controls
  if (c == 0x200e || c == 0x200f || c == 0x061c) return false;
  if ((c >= 0x2028 && c <= 0x202e) || (c >= 0x2066 && c <= 0x2069))
    return false;                 // ends of lines, directions
  return (c & 0xfffe) != 0xfffe;  // no characters
}

// The character that begins at `at`, and moves on; kBroken for one byte that begins none (RFC
// 3629).
char32_t Next(std::string_view text, size_t& at) {
  const auto first = static_cast<unsigned char>(text[at++]);
  if (first < 0x80) return first;
  size_t more = 0;
  if (first >= 0xc2 && first <= 0xdf) more = 1;
  if (first >= 0xe0 && first <= 0xef) more = 2;
  if (first >= 0xf0 && first <= 0xf4) more = 3;
  if (more == 0 || text.size() - at < more) return kBroken;
  char32_t character = first & (0x3fU >> more);
  for (size_t i = 0; i < more; ++i) {
    const auto byte = static_cast<unsigned char>(text[at + i]);
    if ((byte & 0xc0) != 0x80) return kBroken;
    character = (character << 6) | (byte & 0x3f);
  }
  constexpr std::array<char32_t, 4> kLeast{0, 0x80, 0x800, 0x10000};
  if (character < kLeast[more] || character > 0x10ffff ||
      (character >= 0xd800 && character <= 0xdfff))
    return kBroken;
  at += more;
  return character;
}

}  // namespace

std::u32string Characters(std::string_view text) {
  std::u32string characters;
  for (size_t at = 0; at < text.size();) {
    const char32_t c = Next(text, at);
    characters.push_back(IsSafe(c) ? c : U' ');
  }
  return characters;
}

std::string Utf8(std::u32string_view characters) {
  std::string text;
  const auto push = [&text](char32_t byte) { text.push_back(static_cast<char>(byte)); };
  for (const char32_t c : characters) {
    if (c < 0x80) {
      push(c);
      continue;
    }
    const int more = c < 0x800 ? 1 : c < 0x10000 ? 2 : 3;
    constexpr std::array<char32_t, 4> kFirst{0, 0xc0, 0xe0, 0xf0};
    push(kFirst[static_cast<size_t>(more)] | (c >> (6 * more)));
    for (int i = more - 1; i >= 0; --i) push(0x80 | ((c >> (6 * i)) & 0x3f));
  }
  return text;
}

std::u32string Shortened(std::u32string_view characters, size_t length) {
  if (characters.size() <= length) return std::u32string(characters);
  if (length == 0) return {};
  return std::u32string(characters.substr(0, length - 1)) + kEllipsis;
}

std::string InQuotes(std::string_view text) {
  constexpr size_t kShown = 60;
  return absl::StrCat("\"", Utf8(Shortened(Characters(text.substr(0, 4 * kShown + 4)), kShown)),
                      "\"");
}

}  // namespace stepcast::client
