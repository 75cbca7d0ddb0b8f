#include "core/predict/run_summary.h"

namespace stepcast {

size_t RunSummary::bytes() const {
  return sizeof(RunSummary) + step_times.heap_bytes() + utilization.capacity() * sizeof(double);
}

RunSummary SummaryOf(const RunResult& result, bool automatic_warmup) {
  return {.estimate = EstimateOf(result, automatic_warmup),
          .drift = result.second_half_steps_per_second - result.first_half_steps_per_second,
          .step_times = result.step_times,
          .utilization = result.utilization,
          .exposed_communication_fraction = result.exposed_communication_fraction,
          .straggler_fraction = result.straggler_fraction,
          .simulated_operations = result.simulated_operations,
          .path = result.path};
}

}  // namespace stepcast
