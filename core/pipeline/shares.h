// The parts of a pipeline's step: computation, and the reasons of its idle time, as shares that add
// up.
//
// Method: the job is simulated again without its reasons, which come back one by one in the order
// of the fields; each is worth what the step grows by when it does. So the bubble is what equal
// stages with free transfers would idle, and what two reasons hide from each other counts for the
// first. What a part would bring by being gone is simulated likewise, of all else: what it hid
// comes out. Threads: pure functions of their arguments.
#pragma once

#include <cstdint>

#include "absl/status/statusor.h"

#include "core/base/stop_check.h"
#include "core/pipeline/simulation.h"

namespace stepcast {

// The part of a pipeline's step that would shorten it most: computation by devices twice as fast,
// which halve the bubble and the imbalance, too; the others by being gone.
enum class PipelineBottleneck : uint8_t {
  kComputation,
  kBubble,
  kImbalance,
  kTransfers,
  kReductions,
  kRest,
};

struct PipelineShares {
  double step_seconds = 0;   // from step to step, of the counted ones
  double idle_fraction = 0;  // 1 - computation / (devices x step); what follows adds up to it
  double bubble_fraction = 0;
  double imbalance_fraction = 0;  // of stages and devices that are not alike, and of chance
  double transfer_fraction = 0;
  double reduction_fraction = 0;
  double rest_fraction = 0;  // what follows at the step's end
  PipelineBottleneck bottleneck = PipelineBottleneck::kComputation;
  double saved_fraction = 0;  // of the step, by the change of the bottleneck
  PipelineRun run;            // of the job as it is
};

// `twice`: how many times as fast a device computes that is twice as fast. Fails as
// SimulatePipeline. REQUIRES: as there.
absl::StatusOr<PipelineShares> SharesOf(const PipelineJob& job, StopCheck stop, double twice = 2);

}  // namespace stepcast
