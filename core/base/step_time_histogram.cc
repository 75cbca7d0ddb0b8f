#include "core/base/step_time_histogram.h"

#include <algorithm>
#include <cmath>
#include <cstddef>

namespace stepcast {

StepTimeHistogram::StepTimeHistogram(const Counts& counts) : sum_ticks_(counts.sum_ticks) {
  for (const Counts::OfBucket& of : counts.of_buckets) {
    std::vector<int64_t>& buckets = octaves_[static_cast<size_t>(of.octave)];
    if (buckets.empty()) buckets.resize(size_t{1} << kSubBits);
    buckets[static_cast<size_t>(of.bucket)] += of.count;
    count_ += of.count;
  }
}

bool StepTimeHistogram::AreCounts(const Counts& counts) {
  return std::all_of(counts.of_buckets.begin(), counts.of_buckets.end(),
                     [](const Counts::OfBucket& of) {
                       return of.octave >= 0 && of.octave < kOctaves && of.bucket >= 0 &&
                              of.bucket < 1 << kSubBits && of.count >= 0;
                     });
}

StepTimeHistogram::Counts StepTimeHistogram::counts() const {
  Counts counts{.of_buckets = {}, .sum_ticks = sum_ticks_};
  for (size_t octave = 0; octave < octaves_.size(); ++octave) {
    for (size_t bucket = 0; bucket < octaves_[octave].size(); ++bucket) {
      const int64_t count = octaves_[octave][bucket];
      if (count == 0) continue;
      counts.of_buckets.push_back({.octave = static_cast<int32_t>(octave),
                                   .bucket = static_cast<int32_t>(bucket),
                                   .count = count});
    }
  }
  return counts;
}

void StepTimeHistogram::Merge(const StepTimeHistogram& other) {
  for (size_t octave = 0; octave < octaves_.size(); ++octave) {
    const std::vector<int64_t>& from = other.octaves_[octave];
    if (from.empty()) continue;
    std::vector<int64_t>& to = octaves_[octave];
    if (to.empty()) to.resize(from.size());
    for (size_t i = 0; i < from.size(); ++i) to[i] += from[i];
  }
  count_ += other.count_;
  sum_ticks_ += other.sum_ticks_;
}

size_t StepTimeHistogram::heap_bytes() const {
  size_t bytes = 0;
  for (const std::vector<int64_t>& buckets : octaves_)
    bytes += buckets.capacity() * sizeof(int64_t);
  return bytes;
}

double StepTimeHistogram::MeanSeconds() const {
  if (count_ == 0) return 0;
  return static_cast<double>(sum_ticks_) / static_cast<double>(count_) /
         (1e9 * static_cast<double>(kTicksPerNanosecond));
}

double StepTimeHistogram::PercentileSeconds(double share) const {
  if (count_ == 0) return 0;
  auto left = static_cast<int64_t>(std::ceil(share * static_cast<double>(count_)));
  for (size_t octave = 0; octave < octaves_.size(); ++octave) {
    for (size_t i = 0; i < octaves_[octave].size(); ++i) {
      left -= octaves_[octave][i];
      if (left > 0) continue;
      const uint64_t width = octave == 0 ? 1 : uint64_t{1} << (octave - 1);
      const uint64_t base = octave == 0 ? i : ((uint64_t{1} << kSubBits) + i) << (octave - 1);
      return ToSeconds(Span{static_cast<int64_t>(base + width / 2)});
    }
  }
  return 0;
}

}  // namespace stepcast
