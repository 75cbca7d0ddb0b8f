// A chain of gradients that are all-reduced one after the other, and the ways to group it.
//
// Model: MG-WFBP's (Shi et al., INFOCOM 2019). A gradient is ready at some instant of the step; a
// group is ready when its last gradient is, begins then or when the group before it has ended, and
// takes what a collective of all its bytes takes. Deterministic: it says which groupings are worth
// simulating, and bounds them. Threads: immutable.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"

#include "core/base/stop_check.h"
#include "core/communication/collective_time.h"
#include "core/model/scenario.h"
#include "core/predict/throughput.h"

namespace stepcast {

class GradientChain {
 public:
  // The all-reduces among `collectives`, each of one gradient, in the order in which they begin.
  // REQUIRES: the scenario is of collectives.
  GradientChain(const std::vector<CollectiveTiming>& collectives, const Scenario& scenario);

  size_t size() const { return bytes_.size(); }
  const std::vector<int64_t>& bytes() const { return bytes_; }

  // Below, a grouping is the number of gradients in each group; they add up to size().

  // The bytes of each group.
  std::vector<int64_t> BytesOf(const std::vector<int32_t>& counts) const;
  // The instant at which the last group ends, in seconds from the step's begin.
  double EndOf(const std::vector<int32_t>& counts) const;
  // A grouping whose last group ends soonest; of those one with the largest groups at the end of
  // the chain. Cost: size()^2 / 2. Failure: what `stop` returns.
  absl::StatusOr<std::vector<int32_t>> SoonestEnd(StopCheck stop) const;
  // No grouping ends sooner: the same, or, where several collectives are under way at once, what
  // the slowest link needs for the bytes alone after the first gradient.
  absl::StatusOr<double> LowerBoundOfEnd(StopCheck stop) const;

 private:
  double SecondsOf(int64_t bytes) const;

  CollectiveTimes times_;
  int64_t partition_bytes_;
  bool is_serial_;
  double seconds_per_byte_ = 0;  // of the bytes alone, at least
  std::vector<int64_t> bytes_;
  std::vector<double> ready_seconds_;
};

// All 2^(size-1) groupings. REQUIRES: 0 < size < 20.
std::vector<std::vector<int32_t>> AllGroupings(size_t size);

// The groupings that have one boundary more, one less, or one a gradient further on or back.
std::vector<std::vector<int32_t>> OneBoundaryAway(const std::vector<int32_t>& counts);

}  // namespace stepcast
