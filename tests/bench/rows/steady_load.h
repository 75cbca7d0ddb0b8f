// The amount that a measurement simulates.
#pragma once

#include <cstdint>

namespace stepcast::bench {

// Of ours: about a hundredth of a second at the least.
inline constexpr int64_t kOurOperations = 4'000'000;
// Of a peer that is slower by far: still tenths of a second.
inline constexpr int64_t kSlowOperations = 150'000;

// The relative distance that the ends of the first steps may have.
inline constexpr double kAgreement = 1e-9;

}  // namespace stepcast::bench
