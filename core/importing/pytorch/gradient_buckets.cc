#include "core/importing/pytorch/gradient_buckets.h"

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

namespace {

constexpr int64_t kMaxPowerSgdRank = 64;

// Elements sent at some rank; a matrix is compressed where that saves more than `least_rate`.
int64_t PowerSgdElements(const std::vector<GradientShape>& gradients, int64_t rank,
                         double least_rate) {
  int64_t sum = 0;
  for (const GradientShape& gradient : gradients) {
    const int64_t rows = std::max<int64_t>(gradient.rows, 1);
    const int64_t columns = gradient.elements / rows;
    const int64_t thin = (rows + columns) * std::min({rows, columns, rank});
    const bool is_compressed =
        rows * columns == gradient.elements &&
        static_cast<double>(thin) * least_rate < static_cast<double>(gradient.elements);
    sum += is_compressed ? thin : gradient.elements;
  }
  return sum;
}

// Two matrices of a rank times the side of the least square that a bucket fits into, for each.
bool IsBatchedPowerSgd(int64_t elements, std::vector<int64_t> sent, int64_t rank) {
  std::sort(sent.begin(), sent.end());
  int64_t least = 0;
  int64_t most = 0;
  for (size_t i = 0; i + 1 < sent.size(); i += 2) {
    const int64_t side = sent[i] / rank;
    if (sent[i] != sent[i + 1] || sent[i] % rank != 0 || side > INT32_MAX) return false;
    if (most > elements) return false;
    least += (side - 1) * (side - 1) + 1;
    most += side * side;
  }
  return sent.size() % 2 == 0 && least <= elements && elements <= most;
}

}  // namespace

int64_t PowerSgdRank(const std::vector<GradientShape>& gradients,
                     const std::vector<int64_t>& sent) {
  int64_t elements = 0;
  for (const GradientShape& gradient : gradients) elements += gradient.elements;
  const int64_t sum = std::accumulate(sent.begin(), sent.end(), int64_t{0});
  constexpr size_t kMostGradients = size_t{1} << 14;
  if (sum >= elements || sent.size() < 2 || gradients.size() > kMostGradients) return 0;
  for (int64_t rank = 1; rank <= kMaxPowerSgdRank; ++rank) {
    // By default 2.
    for (const double least_rate : {2.0, 1.0, 0.5, 1.5, 3.0, 4.0, 5.0, 8.0, 10.0}) {
      if (PowerSgdElements(gradients, rank, least_rate) == sum) return rank;
    }
    if (IsBatchedPowerSgd(elements, sent, rank)) return rank;
  }
  return 0;
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
