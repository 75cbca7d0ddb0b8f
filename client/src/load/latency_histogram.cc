#include "client/src/load/latency_histogram.h"

#include <algorithm>
#include <bit>
#include <cassert>
#include <cmath>
#include <cstddef>

namespace stepcast::client {

namespace {

using std::chrono::nanoseconds;

// Values below 2^kBits have a bucket each; every later power of two is split into as many.
constexpr int kBits = 8;
constexpr uint64_t kFirst = uint64_t{1} << kBits;

size_t BucketOf(uint64_t value) {
  if (value < kFirst) return static_cast<size_t>(value);
  const int shift = static_cast<int>(std::bit_width(value)) - kBits - 1;
  return static_cast<size_t>((static_cast<uint64_t>(shift) << kBits) + (value >> shift));
}

// The greatest value in it.
uint64_t TopOf(size_t bucket) {
  if (bucket < kFirst) return bucket;
  const int shift = static_cast<int>(bucket >> kBits) - 1;
  const uint64_t leading = bucket - (static_cast<uint64_t>(shift) << kBits);
  return ((leading + 1) << shift) - 1;
}

uint64_t Clamped(nanoseconds latency) {
  return static_cast<uint64_t>(
      std::clamp(latency, nanoseconds(0), nanoseconds(LatencyHistogram::kLongest)).count());
}

}  // namespace

LatencyHistogram::LatencyHistogram() : buckets_(BucketOf(Clamped(kLongest)) + 1) {}

void LatencyHistogram::Record(nanoseconds latency) {
  ++buckets_[BucketOf(Clamped(latency))];
  ++count_;
  sum_ns_ += static_cast<double>(latency.count());
  max_ = std::max(max_, latency);
}

nanoseconds LatencyHistogram::Mean() const {
  return count_ == 0 ? nanoseconds(0)
                     : nanoseconds(std::llround(sum_ns_ / static_cast<double>(count_)));
}

nanoseconds LatencyHistogram::Percentile(double part) const {
  assert(part > 0 && part <= 1);
  const auto wanted =
      std::max<int64_t>(1, std::llround(std::ceil(part * static_cast<double>(count_))));
  int64_t seen = 0;
  for (size_t bucket = 0; bucket < buckets_.size(); ++bucket) {
    seen += buckets_[bucket];
    if (seen >= wanted) return std::min(max_, nanoseconds(static_cast<int64_t>(TopOf(bucket))));
  }
  return max_;
}

}  // namespace stepcast::client
