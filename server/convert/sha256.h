// SHA-256, in hexadecimal.
#pragma once

#include <string>
#include <string_view>

namespace stepcast::server {

// 64 lower-case hexadecimal digits. Cost: about 2 ns a byte. Threads: safe.
std::string Sha256Hex(std::string_view bytes);

}  // namespace stepcast::server
