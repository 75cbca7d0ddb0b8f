// One decoder under test: what a fuzzer drives for hours, and a replay with what was kept of that.
//
// A program has one target. Threads: none. Failure: a broken promise ends the process (demand.h).
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/functional/function_ref.h"

#include "core/base/random.h"

namespace stepcast::fuzz {

// A change of an input: the choices come from `random`, and `bytes` changes bytes as whoever
// drives the target can.
struct Mutation {
  Random& random;
  size_t max_bytes = 4096;
  absl::FunctionRef<std::string(std::string)> bytes;
};

class FuzzTarget {
 public:
  virtual ~FuzzTarget() = default;
  // Inputs that are accepted, to begin with.
  virtual std::vector<std::string> Seeds() const = 0;
  // Decodes `input` and demands what is promised. False: it was refused.
  virtual bool Run(std::string_view input) = 0;
  // Another input made of this one. The result may be longer than `max_bytes`, and is then not
  // used.
  virtual std::string Mutate(std::string input, const Mutation& mutation) const {
    return mutation.bytes(std::move(input));
  }
};

// The program's own.
std::unique_ptr<FuzzTarget> MakeFuzzTarget();

}  // namespace stepcast::fuzz
