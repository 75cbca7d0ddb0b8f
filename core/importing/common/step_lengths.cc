#include "core/importing/common/step_lengths.h"

#include <algorithm>
#include <cstddef>
#include <cstdlib>

namespace stepcast {

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
  for (const int64_t length : lengths) deviations.push_back(std::abs(length - median));
  return std::max(kFarLengths * median,
                  median + kFarDeviations * std::min(kMostDeviation, MiddleOf(deviations)));
}

}  // namespace stepcast
