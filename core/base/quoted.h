// Quotation of foreign text, as it may stand in a message.
#pragma once

#include <string>
#include <string_view>

namespace stepcast {

// `text` in double quotes, everything but printable ASCII escaped, cut with an ellipsis after 64
// characters: whatever bytes came in, the message stays short, valid UTF-8 and on one line.
std::string Quoted(std::string_view text);

}  // namespace stepcast
