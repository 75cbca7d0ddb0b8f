#include "client/cli/flags/simulation_flags.h"

#include <google/protobuf/util/time_util.h>

#include <CLI/App.hpp>
#include <chrono>
#include <string>
#include <vector>

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
  AddParsedOption(app, "--precision", "SHARE",
                  "Stop when the interval's half-width is below this share of the value",
                  ParseShare, [this](double share) { options_.set_relative_precision(share); })
      ->group(kSimulationGroup);
  AddParsedOption(app, "--confidence", "LEVEL", "Coverage of the intervals (default 0.95)",
                  ParseShare, [this](double level) { options_.set_confidence_level(level); })
      ->group(kSimulationGroup);
  app.add_flag_callback(
         "--as-recorded",
         [this] { options_.set_step_variation(v1::SimulationOptions::AS_RECORDED); },
         "Repeat the recorded steps, drawn at random, without the variation that they are a "
         "sample of")
      ->group(kSimulationGroup);
  AddParsedOption(
      app, "--model-error", "SHARE",
      "Mean absolute error of predictions of such jobs, for the interval of one run (default: as "
      "last measured)",
      ParseShare, [this](double share) { options_.set_model_error_fraction(share); })
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

namespace {

const Choices<v1::RecommendWorkersRequest::Objective> kObjectives{
    {"knee", v1::RecommendWorkersRequest::KNEE},
    {"max-throughput", v1::RecommendWorkersRequest::MAX_THROUGHPUT},
    {"min-cost", v1::RecommendWorkersRequest::MIN_COST},
    {"min-time", v1::RecommendWorkersRequest::MIN_TIME}};

}  // namespace

void RecommendFlags::Declare(CLI::App& app) {
  AddChoiceOption(app, "--objective", kObjectives,
                  "knee: the highest throughput times efficiency (default); max-throughput; "
                  "min-cost: of the remaining examples, or of one; min-time",
                  [this](v1::RecommendWorkersRequest::Objective objective) {
                    request_.set_objective(objective);
                  });
  DeclareConstraints(app);
  plan_.Declare(app);
  DeclareCurrent(app);
}

void RecommendFlags::DeclareConstraints(CLI::App& app) {
  v1::Constraints& constraints = *request_.mutable_constraints();
  AddValueOption<int32_t>(app, "--min-workers", "N", "At least so many (default 1)",
                          [&](int32_t workers) { constraints.set_min_workers(workers); });
  AddValueOption<int32_t>(app, "--max-workers", "N",
                          "At most so many (default 16, or --min-workers + 15 or "
                          "--current-workers where that is more). Of more than 256 numbers not all "
                          "are tried: from 64 on in "
                          "strides, and all around the best",
                          [&](int32_t workers) { constraints.set_max_workers(workers); });
  AddValueOption<int32_t>(app, "--max-servers", "N",
                          "Choose among 1 to so many servers, too (default: only the scenario's)",
                          [&](int32_t servers) { constraints.set_max_parameter_servers(servers); });
  AddParsedOption(app, "--min-efficiency", "SHARE", "Least scaling efficiency, 0 to 1 or 90%",
                  ParseShare, [&](double share) { constraints.set_min_scaling_efficiency(share); });
  AddParsedOption(
      app, "--deadline", "TIME", "The examples must be done within this: 30m, 8h; needs --examples",
      [](const std::string& text) { return ParseDuration(text); },
      [&](std::chrono::nanoseconds time) {
        *constraints.mutable_deadline() =
            google::protobuf::util::TimeUtil::NanosecondsToDuration(time.count());
      });
  AddValueOption<double>(app, "--budget", "AMOUNT",
                         "The most the examples may cost; needs --examples and prices",
                         [&](double amount) { constraints.set_budget(amount); });
}

void RecommendFlags::DeclareList(CLI::App& app) {
  AddParsedOption(
      app, "--workers", "LIST",
      "Only these numbers, at most 256: 1,2,4,8 or 8-16; in place of --min-workers and "
      "--max-workers",
      [](const std::string& text) { return ParseWorkerList(text); },
      [this](const std::vector<int32_t>& counts) {
        request_.mutable_constraints()->mutable_worker_counts()->Assign(counts.begin(),
                                                                        counts.end());
      });
}

v1::RecommendWorkersRequest RecommendFlags::request() const {
  v1::RecommendWorkersRequest request = request_;
  const v1::TrainingPlan plan = plan_.plan();
  if (plan_.has_examples()) request.mutable_constraints()->set_examples(plan.examples());
  if (plan_.has_prices()) {
    v1::Prices& prices = *request.mutable_prices();
    prices.set_worker_hour(plan.worker_hour());
    prices.set_parameter_server_hour(plan.parameter_server_hour());
    prices.set_node_hour(plan.node_hour());
    prices.set_device_hour(plan.device_hour());
    prices.set_currency_code(plan.currency_code());
  }
  if (plan.has_failures()) *request.mutable_failures() = plan.failures();
  return request;
}

void RecommendFlags::DeclareCurrent(CLI::App& app) {
  CLI::Option* workers = AddValueOption<int32_t>(
      app, "--current-workers", "N",
      "The job runs already, with so many: it is not moved for less than that costs, given "
      "--examples",
      [this](int32_t count) { request_.mutable_current()->set_workers(count); });
  AddValueOption<int32_t>(
      app, "--current-servers", "N", "... and so many servers (default: the scenario's)",
      [this](int32_t count) { request_.mutable_current()->set_parameter_servers(count); })
      ->needs(workers);
  AddParsedOption(
      app, "--rescale-time", "TIME",
      "How long the running job stands still when its numbers change: 90s",
      [](const std::string& text) { return ParseDuration(text); },
      [this](std::chrono::nanoseconds time) {
        request_.mutable_current()->set_rescale_seconds(
            std::chrono::duration<double>(time).count());
      })
      ->needs(workers);
}

}  // namespace stepcast::client
