// How hard a server is pressed, one measurement after the other, as people write it: numbers
// separated by commas, in the order given.
//
// Failure: INVALID_ARGUMENT, with the part that is wrong; more than 64 numbers are wrong, too.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"

namespace stepcast::client {

inline constexpr uint32_t kMaxConcurrency = 10'000;
inline constexpr double kMinRate = 1e-3;
inline constexpr double kMaxRate = 1e6;

// Calls under way at once, each from 1 to kMaxConcurrency: `1,8,64`.
absl::StatusOr<std::vector<uint32_t>> ParseConcurrencies(std::string_view text);
// Calls a second, each from kMinRate to kMaxRate: `0.5,1000,2000`.
absl::StatusOr<std::vector<double>> ParseRates(std::string_view text);

}  // namespace stepcast::client
