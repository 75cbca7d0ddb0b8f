// The recorded step that each worker runs next: the engine's own draws, so that a peer simulates
// the same job.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "core/base/random.h"
#include "core/engine/simulation.h"

namespace stepcast::bench {

class SampledSteps {
 public:
  SampledSteps(int32_t recorded_steps, const RunOptions& options)
      : recorded_steps_(recorded_steps) {
    for (uint64_t worker = 0; worker < options.start_offsets.size(); ++worker) {
      random_.push_back(Random({options.seed, options.replication, worker, kSamplingStream}));
    }
  }

  // Call once for each step that the worker begins.
  int32_t Next(int32_t worker) {
    if (recorded_steps_ == 1) return 0;
    return static_cast<int32_t>(
        random_[static_cast<size_t>(worker)].Below(static_cast<uint64_t>(recorded_steps_)));
  }

 private:
  static constexpr uint64_t kSamplingStream = 1;  // see core/README.md

  int32_t recorded_steps_;
  std::vector<Random> random_;
};

}  // namespace stepcast::bench
