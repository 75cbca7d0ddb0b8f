#include "client/cli/flags/simulation_flags.h"

#include <google/protobuf/util/time_util.h>

#include "client/cli/flags/parsed_option.h"
#include "client/cli/flags/quantity.h"

namespace stepcast::client {

namespace {

using google::protobuf::util::TimeUtil;

constexpr char kSimulationGroup[] = "Simulation";
constexpr char kStepsHelp[] =
    "Steps each worker completes, warm-up included (default: as few as the answer allows, at most "
    "1000)";

}  // namespace

void SimulationFlags::Declare(CLI::App& app) {
  DeclareSteps(app, kStepsHelp);
  AddValueOption<int32_t>(
      app, "--warmup", "N",
      "Steps of each worker that do not count (default: a tenth without --steps; with it at "
      "least 50, or a twentieth, and more where a run takes longer to settle)",
      [this](int32_t steps) { options_.set_warmup_steps(steps); })
      ->group(kSimulationGroup);
  DeclareReplications(app);
  AddValueOption<double>(app, "--precision", "SHARE",
                         "Stop when the interval's half-width is below this share of the value",
                         [this](double share) { options_.set_relative_precision(share); })
      ->group(kSimulationGroup);
  AddValueOption<double>(app, "--confidence", "LEVEL", "Coverage of the intervals (default 0.95)",
                         [this](double level) { options_.set_confidence_level(level); })
      ->group(kSimulationGroup);
  app.add_flag_callback(
         "--as-recorded",
         [this] { options_.set_step_variation(v1::SimulationOptions::AS_RECORDED); },
         "Repeat the recorded steps exactly, without the variation that they are a sample of")
      ->group(kSimulationGroup);
  AddValueOption<double>(
      app, "--model-error", "SHARE",
      "Mean absolute error of predictions of such jobs, for the interval of one run (default: as "
      "last measured)",
      [this](double share) { options_.set_model_error_fraction(share); })
      ->group(kSimulationGroup);
  AddParsedOption(
      app, "--time-budget", "TIME", "Give the best answer reached by then: 500ms, 10s",
      [](const std::string& text) { return ParseDuration(text); },
      [this](std::chrono::nanoseconds budget) {
        *options_.mutable_time_budget() = TimeUtil::NanosecondsToDuration(budget.count());
      })
      ->group(kSimulationGroup);
  DeclareChance(app);
  DeclareHorizon(app);
}

void SimulationFlags::DeclareForTrace(CLI::App& app) {
  DeclareSteps(app, "Steps of each worker that are shown (default 5, of a recording all)");
  DeclareChance(app);
}

void SimulationFlags::DeclareForLoad(CLI::App& app) {
  DeclareSteps(app, kStepsHelp);
  DeclareReplications(app);
  DeclareChance(app);
}

void SimulationFlags::DeclareReplications(CLI::App& app) {
  AddValueOption<int32_t>(app, "--replications", "N",
                          "Independent runs (default 5, up to 20 where single runs scatter; with "
                          "--precision at most so many, default 100; 1 where nothing is random)",
                          [this](int32_t runs) { options_.set_replications(runs); })
      ->group(kSimulationGroup);
}

void SimulationFlags::DeclareSteps(CLI::App& app, const std::string& help) {
  AddValueOption<int32_t>(app, "--steps", "N", help, [this](int32_t steps) {
    options_.set_steps_per_worker(steps);
  })->group(kSimulationGroup);
}

void SimulationFlags::DeclareChance(CLI::App& app) {
  AddParsedOption(
      app, "--seed", "N", "Seed of all random choices (default 1)",
      [](const std::string& text) { return ParseCount(text); },
      [this](uint64_t seed) { options_.set_seed(seed); })
      ->group(kSimulationGroup);
  CLI::Option* staggered = app.add_flag_function(
      "--staggered", [this](int64_t) { options_.set_start(v1::SimulationOptions::STAGGERED); },
      "Workers start at random instants within a step (default of a steady state)");
  CLI::Option* simultaneous = app.add_flag_function(
      "--simultaneous",
      [this](int64_t) { options_.set_start(v1::SimulationOptions::SIMULTANEOUS); },
      "Workers start all at once (default of the first steps or seconds, and of a trace)");
  staggered->group(kSimulationGroup);
  simultaneous->group(kSimulationGroup)->excludes(staggered);
}

void SimulationFlags::DeclareHorizon(CLI::App& app) {
  const auto on_steps = [this](int32_t steps) {
    options_.set_horizon(v1::SimulationOptions::FIRST_STEPS);
    options_.set_horizon_steps(steps);
  };
  const auto on_seconds = [this](double seconds) {
    options_.set_horizon(v1::SimulationOptions::FIRST_SECONDS);
    options_.set_horizon_seconds(seconds);
  };
  CLI::Option* steps = app.add_option_function<int32_t>(
      "--first-steps", on_steps, "Predict the first N steps of each worker, not the steady state");
  CLI::Option* seconds = app.add_option_function<double>(
      "--first-seconds", on_seconds, "Predict the first S seconds, not the steady state");
  steps->type_name("N")->group(kSimulationGroup)->excludes(seconds);
  seconds->type_name("S")->group(kSimulationGroup);
}

}  // namespace stepcast::client
