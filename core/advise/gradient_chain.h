// The chain of a job's gradients, which are ready at fixed instants of a step and all-reduced one
// after the other, and the ways to group it (group_rules.h).
//
// Deterministic: it says which groupings are worth simulating, and bounds them. Threads: immutable.
#pragma once

#include <cstddef>
#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

#include "core/advise/group_rules.h"
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

  size_t size() const { return gradients_.size(); }
  const std::vector<ReadyGradient>& gradients() const { return gradients_; }
  // Names of the profile's operations, parallel to gradients().
  const std::vector<std::string>& names() const { return names_; }
  bool Has(const std::string& name) const { return sorted_names_.contains(name); }
  std::vector<int64_t> bytes() const;

  // Below, a grouping is the number of gradients in each group; they add up to size().

  // The bytes of each group.
  std::vector<int64_t> BytesOf(const std::vector<int32_t>& counts) const;
  // The instant at which the last group ends, in seconds from the step's begin.
  double EndOf(const std::vector<int32_t>& counts) const;
  // A grouping whose last group ends soonest, of the fewest groups. Cost: quadratic. Failure: what
  // `stop` returns.
  absl::StatusOr<std::vector<int32_t>> SoonestEnd(StopCheck stop) const;
  // No grouping ends sooner: the same, with contention of collectives each with the best of
  // `threads` and of the scenario's, or, where several are under way at once, what the slowest link
  // needs for the bytes alone after the first gradient.
  absl::StatusOr<double> LowerBoundOfEnd(const std::vector<int32_t>& threads, StopCheck stop) const;
  // The least that all bytes take, one collective after the other, however they are grouped and cut
  // and whenever they are ready; 0 where the algorithm gives no such bound. `threads`: as above.
  double LeastSecondsOfAll(const std::vector<int32_t>& threads) const;

 private:
  GradientChain(const std::vector<CollectiveTiming>& collectives, const Scenario& scenario,
                const AllReduce& job);

  // With the best of those numbers of threads and the scenario's.
  double SecondsOf(double summed_bytes, const std::vector<int32_t>& threads = {}) const;

  CollectiveTimes times_;
  int64_t partition_bytes_;
  bool is_serial_;
  bool contends_;
  double seconds_per_byte_ = 0;  // of the bytes alone, at least
  bool bytes_bound_;             // so long, at least, over links that are all alike
  // Ready no sooner than those before: what is carried after them waits for them anyway.
  std::vector<ReadyGradient> gradients_;
  std::vector<std::string> names_;
  std::set<std::string> sorted_names_;
};

// All 2^(size-1) groupings. REQUIRES: 0 < size < 20.
std::vector<std::vector<int32_t>> AllGroupings(size_t size);

// The groupings that have one boundary more, one less, or one a gradient further on or back.
std::vector<std::vector<int32_t>> OneBoundaryAway(const std::vector<int32_t>& counts);

}  // namespace stepcast
