#include "core/compare/pipeline_models.h"

#include <algorithm>
#include <cstddef>

#include "core/base/index.h"
#include "core/predict/pipeline_job.h"

namespace stepcast {

namespace {

// Seconds of the gradients of weights of a micro-batch, by device.
double WeightSeconds(const PipelinePlan& plan, const PipelineLayout& layout, int32_t device) {
  double seconds = 0;
  for (const auto& of_step : plan.times)
    for (int32_t chunk = 0; chunk < layout.chunks; ++chunk)
      seconds += ToSeconds(of_step[Index(layout.StageOf(device, chunk))].backward_weight) /
                 static_cast<double>(plan.times.size());
  return seconds;
}

}  // namespace

PipelineInputs PipelineInputsOf(const PipelinePlan& plan, const Scenario& scenario) {
  const PipelineLayout& layout = scenario.pipeline->layout;
  const std::vector<double> load = plan.MicroBatchSeconds(layout);
  const auto slowest = std::max_element(load.begin(), load.end());
  const auto device = static_cast<int32_t>(slowest - load.begin());
  PipelineInputs inputs{.slowest_seconds = *slowest,
                        .slowest_weight_seconds = WeightSeconds(plan, layout, device)};
  for (const double seconds : load) inputs.mean_seconds += seconds / layout.devices;
  if (layout.devices > 1) {
    const auto bytes = *std::max_element(plan.output_bytes.begin(), plan.output_bytes.end());
    inputs.transfer_seconds =
        scenario.pipeline->latency_seconds +
        static_cast<double>(bytes) / scenario.pipeline->bandwidth_bytes_per_second;
  }
  for (const Span tail : plan.TailsOf(scenario))
    inputs.rest_seconds = std::max(inputs.rest_seconds, ToSeconds(tail));
  return inputs;
}

std::optional<double> BubbleFormulaSeconds(const PipelineInputs& inputs,
                                           const PipelineLayout& layout) {
  const double filling = layout.devices - 1;
  if (layout.schedule == PipelineSchedule::kZeroBubbleV) return std::nullopt;
  if (layout.schedule == PipelineSchedule::kZeroBubble1)
    return layout.micro_batches * inputs.slowest_seconds +
           filling * (inputs.slowest_seconds - 2 * inputs.slowest_weight_seconds);
  return (layout.micro_batches + filling / layout.chunks) * inputs.slowest_seconds;
}

double SimaiStepSeconds(const PipelineInputs& inputs, const PipelinePlan& plan,
                        const Scenario& scenario) {
  const PipelineLayout& layout = scenario.pipeline->layout;
  const PipelineJob job = JobOf(plan, scenario);
  double reductions = 0;
  for (int32_t device = 0; device < layout.devices; ++device) {
    const auto [reduces, gathers] = CollectiveSecondsOf(job, device);
    reductions = std::max(reductions, reduces + gathers);
  }
  const double m = layout.micro_batches;
  return (m + (layout.devices - 1.0) / layout.chunks) * inputs.mean_seconds +
         2 * m * layout.chunks * inputs.transfer_seconds + reductions + inputs.rest_seconds;
}

}  // namespace stepcast
