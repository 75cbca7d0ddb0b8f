// Measurements of parsing, from a file: a line each, `size_bytes,seconds`.
//
// Separators are commas, semicolons or tabs; empty lines and those that begin with # are skipped,
// and so is a first line that begins with a letter: the columns' names. Threads: pure functions.
// Cost: linear.
#pragma once

#include <string_view>
#include <vector>

#include "absl/status/statusor.h"

#include "stepcast/calibration.h"

namespace stepcast::client {

// Whether the first line with content looks like the above and not like a profile.
bool LooksLikeMeasurements(std::string_view text);

// Failure: INVALID_ARGUMENT, naming the first line that is none, and what it says.
absl::StatusOr<std::vector<ParsingMeasurement>> ParseMeasurements(std::string_view text);

}  // namespace stepcast::client
