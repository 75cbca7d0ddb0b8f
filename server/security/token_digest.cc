#include "server/security/token_digest.h"

#include <openssl/crypto.h>
#include <openssl/sha.h>

#include <algorithm>
#include <string>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"

namespace stepcast::server {

TokenDigest DigestOf(std::string_view token) {
  TokenDigest digest;
  SHA256(reinterpret_cast<const unsigned char*>(token.data()), token.size(), digest.data());
  return digest;
}

std::optional<TokenDigest> ParseDigest(std::string_view hex) {
  TokenDigest digest;
  const bool is_hex = std::all_of(hex.begin(), hex.end(), [](char c) {
    return absl::ascii_isxdigit(static_cast<unsigned char>(c));
  });
  if (!is_hex || hex.size() != 2 * digest.size()) return std::nullopt;
  const std::string bytes = absl::HexStringToBytes(std::string(hex));
  std::copy(bytes.begin(), bytes.end(), digest.begin());
  return digest;
}

bool IsSame(const TokenDigest& one, const TokenDigest& other) {
  return CRYPTO_memcmp(one.data(), other.data(), one.size()) == 0;
}

}  // namespace stepcast::server
