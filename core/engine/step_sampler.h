// The recorded step that each step of a worker repeats.
//
// All engines draw from the same stream of random numbers, so they sample the same steps. Threads:
// none.
#pragma once

#include <cstdint>

#include "core/base/random.h"
#include "core/engine/job_graph.h"
#include "core/engine/simulation.h"

namespace stepcast {

class StepSampler {
 public:
  StepSampler() = default;
  StepSampler(const JobGraph& job, const RunOptions& options, int32_t worker)
      : random_({options.seed, options.replication,
                 job.drawing == StepDrawing::kJoint ? 0 : static_cast<uint64_t>(worker), kStream}),
        steps_(job.step_count()),
        replay_(job.drawing == StepDrawing::kReplay) {}

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
