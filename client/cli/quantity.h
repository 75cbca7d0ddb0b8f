// Counts, rates, sizes and lengths of time, as people write them.
//
// Of the last three, a number may be followed by a decimal (k, M, G, T) or binary (Ki, Mi, Gi, Ti)
// prefix and a unit, with or without a space between. Failure: INVALID_ARGUMENT, with the text and
// what would be right.
#pragma once

#include <chrono>
#include <cstdint>
#include <string_view>

#include "absl/status/statusor.h"

namespace stepcast::client {

// A whole number from 0 on, in digits only: CLI11 by itself takes -1 for 2^64 - 1.
absl::StatusOr<uint64_t> ParseCount(std::string_view text);
// Bytes per second. Units: bit/s, b/s and bps are bits; B/s and Bps are bytes; a plain number is
// bytes per second. A prefix without a unit is refused, since it leaves open which of both is
// meant.
absl::StatusOr<double> ParseRate(std::string_view text);
// Bytes: 65536, 64KiB, 64Ki, 10MB.
absl::StatusOr<int64_t> ParseBytes(std::string_view text);
// Not negative. Units: ns, us, ms, s, m, h; a plain number is seconds.
absl::StatusOr<std::chrono::nanoseconds> ParseDuration(std::string_view text);

}  // namespace stepcast::client
