// The value of a StatusOr, or an exception: what a program that measures does with an input of its
// own that fails.
#pragma once

#include <stdexcept>
#include <utility>

#include "absl/status/statusor.h"

namespace stepcast::bench {

template <typename T>
T Valid(absl::StatusOr<T> value) {
  if (!value.ok()) throw std::runtime_error(value.status().ToString());
  return *std::move(value);
}

}  // namespace stepcast::bench
