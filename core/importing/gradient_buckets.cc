#include "core/importing/gradient_buckets.h"

#include <algorithm>
#include <numeric>

namespace stepcast {

std::vector<size_t> AssignBuckets(const std::vector<int64_t>& gradient_bytes, const Buckets& rule) {
  std::vector<size_t> counts;
  size_t count = 0;
  int64_t bytes = 0;
  for (const int64_t gradient : gradient_bytes) {
    ++count;
    bytes += gradient;
    if (bytes < (counts.empty() ? rule.first_bytes : rule.cap_bytes)) continue;
    counts.push_back(count);
    count = 0;
    bytes = 0;
  }
  if (count > 0) counts.push_back(count);
  return counts;
}

std::optional<BucketMembers> FindBucketMembers(const std::vector<int64_t>& gradients,
                                               const std::vector<int64_t>& buckets) {
  int64_t left = std::accumulate(buckets.begin(), buckets.end(), int64_t{0});
  size_t skipped = gradients.size();
  while (skipped > 0 && left > 0) left -= gradients[--skipped];
  if (left != 0) return std::nullopt;
  BucketMembers members{.skipped = skipped};
  size_t next = skipped;
  for (const int64_t bucket : buckets) {
    const size_t first = next;
    for (int64_t bytes = 0; bytes < bucket;) {
      bytes += gradients[next++];
      if (bytes > bucket) return std::nullopt;
    }
    members.counts.push_back(next - first);
  }
  return members;
}

std::optional<CapRange> CapsThatMake(const std::vector<int64_t>& gradient_bytes,
                                     const std::vector<size_t>& counts) {
  CapRange caps{.most = INT64_MAX};
  size_t next = 0;
  for (size_t bucket = 0; bucket < counts.size(); ++bucket) {
    int64_t bytes = 0;
    for (size_t i = 0; i < counts[bucket]; ++i) bytes += gradient_bytes[next++];
    if (bucket == 0 || counts[bucket] == 0) continue;
    // It was open before its last gradient, and closed after it.
    caps.least = std::max(caps.least, bytes - gradient_bytes[next - 1] + 1);
    if (bucket + 1 < counts.size()) caps.most = std::min(caps.most, bytes);
  }
  if (caps.least > caps.most) return std::nullopt;
  return caps;
}

CapRange FirstLimitsThatMake(const std::vector<int64_t>& gradient_bytes,
                             const std::vector<size_t>& counts) {
  const auto end = gradient_bytes.begin() + static_cast<ptrdiff_t>(counts.front());
  const int64_t bytes = std::accumulate(gradient_bytes.begin(), end, int64_t{0});
  const int64_t last = counts.front() == 0 ? 0 : *(end - 1);
  return {.least = bytes - last + 1, .most = counts.size() > 1 ? bytes : INT64_MAX};
}

}  // namespace stepcast
