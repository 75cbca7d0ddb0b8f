// The pipeline that a scenario makes of a recorded step, as the simulation takes it, and the
// collectives of its replicas.
//
// Meaning: each stage's forward and backward is a sub-graph of the recording: its operations in
// graph order on the streams they name, with what they wait for inside it; collectives of groups
// inside a replica take what was recorded. A gradient is ready when what it waits for has ended
// within the last backward. What ends a step belongs to the devices whose gradients it waits for,
// shared by their bytes; of updates (UpdatesOf) a sharded replica makes its share. Threads: pure
// functions, values.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/model/profile.h"
#include "core/model/scenario.h"
#include "core/pipeline/simulation.h"
#include "core/predict/device_use.h"

namespace stepcast {

struct StageGradient {
  int64_t bytes = 0;
  Span before_end;     // of the stage's backward, mean over the recorded steps
  int32_t bucket = 0;  // of the recorded ones
};

// The part that scenarios of a job share that differ in nothing but their replicas and links.
struct PipelinePlan {
  std::vector<std::vector<StageTimes>> times;             // by recorded step and stage
  std::vector<int64_t> output_bytes;                      // of a stage but the last
  std::vector<std::vector<StageGradient>> gradients;      // by stage, in graph order
  std::vector<Span> tails;                                // by device, without updates
  std::vector<Span> updates;                              // by device, of all its parameters
  std::vector<int64_t> kept_bytes;                        // by stage, of one micro-batch
  std::vector<int64_t> gradient_bytes;                    // by device
  std::optional<RecordedBuckets> recorded_buckets;        // the profile's
  std::vector<std::vector<std::string>> first_by_device;  // names of first operations, by chunk
  bool knows_memory = false;
  double sent_share = 1;       // of a byte of gradients
  int32_t recorded_ranks = 0;  // of a pipeline, as StageMap has them
  bool reduces = true;         // a what-if: else reductions take no time

  // By device, what follows its step's gradients; replicas that shard share their updates.
  std::vector<Span> TailsOf(const Scenario& scenario) const;
  // All micro-batches of a step, of the device that has most of a pass, of the slowest
  // replica.
  PassTimes PassesOf(const Scenario& scenario) const;
  // Seconds of computation of a micro-batch, by device.
  std::vector<double> MicroBatchSeconds(const PipelineLayout& layout) const;
};

// REQUIRES: the scenario was resolved for this profile, and has a pipeline. Cost: linear in the
// recorded times.
PipelinePlan PlanPipeline(const Profile& profile, const Scenario& scenario);

// The job of one column of replicas that are alike; steps, seed, scale and more columns are left to
// the caller. `replicas`: those that reduce together.
PipelineJob JobOf(const PipelinePlan& plan, const Scenario& scenario);

// Steps per second of all workers that no run exceeds but by chance: no device computes less, nor
// reduces faster, than its step takes, and each waits for the devices before it, which follow it.
double MostStepsPerSecond(const PipelinePlan& plan, const Scenario& scenario);

// The peak of a device: parameters, gradients and Adam's moments, as sharded, and the most that its
// chunks in flight keep together, by its order. Where no operation says what it keeps
// (!knows_memory) it has the former alone, a lower bound. Cost: linear in the device's order.
DeviceMemory MemoryOfDevice(const PipelinePlan& plan, const Scenario& scenario, int32_t device);

// The collectives of a pipeline's replicas (pipeline_reductions.cc): which gradients are reduced
// together, when they are ready, and how long that takes; with a sharded optimizer also what is
// gathered after it.

// REQUIRES: as PlanPipeline; the job has none yet.
void AddReductions(const PipelinePlan& plan, const Scenario& scenario, PipelineJob& job);

// Seconds that a device's collectives of a step take on links that nobody shares.
struct DeviceCollectives {
  double reductions = 0;
  double gather = 0;
};
DeviceCollectives CollectiveSecondsOf(const PipelineJob& job, int32_t device);

}  // namespace stepcast
