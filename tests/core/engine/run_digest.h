// A number for all that a run reports: equal for runs that are equal to the tick and to the last
// bit of every rate, and hardly for others.
//
// 64 bits, in the manner of FNV-1a, but a number at a time. Which engine ran does not count.
#pragma once

#include <cstdint>
#include <vector>

#include "core/engine/simulation.h"

namespace stepcast::testing {

class Digest {
 public:
  void Add(uint64_t value);
  void Add(int64_t value) { Add(static_cast<uint64_t>(value)); }
  // By its bits: 0 and -0 differ.
  void Add(double value);

  uint64_t value() const { return value_; }

 private:
  uint64_t value_ = 0xcbf29ce484222325;
};

// `trace` in any order.
uint64_t DigestOf(const RunResult& result, std::vector<ChunkRecord> trace);

}  // namespace stepcast::testing
