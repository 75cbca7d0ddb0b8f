// The time that computations take as one.
//
// Source: dPRO (MLSys 2022), section 5. Threads: immutable once made.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <vector>

#include "core/base/index.h"
#include "core/model/profile.h"

namespace stepcast {

inline int64_t LengthNs(const RecordedStep& step, int32_t operation) {
  return step.end_ns[Index(operation)] - step.start_ns[Index(operation)];
}

// A measured cost of some computations as one.
struct FusedCost {
  std::vector<int32_t> operations;  // of the profile, ascending
  double seconds = 0;               // not negative

  friend bool operator==(const FusedCost&, const FusedCost&) = default;
};

// The share of their time that all but the last of fused operations take, in dPRO's simulated mode.
inline constexpr double kDproFusedShare = 0.8;

// The time that computations take as one: a table's, else an estimate's where there is one.
class FusionCosts {
 public:
  // A table's cost is of the mean over the recorded steps, and varies with them as the operations
  // do. `share`: of the sum of all but the last of a group, which is added; none: only what the
  // table names can be fused. REQUIRES: entries of distinct sets of computations.
  FusionCosts(const Profile& profile, std::span<const FusedCost> table,
              std::optional<double> share);

  // Mean seconds of one computation.
  double SecondsOf(int32_t operation) const {
    return mean_seconds_[static_cast<size_t>(operation)];
  }
  // Mean seconds of all as one, in the order of their stream; none: not known.
  std::optional<double> SecondsOf(std::span<const int32_t> operations) const;
  // The same of that recorded step, ns. REQUIRES: it is known.
  int64_t NanosecondsOf(std::span<const int32_t> operations, const RecordedStep& step) const;
  // True if anything can be fused.
  bool known() const { return share_.has_value() || !table_.empty(); }
  // True if the cost of these is the table's.
  bool InTable(std::span<const int32_t> operations) const;
  std::optional<double> share() const { return share_; }
  // Operations of the table's longest entry; 0: it is empty.
  size_t longest_entry() const { return longest_entry_; }

 private:
  std::vector<double> mean_seconds_;              // by operation
  std::map<std::vector<int32_t>, double> table_;  // by sorted operations
  std::optional<double> share_;
  size_t longest_entry_ = 0;
};

}  // namespace stepcast
