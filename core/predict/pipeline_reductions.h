// The collectives of a pipeline's replicas: which gradients are reduced together, when they are
// ready, and how long that takes; with a sharded optimizer also what is gathered after it.
// Threads: pure functions.
#pragma once

#include <cstdint>

#include "core/model/scenario.h"
#include "core/pipeline/simulation.h"
#include "core/predict/pipeline_job.h"

namespace stepcast {

// REQUIRES: as PlanPipeline; the job has none yet.
void AddReductions(const PipelinePlan& plan, const Scenario& scenario, PipelineJob& job);

// Seconds that a device's collectives of a step take on links that nobody shares.
struct DeviceCollectives {
  double reductions = 0;
  double gather = 0;
};
DeviceCollectives CollectiveSecondsOf(const PipelineJob& job, int32_t device);

}  // namespace stepcast
