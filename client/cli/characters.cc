#include "client/cli/characters.h"

#include <utf8cpp/utf8.h>
#include <utf8cpp/utf8/unchecked.h>

#include <cstddef>
#include <iterator>

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

}  // namespace

std::u32string Characters(std::string_view text) {
  std::u32string characters;
  for (auto at = text.begin(); at != text.end();) {
    const auto valid_end = utf8::find_invalid(at, text.end());
    while (at != valid_end) {
      const auto c = static_cast<char32_t>(utf8::unchecked::next(at));
      characters.push_back(IsSafe(c) ? c : U' ');
    }
    if (at == text.end()) break;
    characters.push_back(kBroken);
    ++at;
  }
  return characters;
}

std::string Utf8(std::u32string_view characters) {
  std::string text;
  utf8::unchecked::utf32to8(characters.begin(), characters.end(), std::back_inserter(text));
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
