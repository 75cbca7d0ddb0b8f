// Which recorded step each step of a worker is: sampled with replacement, or, to replay a
// recording, one after the other.
//
// All engines draw from the same stream of random numbers, so they sample the same steps. Threads:
// none.
#pragma once

#include <cstdint>

#include "core/base/random.h"
#include "core/engine/simulation.h"

namespace stepcast {

class StepSampler {
 public:
  StepSampler() = default;
  // `steps`: of the recording, at least 1.
  StepSampler(const RunOptions& options, int32_t steps, int32_t worker)
      : random_({options.seed, options.replication, static_cast<uint64_t>(worker), kStream}),
        steps_(steps),
        replay_(options.replay) {}

  // For the worker's step of that number, from 0. Call once for each, in ascending order.
  int32_t Next(int32_t step) {
    if (replay_) return step % steps_;
    return steps_ == 1 ? 0 : static_cast<int32_t>(random_.Below(static_cast<uint64_t>(steps_)));
  }

 private:
  static constexpr uint64_t kStream = 1;

  Random random_{0};
  int32_t steps_ = 1;
  bool replay_ = false;
};

}  // namespace stepcast
