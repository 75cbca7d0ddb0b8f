// The chain of a step as dPRO sees it: computations p that follow each other on one stream, and the
// gradients q that wait for them and go one after the other; what fusing either does to it, the
// theorems that say when it pays, and the best that there is of both.
//
// Source: dPRO (MLSys 2022), section 5.1: T_n = max(p^e_n, q^e_n), q^e_n = max(p^e_n, q^e_{n-1}) +
// tsync. Times are means, so the chain only says what is worth a simulation. Threads: none.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

#include "core/advise/strategy.h"
#include "core/base/stop_check.h"
#include "core/model/profile.h"

namespace stepcast {

// Theorem 1: where computation is what a step waits for, computing two operations as one pays if it
// saves at least as much as the earlier one's gradient takes, which is delayed. Seconds.
// Holds where the later gradient is ready when the earlier one has been sent, fused and not.
inline bool FusingOperationsPays(double sync_before, double earlier, double later, double fused) {
  return sync_before <= later + earlier - fused;
}

// Theorem 2: where communication is what a step waits for, sending two gradients as one pays if the
// earlier one's end is later than that of waiting for the later one would be. Seconds;
// `end_before`: of the earlier gradient, `ready`: of the later one.
// Holds where what is sent before the earlier one has ended when the later one is ready.
inline bool FusingTensorsPays(double end_before, double ready, double sync_both,
                              double sync_later) {
  return end_before > ready + sync_both - sync_later;
}

// The time that a group of gradients takes to be sent, and the number of parts that is best for it:
// tsync(s, k) and k*[s].
class SyncTimes {
 public:
  // Gradients `first` to `first + count` of the chain, which have so many bytes.
  struct Range {
    int32_t first = 0;
    int32_t count = 0;
    int64_t bytes = 0;
  };
  struct Best {
    int32_t partitions = 1;
    double seconds = 0;
  };
  using Measure = std::function<absl::StatusOr<double>(const Range&, int32_t partitions)>;

  // `measure` is asked once for a number of bytes, or if not `by_bytes` for a range.
  SyncTimes(Measure measure, int32_t max_partitions, bool by_bytes)
      : measure_(std::move(measure)), max_partitions_(max_partitions), by_bytes_(by_bytes) {}

  // Whole.
  double SecondsOf(const Range& range) { return SecondsOf(range, 1); }
  // The least, of 1, 2, 3, 4, 6, 8, 12, 16 parts; the fewest of those as good.
  Best BestOf(const Range& range);
  // The error of `measure`; from then on all times are 0.
  const absl::Status& status() const { return status_; }
  int64_t measured() const { return measured_; }

 private:
  using Key = std::pair<int64_t, int64_t>;
  Key KeyOf(const Range& range) const {
    return by_bytes_ ? Key{-1, range.bytes} : Key{range.first, range.count};
  }
  double SecondsOf(const Range& range, int32_t partitions);

  Measure measure_;
  int32_t max_partitions_;
  bool by_bytes_;
  std::map<std::pair<Key, int32_t>, double> known_;
  std::map<Key, Best> best_;
  absl::Status status_;
  int64_t measured_ = 0;
};

// A gradient of the chain.
struct ChainGradient {
  int32_t operation = 0;  // of the profile
  int64_t bytes = 0;
  int32_t after = -1;  // index of the chain's computation that it waits for; -1: none of them
  double ready_seconds = 0;
};

// Groups of a chain's computations and gradients: 1 where a group ends with that one.
struct ChainGrouping {
  std::vector<uint8_t> computation_ends;
  std::vector<uint8_t> gradient_ends;
  bool cuts = false;  // every group in as many parts as are best for it

  friend bool operator==(const ChainGrouping&, const ChainGrouping&) = default;
  friend auto operator<=>(const ChainGrouping&,
                          const ChainGrouping&) = default;  // NOLINT(modernize-use-nullptr)
};

// A group of gradients on the chain.
struct ChainTensor {
  SyncTimes::Range range;
  int32_t partitions = 1;
  int32_t after = -1;  // index of the group of computations that it waits for
  double ready = 0;
  double begin = 0;
  double end = 0;
};

struct ChainTimes {
  std::vector<std::pair<int32_t, int32_t>> computations;  // of each group, first and past the last
  std::vector<double> computed;                           // its end
  std::vector<ChainTensor> tensors;
  double makespan = 0;  // infinite where the cost of a group is not known
  // Tensors up to here begin when they are ready: the critical path goes over computations to it,
  // and from it over tensors. -1: there are no tensors.
  int32_t turn = -1;
};

class StepChain {
 public:
  // `ready_seconds`: by operation, when that gradient is ready where each goes by itself. What they
  // outlive: `costs` and `sync`.
  StepChain(const Profile& profile, const std::vector<double>& ready_seconds,
            const FusionCosts& costs, SyncTimes& sync);
  // A chain of given parts. REQUIRES: `after` does not fall from one gradient to the next.
  StepChain(std::vector<int32_t> computations, std::vector<ChainGradient> gradients,
            const FusionCosts& costs, SyncTimes& sync);

  const std::vector<int32_t>& computations() const { return computations_; }
  const std::vector<ChainGradient>& gradients() const { return gradients_; }

  // Seconds of the computations `first` up to `end` as one group; none: not known, or those are
  // never one.
  std::optional<double> SecondsOf(int32_t first, int32_t end) const;

  ChainTimes TimesOf(const ChainGrouping& grouping) const;

  // Nothing is fused.
  ChainGrouping Alone() const;
  // The coarsened view's: computations without a gradient go with the next one that has some, where
  // they can be fused and it saves time, and gradients of one computation are one group.
  ChainGrouping Coarsened() const;
  // Such groups of gradients, of consecutive ones, and of computations as in `computations_of`.
  ChainGrouping WithTensors(const ChainGrouping& computations_of,
                            std::span<const int32_t> gradient_counts) const;

  // dPRO's Algorithm 1, one round of it: first over the computations of the critical path by
  // Theorem 1, then over its tensors by Theorem 2, each time fusing the other kind, too (Theorem 3:
  // doing both is no worse). Groups stay whole. Cost: a TimesOf a decision.
  absl::StatusOr<ChainGrouping> Decide(ChainGrouping grouping, StopCheck stop) const;

  // The grouping with the least makespan of all whose groups are made of whole groups of `finest`,
  // where fusing more saves more and one collective of two tensors takes no longer than two: then
  // computations of one group of gradients are best as one, or as they are (Theorem 3), and those
  // that no gradient waits for may go with what is before them. Exact but for rounding, by dynamic
  // programming over the last group with all that is not worse in both, time saved and end. Cost:
  // mostly quadratic in gradients.
  absl::StatusOr<ChainGrouping> Best(const ChainGrouping& finest, StopCheck stop) const;

  Strategy StrategyOf(const ChainGrouping& grouping) const;
  // The grouping of a strategy of this chain.
  ChainGrouping GroupingOf(const Strategy& strategy) const;

 private:
  class BestSearch;

  void Prepare();
  double SumOf(int32_t first, int32_t end) const {
    return prefix_[static_cast<size_t>(end)] - prefix_[static_cast<size_t>(first)];
  }
  SyncTimes::Range RangeOf(int32_t first, int32_t end) const;
  void FuseTensors(const ChainTimes& times, size_t first, size_t last,
                   ChainGrouping& grouping) const;
  bool FuseComputations(const ChainTimes& times, int32_t first, int32_t last,
                        ChainGrouping& grouping) const;

  std::vector<int32_t> computations_;  // of the profile, in the order of their stream
  std::vector<ChainGradient> gradients_;
  const FusionCosts& costs_;
  SyncTimes& sync_;
  std::vector<double> prefix_;         // summed seconds before each computation
  std::vector<double> ends_;           // of each computation where nothing is fused
  std::vector<int64_t> prefix_bytes_;  // likewise, of gradients
  int32_t last_producer_ = -1;         // the last computation that a gradient waits for
};

}  // namespace stepcast
