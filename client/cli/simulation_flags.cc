#include "client/cli/simulation_flags.h"

#include "client/cli/parsed_option.h"
#include "client/cli/quantity.h"

namespace stepcast::client {

namespace {

constexpr char kSimulationGroup[] = "Simulation";

}  // namespace

void SimulationFlags::Declare(CLI::App& app) {
  DeclareSteps(app, "Steps each worker completes, warm-up included (default 1000)");
  app.add_option("--warmup", options_.warmup_steps,
                 "Steps of each worker that do not count (default: at least 50, or a twentieth of "
                 "--steps, and more where a run takes longer to settle)")
      ->type_name("N")
      ->group(kSimulationGroup);
  DeclareReplications(app);
  app.add_option("--precision", options_.relative_precision,
                 "Stop when the interval's half-width is below this share of the value")
      ->type_name("SHARE")
      ->group(kSimulationGroup);
  app.add_option("--confidence", options_.confidence_level,
                 "Coverage of the interval (default 0.95)")
      ->type_name("LEVEL")
      ->group(kSimulationGroup);
  AddParsedOption(
      app, "--time-budget", "TIME", "Give the best answer reached by then: 500ms, 10s",
      [](const std::string& text) { return ParseDuration(text); },
      [this](std::chrono::nanoseconds budget) { options_.time_budget = budget; })
      ->group(kSimulationGroup);
  DeclareChance(app);
  DeclareHorizon(app);
}

void SimulationFlags::DeclareForTrace(CLI::App& app) {
  DeclareSteps(app, "Steps of each worker that are shown (default 5)");
  DeclareChance(app);
}

void SimulationFlags::DeclareForLoad(CLI::App& app) {
  DeclareSteps(app, "Steps each worker completes, warm-up included (default 1000)");
  DeclareReplications(app);
  DeclareChance(app);
}

void SimulationFlags::DeclareReplications(CLI::App& app) {
  app.add_option("--replications", options_.replications,
                 "Independent runs (default 5, up to 20 where single runs scatter; with "
                 "--precision at most so many, default 100; 1 where nothing is random)")
      ->type_name("N")
      ->group(kSimulationGroup);
}

void SimulationFlags::DeclareSteps(CLI::App& app, const std::string& help) {
  app.add_option("--steps", options_.steps_per_worker, help)
      ->type_name("N")
      ->group(kSimulationGroup);
}

void SimulationFlags::DeclareChance(CLI::App& app) {
  AddParsedOption(
      app, "--seed", "N", "Of all random choices (default 1)",
      [](const std::string& text) { return ParseCount(text); },
      [this](uint64_t seed) { options_.seed = seed; })
      ->group(kSimulationGroup);
  CLI::Option* staggered = app.add_flag_function(
      "--staggered", [this](int64_t) { options_.start = Start::kStaggered; },
      "Workers start at random instants within a step (default of a steady state)");
  CLI::Option* simultaneous = app.add_flag_function(
      "--simultaneous", [this](int64_t) { options_.start = Start::kSimultaneous; },
      "Workers start all at once (default of the first steps or seconds, and of a trace)");
  staggered->group(kSimulationGroup);
  simultaneous->group(kSimulationGroup)->excludes(staggered);
}

void SimulationFlags::DeclareHorizon(CLI::App& app) {
  const auto on_steps = [this](int32_t steps) {
    options_.horizon = Horizon::kFirstSteps;
    options_.horizon_steps = steps;
  };
  const auto on_seconds = [this](double seconds) {
    options_.horizon = Horizon::kFirstSeconds;
    options_.horizon_seconds = seconds;
  };
  CLI::Option* steps = app.add_option_function<int32_t>(
      "--first-steps", on_steps, "Predict the first N steps of each worker, not the steady state");
  CLI::Option* seconds = app.add_option_function<double>(
      "--first-seconds", on_seconds, "Predict the first S seconds, not the steady state");
  steps->type_name("N")->group(kSimulationGroup)->excludes(seconds);
  seconds->type_name("S")->group(kSimulationGroup);
}

}  // namespace stepcast::client
