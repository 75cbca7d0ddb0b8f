#include "client/cli/texts/characters.h"

#include <utf8cpp/utf8.h>
#include <utf8cpp/utf8/unchecked.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <string>
#include <string_view>
#include <utility>

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

// The least number of letters to put in, take out, change, or swap with their neighbours.
size_t EditDistance(std::string_view a, std::string_view b) {
  constexpr size_t kLongest = 64;
  a = a.substr(0, kLongest);
  b = b.substr(0, kLongest);
  std::vector<std::vector<size_t>> rows(a.size() + 1, std::vector<size_t>(b.size() + 1));
  for (size_t i = 0; i <= a.size(); ++i) {
    for (size_t j = 0; j <= b.size(); ++j) {
      if (i == 0 || j == 0) {
        rows[i][j] = i + j;
        continue;
      }
      const size_t change = a[i - 1] == b[j - 1] ? 0 : 1;
      rows[i][j] = std::min({rows[i - 1][j] + 1, rows[i][j - 1] + 1, rows[i - 1][j - 1] + change});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
        rows[i][j] = std::min(rows[i][j], rows[i - 2][j - 2] + 1);
    }
  }
  return rows[a.size()][b.size()];
}

// In a text of lines.
constexpr std::string_view kStays = "\n\t";

// True if more bytes may make a character of these.
bool IsBegunCharacter(std::string_view bytes) {
  const auto first = static_cast<unsigned char>(bytes.front());
  const size_t length = first >= 0xf0 ? 4 : first >= 0xe0 ? 3 : 2;
  return first >= 0xc2 && first <= 0xf4 && bytes.size() < length &&
         std::all_of(bytes.begin() + 1, bytes.end(),
                     [](char c) { return (static_cast<unsigned char>(c) & 0xc0) == 0x80; });
}

std::string EscapeOf(char32_t c) {
  constexpr char32_t kFirstPair = 0x10000;
  if (c >= kFirstPair) {
    return absl::StrCat(EscapeOf(0xd800 + ((c - kFirstPair) >> 10U)),
                        EscapeOf(0xdc00 + ((c - kFirstPair) & 0x3ffU)));
  }
  if (c < 0x20) return absl::StrCat("\\x", absl::Hex(static_cast<uint32_t>(c), absl::kZeroPad2));
  return absl::StrCat("\\u", absl::Hex(static_cast<uint32_t>(c), absl::kZeroPad4));
}

// Appends the escaped text, up to a character that its end may have cut; returns where it stopped.
// `stays`: characters that are not escaped whatever they are.
size_t AppendEscaped(std::string_view text, std::string_view stays, std::string& escaped) {
  constexpr size_t kLongest = 4;
  auto at = text.begin();
  while (at != text.end()) {
    const auto valid_end = utf8::find_invalid(at, text.end());
    auto kept = at;  // from here on nothing is escaped
    while (at != valid_end) {
      const auto begin = at;
      const auto c = static_cast<char32_t>(utf8::unchecked::next(at));
      if (IsSafe(c) || (c < 0x80 && stays.find(static_cast<char>(c)) != std::string_view::npos))
        continue;
      escaped.append(kept, begin);
      escaped += EscapeOf(c);
      kept = at;
    }
    escaped.append(kept, at);
    if (at == text.end()) break;
    const std::string_view rest = text.substr(static_cast<size_t>(at - text.begin()));
    if (rest.size() < kLongest && IsBegunCharacter(rest)) break;
    absl::StrAppend(&escaped, "\\x", absl::Hex(static_cast<unsigned char>(*at), absl::kZeroPad2));
    ++at;
  }
  return static_cast<size_t>(at - text.begin());
}

void AppendBytes(std::string_view bytes, std::string& escaped) {
  for (const char c : bytes)
    absl::StrAppend(&escaped, "\\x", absl::Hex(static_cast<unsigned char>(c), absl::kZeroPad2));
}

}  // namespace

std::string Escaped(std::string_view text) {
  std::string escaped;
  AppendBytes(text.substr(AppendEscaped(text, "", escaped)), escaped);
  return escaped;
}

std::string Escaper::Next(std::string_view part) {
  std::string escaped;
  if (begun_.empty()) {
    begun_ = part.substr(AppendEscaped(part, kStays, escaped));
  } else {
    begun_.append(part);
    begun_.erase(0, AppendEscaped(begun_, kStays, escaped));
  }
  return escaped;
}

std::string Escaper::Rest() {
  std::string escaped;
  AppendBytes(std::exchange(begun_, {}), escaped);
  return escaped;
}

std::u32string Characters(std::string_view text) {
  std::u32string characters;
  for (auto at = text.begin(); at != text.end();) {
    const auto valid_end = utf8::find_invalid(at, text.end());
    while (at != valid_end) {
      const auto c = static_cast<char32_t>(utf8::unchecked::next(at));
      if (IsSafe(c)) {
        characters.push_back(c);
      } else {
        for (const char each : EscapeOf(c)) characters.push_back(static_cast<char32_t>(each));
      }
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

std::string Suggestion(std::string_view typed, const std::vector<std::string>& known) {
  const std::string* nearest = nullptr;
  size_t least = std::min<size_t>(3, typed.size() / 2 + 1);  // a distance that is too far
  for (const std::string& word : known) {
    const bool is_part = typed.size() > 2 && (word.find(typed) != std::string::npos ||
                                              typed.find(word) != std::string_view::npos);
    const size_t distance =
        is_part ? std::min<size_t>(2, EditDistance(typed, word)) : EditDistance(typed, word);
    if (distance >= least) continue;
    least = distance;
    nearest = &word;
  }
  return nearest == nullptr ? "" : absl::StrCat("; did you mean ", *nearest, "?");
}

std::string InQuotes(std::string_view text) {
  constexpr size_t kShown = 60;
  return absl::StrCat("\"", Utf8(Shortened(Characters(text.substr(0, 4 * kShown + 4)), kShown)),
                      "\"");
}

PrintableStream::Buffer::int_type PrintableStream::Buffer::overflow(int_type c) {
  if (traits_type::eq_int_type(c, traits_type::eof())) return traits_type::not_eof(c);
  const char byte = traits_type::to_char_type(c);
  return xsputn(&byte, 1) == 1 ? c : traits_type::eof();
}

std::streamsize PrintableStream::Buffer::xsputn(const char* text, std::streamsize size) {
  out_ << escaper_.Next(std::string_view(text, static_cast<size_t>(size)));
  return out_.good() ? size : 0;
}

int PrintableStream::Buffer::sync() { return out_.flush().good() ? 0 : -1; }

}  // namespace stepcast::client
