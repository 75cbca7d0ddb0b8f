#include "tests/bench/papers/pattern_search.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>

namespace stepcast::bench {

namespace {

constexpr double kFirstFactor = 2;
constexpr double kLastFactor = 1.002;
constexpr double kEnough = 1e-9;  // a difference that counts
constexpr int kMostRounds = 200;

}  // namespace

SearchResult Minimize(const std::function<double(const std::vector<double>&)>& function,
                      const std::vector<SearchBounds>& bounds,
                      const std::vector<std::vector<double>>& starts) {
  SearchResult best{.at = {}, .value = std::numeric_limits<double>::infinity()};
  for (const std::vector<double>& start : starts) {
    SearchResult here{.at = start, .value = function(start)};
    double factor = kFirstFactor;
    for (int round = 0; round < kMostRounds && factor > kLastFactor; ++round) {
      const double before = here.value;
      for (size_t i = 0; i < bounds.size(); ++i) {
        for (const double change : {factor, 1 / factor}) {
          std::vector<double> at = here.at;
          at[i] = std::clamp(at[i] * change, bounds[i].least, bounds[i].most);
          const double value = function(at);
          if (value < here.value - kEnough) here = {.at = std::move(at), .value = value};
        }
      }
      if (here.value == before) factor = std::sqrt(factor);
    }
    if (here.value < best.value) best = here;
  }
  return best;
}

}  // namespace stepcast::bench
