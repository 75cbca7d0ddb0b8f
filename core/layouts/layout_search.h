// The layouts of a job over a number of devices: pipelines and their replicas that fit into memory,
// ranked by simulation.
//
// Method: all numbers of stages that divide the devices, schedules, chunks (powers of two) and,
// where memory is bounded, shardings; what a profile or a device's memory does not allow is
// refused, by name. The others are simulated in the order of a bound of their throughput (what a
// device computes, its reduction and its end of the step, of the slowest) until no bound left
// reaches the best five. Threads: pure functions of their arguments.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

#include "core/base/executor.h"
#include "core/base/stop_check.h"
#include "core/model/profile.h"
#include "core/model/scenario.h"
#include "core/model/simulation_options.h"
#include "core/predict/run_memory.h"
#include "core/predict/throughput.h"

namespace stepcast {

enum class LayoutObjective : uint8_t { kMaxThroughput, kMinMemory };

struct LayoutDraft {
  std::optional<ScenarioDraft> scenario;  // its pipeline: what all layouts have in common
  int64_t devices = 0;
  int64_t memory_bytes = 0;  // of a device; 0: any
  std::optional<int32_t> micro_batches;
  std::optional<int64_t> examples_per_step;
  std::vector<PipelineSchedule> schedules;
  std::optional<LayoutObjective> objective;
  std::optional<int32_t> max_layouts;
  SimulationOptionsDraft options;
};

// A layout to be weighed.
struct TriedLayout {
  ScenarioDraft scenario;
  Sharding sharding = Sharding::kNone;

  // The layout, not checked yet.
  PipelineLayout layout() const {
    const PipelineDraft& pipeline = *scenario.pipeline;
    return {.schedule = *pipeline.schedule,
            .devices = *pipeline.stages,
            .chunks = *pipeline.chunks,
            .micro_batches = *pipeline.micro_batches};
  }
};

struct LayoutCandidate {
  Scenario scenario;
  int64_t memory_bytes = 0;  // of the device that needs most; 0: not known
  double bound = 0;          // examples per second
};

struct RefusedLayout {
  PipelineDraft pipeline;
  int32_t workers = 0;
  Sharding sharding = Sharding::kNone;
  std::string reason;
};

struct LayoutQuery {
  std::vector<TriedLayout> tried;
  int64_t memory_bytes = 0;
  // Whose replicas cannot share the examples of a step.
  std::vector<RefusedLayout> refused;
  LayoutObjective objective = LayoutObjective::kMaxThroughput;
  int32_t max_layouts = 20;
  SimulationOptions options;
};

struct LayoutAnswer {
  struct Layout {
    Prediction prediction;
    int64_t memory_bytes = 0;
    double probability_best = 0;
  };
  std::vector<Layout> layouts;  // best first
  double expected_loss = 0;     // of taking the first, as Settled has it
  std::vector<RefusedLayout> refused;
  int32_t pruned = 0;   // that cannot be among the best, by their bounds
  int32_t untried = 0;  // when the time budget was spent
  SimulationStatistics simulation;
};

// Fails with INVALID_ARGUMENT, reason REQUEST_INVALID, and every fault.
absl::StatusOr<LayoutQuery> ResolveLayouts(const Profile& profile, const LayoutDraft& draft);

struct WeighedLayouts {
  std::vector<LayoutCandidate> candidates;  // that fit, by bound, the greatest first
  std::vector<RefusedLayout> refused;
};
// Fails with what `stop` returns, and with INVALID_ARGUMENT, reason REQUEST_INVALID, where no
// layout fits, at memory_bytes or devices, with the one that comes nearest. REQUIRES: the query was
// resolved for this profile.
absl::StatusOr<WeighedLayouts> WeighLayouts(const Profile& profile, const LayoutQuery& query,
                                            StopCheck stop);

// Fails as WeighLayouts and PipelinePredictor. REQUIRES: the query was resolved for this profile.
absl::StatusOr<LayoutAnswer> RecommendLayout(const Profile& profile, const LayoutQuery& query,
                                             StopCheck stop, const Executor& executor,
                                             const KnownRuns& known);

}  // namespace stepcast
