// The least of a function of a few positive numbers, found by looking around.
#pragma once

#include <functional>
#include <vector>

namespace stepcast::bench {

struct SearchBounds {
  double least = 0;  // above 0
  double most = 0;
};

struct SearchResult {
  std::vector<double> at;
  double value = 0;
};

// Multiplies and divides one number after the other by a factor, keeps what makes the function
// less, and takes the factor's root where nothing does; from each start, the best of all. A local
// minimum of what it has seen; the same for the same arguments. REQUIRES: starts are within bounds,
// as many numbers each. Cost: some hundred calls a start and number.
SearchResult Minimize(const std::function<double(const std::vector<double>&)>& function,
                      const std::vector<SearchBounds>& bounds,
                      const std::vector<std::vector<double>>& starts);

}  // namespace stepcast::bench
