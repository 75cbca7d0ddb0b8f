#include "tests/bench/rounds.h"

#include <algorithm>
#include <cmath>
#include <cstddef>

namespace stepcast::bench {

namespace {

constexpr size_t kMinForPercentiles = 10;

// Between the two nearest values. REQUIRES: sorted and not empty.
double Quantile(const std::vector<double>& sorted, double share) {
  const double at = share * static_cast<double>(sorted.size() - 1);
  const double below = std::floor(at);
  const auto index = static_cast<size_t>(below);
  if (index + 1 == sorted.size()) return sorted.back();
  return sorted[index] + (at - below) * (sorted[index + 1] - sorted[index]);
}

}  // namespace

Spread SpreadOf(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const bool few = values.size() < kMinForPercentiles;
  return {.median = Quantile(values, 0.5),
          .low = few ? values.front() : Quantile(values, 0.1),
          .high = few ? values.back() : Quantile(values, 0.9)};
}

std::vector<Round> TakeTurns(int rounds, const std::function<Cost()>& ours,
                             const std::function<Cost()>& theirs,
                             const std::function<double(double ours, double theirs)>& value_of) {
  std::vector<Round> taken;
  for (int turn = 0; turn <= rounds; ++turn) {
    const double own = ours().PerOperation();
    const double other = theirs().PerOperation();
    if (turn > 0) taken.push_back({.ours = own, .theirs = other, .value = value_of(own, other)});
  }
  return taken;
}

double TheirsOverOurs(double ours, double theirs) { return theirs / ours; }
double OursOverTheirs(double ours, double theirs) { return ours / theirs; }
double OursMinusTheirs(double ours, double theirs) { return ours - theirs; }

}  // namespace stepcast::bench
