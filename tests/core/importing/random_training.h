// Random steps of a worker with parameter servers, as TensorFlow could have recorded them.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/model/profile.h"

namespace stepcast::testing {

struct TrainingSize {
  uint64_t servers = 3;    // at most; at least one
  uint64_t variables = 6;  // at most; at least one
  uint64_t steps = 3;      // at most; at least one
  int64_t tick_ns = 1000;  // all times are multiples of it
  bool reads = true;       // downloads may wait for an operation of their server
};

// Valid, and a function of its seed: per variable a download, some of the worker's operations, an
// upload and an update. Nothing starts before what it waits for has ended; the first download
// starts with the step.
Profile RandomTraining(uint64_t seed, const TrainingSize& size = {});

// A line an operation, by name: what it is, what it waits for, and when it ran. Equal for profiles
// that differ only in the order of their operations.
std::vector<std::string> Described(const Profile& profile);

// The reason and fields of an error, and what it says of the first: "IMPORT_INVALID recording: byte
// 3: ...".
std::string Told(const absl::Status& status);

}  // namespace stepcast::testing
