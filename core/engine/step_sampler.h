// The recorded step that each step of a worker repeats, and the factor of its computations.
//
// All engines draw from the same streams of random numbers, so they sample the same steps. Threads:
// none.
#pragma once

#include <cstddef>
#include <cstdint>

#include "core/base/random.h"
#include "core/engine/job_graph.h"
#include "core/engine/simulation.h"
#include "core/engine/step_scaling.h"

namespace stepcast {

class StepSampler {
 public:
  StepSampler() = default;
  StepSampler(const JobGraph& job, const RunOptions& options, int32_t worker)
      : random_({options.seed, options.replication,
                 job.drawing == StepDrawing::kJoint ? 0 : static_cast<uint64_t>(worker), kStream}),
        own_({options.seed, options.replication, static_cast<uint64_t>(worker), kOwnStream}),
        common_({options.seed, options.replication, 0, kCommonStream}),
        scaling_(options.scaling.get()),
        recorded_worker_(Index(job.program_of_worker[Index(worker)])),
        steps_(job.step_count()),
        replay_(job.drawing == StepDrawing::kReplay) {}

  // For the worker's step of that number, from 0. Call once for each, in ascending order.
  int32_t Next(int32_t step) {
    const int32_t recorded = RecordedOf(step);
    if (scaling_ != nullptr) scale_ = scaling_->Draw(own_, common_, recorded_worker_, recorded);
    return recorded;
  }
  // Factor of the step that Next was last called for, in StepScaling::kUnit.
  int64_t scale() const { return scale_; }

 private:
  static constexpr uint64_t kStream = 1;
  static constexpr uint64_t kOwnStream = 4;
  static constexpr uint64_t kCommonStream = 5;

  int32_t RecordedOf(int32_t step) {
    if (replay_) return step % steps_;
    return steps_ == 1 ? 0 : static_cast<int32_t>(random_.Below(static_cast<uint64_t>(steps_)));
  }

  Random random_{0};
  Random own_{0};
  Random common_{0};
  const StepScaling* scaling_ = nullptr;
  size_t recorded_worker_ = 0;
  int64_t scale_ = StepScaling::kUnit;
  int32_t steps_ = 1;
  bool replay_ = false;
};

}  // namespace stepcast
