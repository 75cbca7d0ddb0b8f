// The SHA-256 of a token: what is kept and compared instead of the token.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>

namespace stepcast::server {

using TokenDigest = std::array<uint8_t, 32>;

TokenDigest DigestOf(std::string_view token);

// Of 64 hexadecimal digits; none for anything else.
std::optional<TokenDigest> ParseDigest(std::string_view hex);

// In a time that does not depend on where they differ.
bool IsSame(const TokenDigest& one, const TokenDigest& other);

}  // namespace stepcast::server
