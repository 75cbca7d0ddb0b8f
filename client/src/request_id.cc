#include "client/src/request_id.h"

#include <array>
#include <cstdint>
#include <random>

namespace stepcast::client {

std::string NewRequestId() {
  constexpr char kHex[] = "0123456789abcdef";
  std::random_device device;
  std::array<uint8_t, 16> bytes{};
  for (uint8_t& byte : bytes) byte = static_cast<uint8_t>(device());
  bytes[6] = static_cast<uint8_t>((bytes[6] & 0x0f) | 0x40);  // version 4
  bytes[8] = static_cast<uint8_t>((bytes[8] & 0x3f) | 0x80);  // variant of RFC 4122
  std::string text;
  for (size_t i = 0; i < bytes.size(); ++i) {
    if (i == 4 || i == 6 || i == 8 || i == 10) text.push_back('-');
    text.push_back(kHex[bytes[i] >> 4]);
    text.push_back(kHex[bytes[i] & 0x0f]);
  }
  return text;
}

}  // namespace stepcast::client
