// A histogram of the lengths of steps, with buckets of 0.1 % width.
//
// Percentiles are the middle of a bucket, so within 0.05 % of the value; the mean is exact.
// Memory: 8 KiB for each power of two that occurs, whatever the number of steps.
// Source: the bucketing of HdrHistogram.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "core/base/time.h"

namespace stepcast {

class StepTimeHistogram {
 public:
  // All that was added, as plain numbers.
  struct Counts {
    struct OfBucket {
      int32_t octave = 0;
      int32_t bucket = 0;
      int64_t count = 0;
    };
    std::vector<OfBucket> of_buckets;  // those that have any
    __int128 sum_ticks = 0;
  };

  StepTimeHistogram() = default;
  // REQUIRES: AreCounts(counts).
  explicit StepTimeHistogram(const Counts& counts);
  // False where some bucket is none of a histogram.
  static bool AreCounts(const Counts& counts);
  Counts counts() const;

  void Add(Span span) {
    const auto ticks = static_cast<uint64_t>(span.ticks);
    const int bits = std::bit_width(ticks);
    const int octave = bits <= kSubBits ? 0 : bits - kSubBits;
    const uint64_t bucket =
        octave == 0 ? ticks : (ticks >> (octave - 1)) & ((uint64_t{1} << kSubBits) - 1);
    std::vector<int64_t>& buckets = octaves_[static_cast<size_t>(octave)];
    if (buckets.empty()) buckets.resize(size_t{1} << kSubBits);
    ++buckets[bucket];
    ++count_;
    sum_ticks_ += span.ticks;
  }
  void Merge(const StepTimeHistogram& other);

  int64_t count() const { return count_; }
  // 0 where nothing was added.
  double MeanSeconds() const;
  // The value that `share` of the spans do not exceed. 0 where nothing was added. REQUIRES: 0 <
  // share <= 1.
  double PercentileSeconds(double share) const;
  // Held beside the object itself.
  size_t heap_bytes() const;

 private:
  static constexpr int kSubBits = 10;
  static constexpr int kOctaves = 64 - kSubBits;

  // Octave 0 holds [0, 2^kSubBits) exactly; octave k the spans whose highest bit is kSubBits + k
  // - 1.
  std::array<std::vector<int64_t>, kOctaves> octaves_;
  int64_t count_ = 0;
  __int128 sum_ticks_ = 0;
};

}  // namespace stepcast
