#include "core/model/simulation_options.h"

#include <algorithm>
#include <limits>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"

#include "core/base/error.h"

namespace stepcast {

namespace {

constexpr int32_t kMaxSteps = 10'000'000;
constexpr int32_t kMaxReplications = 1000;
constexpr int32_t kMaxUntilPrecise = 100;   // where a precision ends them, not their number
constexpr double kMaxHorizonSeconds = 1e6;  // well within simulated time
constexpr double kMinConfidenceLevel = 0.5;
constexpr double kMaxConfidenceLevel = 0.999;

// False for what is not a number.
bool Within(double value, double min, double max) { return value >= min && value <= max; }

class OptionsResolver {
 public:
  explicit OptionsResolver(const SimulationOptionsDraft& draft) : draft_(draft) {}

  absl::StatusOr<SimulationOptions> Run() && {
    options_.seed = draft_.seed.value_or(options_.seed);
    ResolveSteps();
    ResolvePrecision();
    ResolveHorizon();
    // The first steps of a job are asked for as they follow its start, a steady state as no
    // particular start leaves it.
    options_.start = draft_.start.value_or(
        options_.horizon == Horizon::kSteadyState ? Start::kStaggered : Start::kSimultaneous);
    options_.step_variation = draft_.step_variation.value_or(options_.step_variation);
    if (!faults_.empty()) return FaultsError("OPTIONS_INVALID", std::move(faults_).Take());
    return options_;
  }

 private:
  void ResolveSteps() {
    const int32_t steps = draft_.steps_per_worker.value_or(options_.steps_per_worker);
    const bool steps_known = CheckRange("steps_per_worker", steps, 2, kMaxSteps);
    options_.steps_per_worker = steps;
    options_.automatic_steps =
        !draft_.steps_per_worker.has_value() && !draft_.warmup_steps.has_value() &&
        draft_.horizon.value_or(Horizon::kSteadyState) == Horizon::kSteadyState;
    // A twentieth, as 50 of 1000 is, so that a short run is not all warm-up.
    options_.warmup_steps =
        draft_.warmup_steps.value_or(std::min(options_.warmup_steps, steps / 20));
    options_.automatic_warmup = !draft_.warmup_steps.has_value();
    if (draft_.warmup_steps.has_value())
      CheckRange("warmup_steps", *draft_.warmup_steps, 0, steps_known ? steps - 2 : kMaxSteps - 2);
  }

  void ResolvePrecision() {
    const bool until_precise = draft_.relative_precision.value_or(0) > 0;
    options_.replications =
        draft_.replications.value_or(until_precise ? kMaxUntilPrecise : options_.replications);
    options_.automatic_replications = !draft_.replications.has_value() && !until_precise;
    CheckRange("replications", options_.replications, 1, kMaxReplications);
    options_.relative_precision = draft_.relative_precision.value_or(options_.relative_precision);
    faults_.AddIf(!Within(options_.relative_precision, 0, 1), "relative_precision",
                  options_.relative_precision, " is not from 0 to 1");
    options_.time_budget_seconds =
        draft_.time_budget_seconds.value_or(options_.time_budget_seconds);
    options_.model_error_fraction = draft_.model_error_fraction;
    faults_.AddIf(!Within(options_.model_error_fraction.value_or(0), 0, 1), "model_error_fraction",
                  options_.model_error_fraction, " is not from 0 to 1");
    if (draft_.time_budget_seconds.has_value())
      CheckSeconds("time_budget", *draft_.time_budget_seconds);
    options_.confidence_level = draft_.confidence_level.value_or(options_.confidence_level);
    faults_.AddIf(!Within(options_.confidence_level, kMinConfidenceLevel, kMaxConfidenceLevel),
                  "confidence_level", options_.confidence_level, " is not from ",
                  kMinConfidenceLevel, " to ", kMaxConfidenceLevel);
  }

  void ResolveHorizon() {
    options_.horizon = draft_.horizon.value_or(options_.horizon);
    options_.horizon_steps = draft_.horizon_steps.value_or(0);
    options_.horizon_seconds = draft_.horizon_seconds.value_or(0);
    if (options_.horizon != Horizon::kSteadyState) RefuseSteps();
    if (options_.horizon == Horizon::kFirstSteps) {
      CheckRange("horizon_steps", options_.horizon_steps, 1, kMaxSteps);
    } else if (draft_.horizon_steps.has_value()) {
      faults_.Add("horizon_steps",
                  absl::StrCat(*draft_.horizon_steps, " has no effect without FIRST_STEPS"));
    }
    if (options_.horizon == Horizon::kFirstSeconds) {
      faults_.AddIf(
          !Within(options_.horizon_seconds, std::numeric_limits<double>::min(), kMaxHorizonSeconds),
          "horizon_seconds", options_.horizon_seconds, " is not above 0 and at most ",
          kMaxHorizonSeconds);
    } else if (draft_.horizon_seconds.has_value()) {
      faults_.Add("horizon_seconds",
                  absl::StrCat(*draft_.horizon_seconds, " has no effect without FIRST_SECONDS"));
    }
  }

  // The horizon says how long the runs are.
  void RefuseSteps() {
    for (const auto& [path, asked] : {std::pair("steps_per_worker", draft_.steps_per_worker),
                                      std::pair("warmup_steps", draft_.warmup_steps)}) {
      faults_.AddIf(asked.has_value(), path, asked, " has no effect without STEADY_STATE");
    }
  }

  bool CheckRange(const char* path, int32_t value, int32_t min, int32_t max) {
    if (value >= min && value <= max) return true;
    faults_.Add(path, absl::StrCat(value, " is not from ", min, " to ", max));
    return false;
  }

  void CheckSeconds(const char* path, double seconds) {
    if (!Within(seconds, std::numeric_limits<double>::min(), std::numeric_limits<double>::max())) {
      faults_.Add(path, absl::StrCat(seconds, " is not a finite number of seconds above 0"));
    }
  }

  const SimulationOptionsDraft& draft_;
  SimulationOptions options_;
  FaultList faults_;
};

}  // namespace

RunRules RunRulesOf(const Scenario& scenario) {
  if (!scenario.has_servers()) return {};
  return {.lengths = kAutomaticLengths,
          .first_milestone = 5,
          .needs_precise_mean = false,
          .gain_error = 0.02};
}

SimulationOptions OptionsOfRuns(SimulationOptions options, const Scenario& scenario,
                                int32_t length) {
  constexpr int32_t kStepsOfCollectives = 100;
  constexpr int32_t kWarmupOfCollectives = 5;
  struct Length {
    int32_t steps;  // of all workers
    int32_t least;  // of each: fewer would be little more than their beginning
  };
  constexpr Length kLengths[kAutomaticLengths] = {{400, 40}, {2400, 100}};
  constexpr int32_t kMost = 1000;
  constexpr int32_t kMostWarmup = 50;
  if (!options.automatic_steps) return options;
  if (!scenario.has_servers()) {
    options.steps_per_worker = kStepsOfCollectives;
    options.warmup_steps = kWarmupOfCollectives;
    return options;
  }
  const Length& of_all = kLengths[length];
  options.steps_per_worker = std::clamp(of_all.steps / scenario.workers, of_all.least, kMost);
  options.warmup_steps = std::min(options.steps_per_worker / 10, kMostWarmup);
  return options;
}

absl::StatusOr<SimulationOptions> ResolveOptions(const SimulationOptionsDraft& draft) {
  return OptionsResolver(draft).Run();
}

}  // namespace stepcast
