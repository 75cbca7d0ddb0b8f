// The parsing overhead of a receiver, fitted to measurements of it: seconds_per_byte * size +
// seconds.
//
// Source: ICPE 2020, 3.2.1 and Fig. 10, which shows such a line and leaves open how it is fitted.
// Here: robustly, neither coefficient below 0 (measured_line.h).
// Threads: pure functions.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "absl/status/statusor.h"

#include "core/base/stop_check.h"
#include "core/calibrate/measured_line.h"
#include "core/model/profile.h"

namespace stepcast {

struct ParsingMeasurement {
  int64_t size_bytes = 0;
  double seconds = 0;

  friend bool operator==(const ParsingMeasurement&, const ParsingMeasurement&) = default;
};

inline constexpr size_t kFewestParsingMeasurements = 3;
inline constexpr size_t kMaxParsingMeasurements = 100'000;
inline constexpr int64_t kMaxParsedBytes = int64_t{1} << 53;
inline constexpr double kMaxParsingSeconds = 1e6;

// A request as it is asked for, unchecked.
struct ParsingOverheadDraft {
  std::vector<ParsingMeasurement> measurements;
  std::optional<double> confidence_level;  // 0.95
};

// A checked request.
struct ParsingOverheadQuery {
  std::vector<Measurement> measurements;  // seconds over bytes
  double confidence_level = 0.95;
};

struct ParsingOverheadFit {
  MeasuredLine fit;
  Line least_squares;  // unbounded
  double confidence_level = 0;
};

// Fails with INVALID_ARGUMENT, reason REQUEST_INVALID, and every fault: fewer measurements than a
// line with an interval needs, or more than are taken; numbers that are not finite or out of
// bounds; all of one size.
absl::StatusOr<ParsingOverheadQuery> ResolveParsingOverhead(const ParsingOverheadDraft& draft);

// Cost: as FitRobustly, up to twice: 0.1 s for 100,000 measurements. Failure: what `stop` returns.
absl::StatusOr<ParsingOverheadFit> FitParsingOverhead(const ParsingOverheadQuery& query,
                                                      StopCheck stop);

// The excess of lone transfers over their bytes' time: an upper bound of parsing.
//
// The first request that finds a link idle is served at once; where it ends before all others
// nothing was served before it.
// The time it took, less its size at the link's speed, is its receiver's parsing, and whatever else
// a transfer's start costs: an upper bound of parsing, where no packets were captured (ICPE 2020,
// section 4, measures it with them).

// Measurements of both directions and all recorded steps, at the profile's bandwidth, up to
// kMaxParsingMeasurements; what would be below 0 is 0. Cost: O(n log n) in transfers and steps.
// Failure: what `stop` returns.
absl::StatusOr<std::vector<ParsingMeasurement>> MeasureLoneTransfers(const Profile& profile,
                                                                     StopCheck stop);

}  // namespace stepcast
