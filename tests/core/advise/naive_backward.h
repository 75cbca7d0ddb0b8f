// A backward pass beside its all-reduces, instant by instant, and random ones: what the formulas
// and the dynamic programming of core/advise are held to.
#pragma once

#include <vector>

#include "core/advise/overlap_model.h"
#include "core/base/random.h"

namespace stepcast {

// From one instant at which something ends to the next: computation advances at 1/g beside an
// all-reduce, the all-reduce by 1/(p + a) of itself beside computation and by 1/(q + a) alone.
double NaiveBackwardSeconds(const std::vector<BackwardLayer>& layers,
                            const std::vector<TensorGroup>& groups, const OverlapSetting& setting);

struct RandomBackward {
  std::vector<BackwardLayer> layers;
  OverlapSetting setting;
  std::vector<int32_t> threads;
};
// A chain of 1 to max_layers layers, some without parameters or computation, and three numbers of
// threads with which all of LIBRA's assumptions hold.
RandomBackward DrawBackward(Random& random, int32_t max_layers);

// The counts of every way to part so many in consecutive groups.
std::vector<std::vector<int32_t>> AllPartings(int32_t count);

}  // namespace stepcast
