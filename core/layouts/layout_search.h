// The layouts of a job over a number of devices: pipelines and their replicas that fit into memory,
// ranked by simulation.
//
// Method: all numbers of stages that divide the devices, schedules, and up to 8 numbers of chunks
// that the layers allow, first those that divide them; where memory refuses a layout, it with a
// sharded optimizer. What a profile, a device's memory or a simulation (a deadlock) does not allow
// is refused, by name. The others are simulated in the order of a bound of their throughput
// (MostStepsPerSecond), or of the memory that they need, until none that is left could be among as
// many as are wanted, or, where that takes long, among the best five. None is listed that one which
// was not simulated could stand before.
// Threads: pure functions of their arguments.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

#include "core/base/error.h"
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

struct RefusedLayout {
  PipelineDraft pipeline;
  int32_t workers = 0;
  Sharding sharding = Sharding::kNone;
  std::string reason;  // FIELD: why, or REASON: what its simulation failed with
};

// A layout to be weighed.
struct TriedLayout {
  ScenarioDraft scenario;
  std::vector<Sharding> shardings;  // in turn until one fits
  // The first, and all others that can be; nothing: as the scenario has it.
  std::vector<std::optional<PipelineReduction>> reductions;

  // The layout, not checked yet.
  PipelineLayout layout() const {
    const PipelineDraft& pipeline = *scenario.pipeline;
    return {.schedule = *pipeline.schedule,
            .variant = pipeline.variant.value_or(PipelineVariant::kMegatron),
            .devices = *pipeline.stages,
            .chunks = *pipeline.chunks,
            .micro_batches = *pipeline.micro_batches};
  }

  RefusedLayout Refused(Sharding sharding, const Fault& why) const {
    return {.pipeline = *scenario.pipeline,
            .workers = *scenario.workers,
            .sharding = sharding,
            .reason = why.field + (why.field.empty() ? "" : ": ") + why.description};
  }
};

struct LayoutCandidate {
  std::vector<Scenario> scenarios;  // one a reduction, of which the fastest counts
  RefusedLayout refused;            // should its simulation fail
  int64_t memory_bytes = 0;         // of the device that needs most
  double bound = 0;                 // examples per second, of the fastest
};

struct LayoutQuery {
  std::vector<TriedLayout> tried;
  int64_t memory_bytes = 0;
  // Whose replicas cannot share the examples of a step.
  std::vector<RefusedLayout> refused;
  LayoutObjective objective = LayoutObjective::kMaxThroughput;
  int32_t max_layouts = 20;
  SimulationOptions options;

  bool by_memory() const { return objective == LayoutObjective::kMinMemory; }
};

struct LayoutAnswer {
  struct Layout {
    Prediction prediction;
    int64_t memory_bytes = 0;
    double probability_best = 0;  // of the fastest, of those that need least by memory

    double rate() const { return prediction.examples_per_second; }
  };
  std::vector<Layout> layouts;  // best first
  double expected_loss = 0;     // of taking the first, as Settled has it, among the same
  std::vector<RefusedLayout> refused;
  int32_t pruned = 0;   // that fit and are no better than those listed
  int32_t untried = 0;  // when the time budget was spent
  std::vector<Warning> warnings;
  SimulationStatistics simulation;
};

// Fails with INVALID_ARGUMENT, reason REQUEST_INVALID, and every fault.
absl::StatusOr<LayoutQuery> ResolveLayouts(const Profile& profile, const LayoutDraft& draft);

struct WeighedLayouts {
  // Layouts that fit, by bound, the greatest first, or by memory, the least first.
  std::vector<LayoutCandidate> candidates;
  std::vector<RefusedLayout> refused;
  // Some operation says what it keeps; else memory is what parameters and their state take alone.
  bool knows_memory = false;
};
// Fails with what `stop` returns, and with INVALID_ARGUMENT, reason REQUEST_INVALID, where no
// layout fits, at memory_bytes or devices, with the one that comes nearest. REQUIRES: the query was
// resolved for this profile.
absl::StatusOr<WeighedLayouts> WeighLayouts(const Profile& profile, const LayoutQuery& query,
                                            StopCheck stop);

// Fails as WeighLayouts, and as PipelinePredictor where it does of every layout. REQUIRES: the
// query was resolved for this profile.
absl::StatusOr<LayoutAnswer> RecommendLayout(const Profile& profile, const LayoutQuery& query,
                                             StopCheck stop, const Executor& executor,
                                             const KnownRuns& known);

}  // namespace stepcast
