// A histogram of latencies, in buckets whose width grows with the values they hold.
//
// Precision: a percentile is never below the exact one, and above it by less than a 256th. Count,
// mean and the greatest are exact. Range: from 0 to an hour; what is longer counts as an hour in
// percentiles, below 0 as 0. Cost: Record O(1) without allocation, Percentile O(buckets). 70 KiB.
// Threads: none.
#pragma once

#include <chrono>
#include <cstdint>
#include <vector>

namespace stepcast::client {

class LatencyHistogram {
 public:
  static constexpr std::chrono::nanoseconds kLongest = std::chrono::hours(1);

  LatencyHistogram();

  void Record(std::chrono::nanoseconds latency);

  int64_t count() const { return count_; }
  std::chrono::nanoseconds max() const { return max_; }
  // 0 where nothing was recorded.
  std::chrono::nanoseconds Mean() const;
  // The least latency that at least a share `part` of the calls did not exceed; 0 where nothing was
  // recorded. REQUIRES: part is in (0, 1].
  std::chrono::nanoseconds Percentile(double part) const;

 private:
  std::vector<int64_t> buckets_;
  int64_t count_ = 0;
  double sum_ns_ = 0;
  std::chrono::nanoseconds max_{0};
};

}  // namespace stepcast::client
