// Whole answers, from the request to the predictions, on one core and without anything known.
#pragma once

#include <cstdint>
#include <functional>
#include <stdexcept>
#include <utility>

#include "absl/status/statusor.h"

#include "core/model/profile.h"
#include "core/predict/throughput.h"
#include "tests/bench/registry.h"

namespace stepcast::bench {

// Units of a second, for rounds' values.
inline constexpr double kInSeconds = 1;
inline constexpr double kInMilliseconds = 1e3;

template <typename Value>
Value Required(absl::StatusOr<Value> value) {
  if (!value.ok()) throw std::runtime_error(value.status().ToString());
  return *std::move(value);
}

// A round's value is the processor's time of an answer, in `unit`s of a second. `answer` makes it
// and returns the operations that it simulated.
Outcome TimeAnswer(const std::function<int64_t()>& answer, double unit, int rounds);

// The same of a prediction. The note: the widest interval.
Outcome TimePrediction(const Profile& profile, const ThroughputDraft& draft, double unit,
                       int rounds);

}  // namespace stepcast::bench
