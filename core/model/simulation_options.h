// The options of a simulation: its length and its precision.
#pragma once

#include <cstdint>
#include <optional>

#include "absl/status/statusor.h"

#include "core/model/scenario.h"

namespace stepcast {

enum class Start : uint8_t { kSimultaneous, kStaggered };
// The steps that workers repeat: the recorded ones, or ones that vary as those do (step_model.h).
enum class StepSource : uint8_t { kAsRecorded, kModelled };
enum class Horizon : uint8_t { kSteadyState, kFirstSteps, kFirstSeconds };

// Options as asked for: what is empty has its default.
struct SimulationOptionsDraft {
  std::optional<int32_t> steps_per_worker;
  std::optional<int32_t> warmup_steps;
  std::optional<uint64_t> seed;
  std::optional<int32_t> replications;
  std::optional<double> relative_precision;
  std::optional<double> time_budget_seconds;
  std::optional<Start> start;
  std::optional<Horizon> horizon;
  std::optional<int32_t> horizon_steps;
  std::optional<double> horizon_seconds;
  std::optional<double> confidence_level;
  std::optional<StepSource> step_variation;
  std::optional<double> model_error_fraction;

  friend bool operator==(const SimulationOptionsDraft&, const SimulationOptionsDraft&) = default;
};

// Options with every default filled in.
struct SimulationOptions {
  int32_t steps_per_worker = 1000;  // warm-up included (ICPE 2020, 4.1)
  // Neither they nor warmup_steps were asked for, of a steady state: runs are as short as the
  // answer allows (OptionsOfRuns).
  bool automatic_steps = false;
  int32_t warmup_steps = 50;      // (ICPE 2020, 4.1)
  bool automatic_warmup = false;  // warmup_steps was not asked for, so more may be dropped
  uint64_t seed = 1;
  int32_t replications = 5;  // with relative_precision: at most, by default 100
  bool automatic_replications =
      false;  // replications were not asked for, so there may be up to 20 where single runs scatter
  double relative_precision = 0;    // 0: off
  double time_budget_seconds = 0;   // 0: none
  Start start = Start::kStaggered;  // but for scenarios that give start offsets; with another
                                    // horizon than a steady state, by default kSimultaneous
  Horizon horizon = Horizon::kSteadyState;
  int32_t horizon_steps = 0;
  double horizon_seconds = 0;
  double confidence_level = 0.95;
  // The service asks for kModelled in a steady state where its caller says nothing.
  StepSource step_variation = StepSource::kAsRecorded;
  // In the place of the measured one, in the interval of a single run.
  std::optional<double> model_error_fraction;

  friend bool operator==(const SimulationOptions&, const SimulationOptions&) = default;
};

// The lengths that runs of one scenario may have where none was asked for, the shortest first.
inline constexpr int32_t kAutomaticLengths = 2;

// The number of runs after which it is decided, where replications were not asked for, whether they
// say enough, and the share of steps per second to which short runs tell a gain.
struct RunRules {
  int32_t lengths = 1;  // that OptionsOfRuns has
  int32_t first_milestone = 3;
  bool needs_precise_mean = true;  // else runs that agree are enough
  double gain_error = 0.003;
};
RunRules RunRulesOf(const Scenario& scenario);

// The options of a scenario's runs: with automatic_steps as many steps as that length has, a tenth
// of them of warm-up.
//
// Workers that meet in collectives have forgotten after a step how they stood before it, so that
// each step is a sample of its own: their runs have 100 steps, five of warm-up, whatever `length`.
// With parameter servers what a run says grows with the steps of all workers together: some 400,
// at least 40 a worker, or 2400, at least 100 a worker and at most 1000. REQUIRES:
// 0 <= length < kAutomaticLengths.
SimulationOptions OptionsOfRuns(SimulationOptions options, const Scenario& scenario,
                                int32_t length);

// Fails with INVALID_ARGUMENT, reason OPTIONS_INVALID, and every fault, its path relative to the
// options.
absl::StatusOr<SimulationOptions> ResolveOptions(const SimulationOptionsDraft& draft);

}  // namespace stepcast
