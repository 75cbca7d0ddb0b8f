#include "core/predict/run_interval.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>

#include "core/base/distributions.h"

namespace stepcast {

namespace {

constexpr double kGroupsThatMatter = 0.05;
constexpr double kSpreadsApart = 8;
constexpr size_t kMinRunsToSplit = 4;

struct Sample {
  double mean = 0;
  double squares = 0;  // of the distances from the mean
  double count = 0;
};

Sample SampleOf(const std::vector<double>& values, size_t from, size_t to) {
  Sample sample{.count = static_cast<double>(to - from)};
  for (size_t i = from; i < to; ++i) sample.mean += values[i] / sample.count;
  for (size_t i = from; i < to; ++i)
    sample.squares += (values[i] - sample.mean) * (values[i] - sample.mean);
  return sample;
}

}  // namespace

double SplitInTwo(std::vector<double> values) {
  constexpr double kOneGroup = std::numeric_limits<double>::infinity();
  if (values.size() < kMinRunsToSplit) return kOneGroup;
  std::sort(values.begin(), values.end());
  size_t best = 1;
  double least = kOneGroup;
  for (size_t split = 1; split < values.size(); ++split) {
    const double squares =
        SampleOf(values, 0, split).squares + SampleOf(values, split, values.size()).squares;
    if (squares >= least) continue;
    least = squares;
    best = split;
  }
  const double apart = SampleOf(values, best, values.size()).mean - SampleOf(values, 0, best).mean;
  const double spread = std::sqrt(least / static_cast<double>(values.size() - 2));
  const bool two = apart > kGroupsThatMatter * SampleOf(values, 0, values.size()).mean &&
                   apart > kSpreadsApart * spread;
  return two ? values[best] : kOneGroup;
}

Interval SingleRunInterval(const std::vector<RunEstimate>& runs, double level) {
  std::vector<double> values;
  double errors = 0;
  for (const RunEstimate& run : runs) {
    values.push_back(run.steps_per_second);
    errors += run.standard_error * run.standard_error;
  }
  std::sort(values.begin(), values.end());
  const double split = SplitInTwo(values);
  const auto at =
      static_cast<size_t>(std::lower_bound(values.begin(), values.end(), split) - values.begin());
  const bool two = at < values.size();
  const Sample lower = SampleOf(values, 0, at);
  const Sample upper = two ? SampleOf(values, at, values.size()) : lower;
  const int degrees = static_cast<int>(runs.size()) - (two ? 2 : 1);
  const double spread =
      degrees > 0 ? std::sqrt((lower.squares + (two ? upper.squares : 0)) / degrees) : 0;
  const double by_spread = degrees > 0 ? StudentTQuantile(degrees, level) * spread : 0;
  const auto count = static_cast<double>(runs.size());
  const double by_batches =
      StudentTQuantile(static_cast<int>(runs.size()) * (kBatches - 1), level) *
      std::sqrt(errors / count);
  const double half_width = std::max(by_spread, by_batches);
  // The mean of the runs is off, too, by their spread over the root of their number.
  return {.lower = std::max(0.0, lower.mean - half_width * std::sqrt(1 + 1 / lower.count)),
          .upper = upper.mean + half_width * std::sqrt(1 + 1 / upper.count),
          .level = level};
}

}  // namespace stepcast
