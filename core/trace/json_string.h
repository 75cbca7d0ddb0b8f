// Text as a JSON string (RFC 8259).
#pragma once

#include <string>
#include <string_view>

namespace stepcast {

// Appends `text` in double quotes, escaped. Whatever bytes come in, valid JSON in UTF-8 goes out:
// each byte that belongs to no well-formed sequence becomes U+FFFD.
void AppendJsonString(std::string_view text, std::string& json);

}  // namespace stepcast
