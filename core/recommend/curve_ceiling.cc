#include "core/recommend/curve_ceiling.h"

#include <algorithm>
#include <iterator>
#include <limits>

namespace stepcast {

namespace {

using Known = std::map<int32_t, double>;

double SlopeOf(Known::const_iterator a, Known::const_iterator b) {
  return (b->second - a->second) / (b->first - a->first);
}

}  // namespace

double CurveCeiling::At(int32_t workers) const {
  const auto right = known_.upper_bound(workers);
  auto left = known_.lower_bound(workers);
  const bool has_left = left != known_.begin();
  if (has_left) --left;
  double ceiling = std::numeric_limits<double>::infinity();
  if (has_left) {
    ceiling = left->second * workers / left->first;  // each as good as those before
    if (left != known_.begin()) {
      const double slope = std::max(0.0, SlopeOf(std::prev(left), left));
      ceiling = std::min(ceiling, left->second + slope * (workers - left->first));
    }
  }
  if (right == known_.end()) return ceiling;
  if (std::next(right) != known_.end()) {
    ceiling = std::min(ceiling,
                       right->second - SlopeOf(right, std::next(right)) * (right->first - workers));
  }
  // A curve that wavers may leave nothing above the straight line from one known number to the
  // next.
  const double chord = has_left ? left->second + SlopeOf(left, right) * (workers - left->first) : 0;
  return std::max(ceiling, chord);
}

double CurveCeiling::ExcessOf(int32_t workers, double found) const {
  return std::max(0.0, found / At(workers) - 1);
}

}  // namespace stepcast
