// Texts that others chose, as characters that are safe to draw.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace stepcast::client {

// The characters of a text in UTF-8. Bytes that are none become U+FFFD; what drives a terminal,
// turns the direction of writing or may not stand in XML becomes a space.
std::u32string Characters(std::string_view text);

// REQUIRES: characters from Characters, or of a literal.
std::string Utf8(std::u32string_view characters);

// At most `length` of them; the last one is U+2026 where some were cut off.
std::u32string Shortened(std::u32string_view characters, size_t length);

// A text as an error may repeat it: in double quotes, and no more than 60 of its characters.
std::string InQuotes(std::string_view text);

// "; did you mean X?" with the known word that is most like the one that was typed: a letter or two
// away, or with it as a part; empty where none is.
std::string Suggestion(std::string_view typed, const std::vector<std::string>& known);

}  // namespace stepcast::client
