#include "core/importing/common/time_spans.h"

#include <algorithm>
#include <cstddef>
#include <cstdlib>

namespace stepcast {

std::vector<TimeSpan> UnionOf(std::vector<TimeSpan> spans) {
  std::sort(spans.begin(), spans.end(),
            [](const TimeSpan& a, const TimeSpan& b) { return a.start_ns < b.start_ns; });
  std::vector<TimeSpan> merged;
  for (const TimeSpan& span : spans) {
    if (!merged.empty() && span.start_ns <= merged.back().end_ns) {
      merged.back().end_ns = std::max(merged.back().end_ns, span.end_ns);
    } else {
      merged.push_back(span);
    }
  }
  return merged;
}

std::vector<TimeSpan> BothOf(const std::vector<TimeSpan>& a, const std::vector<TimeSpan>& b) {
  std::vector<TimeSpan> both;
  for (size_t i = 0, j = 0; i < a.size() && j < b.size();) {
    const TimeSpan span = {.start_ns = std::max(a[i].start_ns, b[j].start_ns),
                           .end_ns = std::min(a[i].end_ns, b[j].end_ns)};
    if (span.start_ns < span.end_ns) both.push_back(span);
    (a[i].end_ns < b[j].end_ns ? i : j) += 1;
  }
  return both;
}

std::vector<TimeSpan> GapsOf(const std::vector<TimeSpan>& spans, int64_t from_ns, int64_t to_ns) {
  std::vector<TimeSpan> gaps;
  for (const TimeSpan& span : spans) {
    if (span.start_ns > from_ns) gaps.push_back({from_ns, std::min(span.start_ns, to_ns)});
    from_ns = std::max(from_ns, span.end_ns);
    if (from_ns >= to_ns) return gaps;
  }
  gaps.push_back({from_ns, to_ns});
  return gaps;
}

int64_t LengthOf(const std::vector<TimeSpan>& spans) {
  int64_t length = 0;
  for (const TimeSpan& span : spans) length += span.end_ns - span.start_ns;
  return length;
}

int64_t MiddleOf(std::vector<int64_t> values) {
  const auto half = values.begin() + static_cast<ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), half, values.end());
  return *half;
}

int64_t LongestUsual(const std::vector<int64_t>& lengths, int64_t median) {
  constexpr size_t kFewSteps = 6;  // with those that warm up
  constexpr int64_t kFarDeviations = 12;
  constexpr int64_t kFarLengths = 2;
  constexpr int64_t kMostDeviation = (int64_t{1} << 60) / kFarDeviations;
  if (lengths.size() < kFewSteps) return INT64_MAX;
  std::vector<int64_t> deviations;
  deviations.reserve(lengths.size());
  for (const int64_t length : lengths) deviations.push_back(std::abs(length - median));
  return std::max(kFarLengths * median,
                  median + kFarDeviations * std::min(kMostDeviation, MiddleOf(deviations)));
}

}  // namespace stepcast
