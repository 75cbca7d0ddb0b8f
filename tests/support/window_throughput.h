// Throughput as a real parameter server's is measured: over a finite window of a finite run.
#pragma once

#include <vector>

#include "absl/status/statusor.h"

#include "core/engine/simulation.h"

namespace stepcast::testing {

// Seconds from the origin of the start offsets.
struct MeasuringWindow {
  double begin = 0;
  double end = 0;
};

// Steps per second of all workers: each one's completions after its first inside over the time from
// its first to its last inside, summed. Failure: FAILED_PRECONDITION where a worker has not two
// completions inside. REQUIRES: the run kept its step ends, and lasted longer than the window.
absl::StatusOr<double> StepsPerSecondInside(const RunResult& run, MeasuringWindow window);

}  // namespace stepcast::testing
