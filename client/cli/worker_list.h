// Numbers of workers, as people write them.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"

namespace stepcast::client {

// Counts and ranges, separated by commas: `1-16`, `1,2,4`, `1-4,8,16`; in the order given, each at
// least 1. Failure: INVALID_ARGUMENT, with the part that is wrong; more than 1024 counts, which is
// what one call may ask for, are wrong too.
absl::StatusOr<std::vector<int32_t>> ParseWorkerList(std::string_view text);

}  // namespace stepcast::client
