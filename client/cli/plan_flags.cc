#include "client/cli/plan_flags.h"

#include <google/protobuf/util/time_util.h>

#include <CLI/App.hpp>
#include <chrono>
#include <cmath>
#include <string>

#include "client/cli/parsed_option.h"
#include "client/cli/quantity.h"

namespace stepcast::client {

void PlanFlags::Declare(CLI::App& app) {
  constexpr char kGroup[] = "Time and money";
  const auto add = [&](auto value, const char* name, const char* type, const char* help, auto set) {
    return AddValueOption<decltype(value)>(app, name, type, help,
                                           [=, this](const auto& given) {
                                             any_ = true;
                                             set(given);
                                           })
        ->group(kGroup);
  };
  CLI::Option* const examples =
      add(int64_t{}, "--examples", "N", "Examples to train on: gives time and, with prices, cost",
          [this](int64_t count) {
            plan_.set_examples(count);
            has_examples_ = true;
          });
  CLI::Option* const epochs =
      add(double{}, "--epochs", "N", "The same as epochs of --dataset", [this](double count) {
        epochs_ = count;
        has_examples_ = true;
      });
  CLI::Option* const dataset = add(int64_t{}, "--dataset", "N", "Examples of an epoch",
                                   [this](int64_t count) { dataset_ = count; });
  epochs->excludes(examples)->needs(dataset);
  dataset->needs(epochs);
  add(double{}, "--worker-hour", "AMOUNT", "What a worker costs an hour",
      [this](double amount) { plan_.set_worker_hour(amount); });
  add(double{}, "--server-hour", "AMOUNT", "What a parameter server costs an hour",
      [this](double amount) { plan_.set_parameter_server_hour(amount); });
  add(double{}, "--node-hour", "AMOUNT", "What a node of --workers-per-node workers costs an hour",
      [this](double amount) { plan_.set_node_hour(amount); });
  add(std::string{}, "--currency", "CODE", "What the prices are in, for instance USD",
      [this](const std::string& code) { plan_.set_currency_code(code); });
  DeclareFailures(app);
}

void PlanFlags::DeclareFailures(CLI::App& app) {
  const auto add = [&](const char* name, const char* help, auto mutable_field) {
    return AddParsedOption(
               app, name, "TIME", help, [](const std::string& text) { return ParseDuration(text); },
               [=, this](std::chrono::nanoseconds time) {
                 any_ = true;
                 *(plan_.mutable_failures()->*mutable_field)() =
                     google::protobuf::util::TimeUtil::NanosecondsToDuration(time.count());
               })
        ->group("Time and money");
  };
  using v1::Failures;
  CLI::Option* const between =
      add("--worker-mtbf", "Mean time between failures of one worker: 50000h",
          &Failures::mutable_worker_mean_time_between);
  CLI::Option* const checkpoint = add("--checkpoint-time", "What writing a checkpoint takes: 40s",
                                      &Failures::mutable_checkpoint_time);
  between->needs(checkpoint);
  checkpoint->needs(between);
  add("--restart-time", "From a failure to the next step: 5m (default 0s)",
      &Failures::mutable_restart_time)
      ->needs(between);
  add("--checkpoint-every", "Work between checkpoints (default: the best, by Daly's formula)",
      &Failures::mutable_checkpoint_interval)
      ->needs(between);
}

v1::TrainingPlan PlanFlags::plan() const {
  v1::TrainingPlan plan = plan_;
  if (epochs_.has_value() && dataset_.has_value()) {
    const double examples = std::ceil(*epochs_ * static_cast<double>(*dataset_));
    constexpr double kMost = 9e18;
    plan.set_examples(examples >= 1 && examples < kMost ? static_cast<int64_t>(examples) : 0);
  }
  return plan;
}

}  // namespace stepcast::client
