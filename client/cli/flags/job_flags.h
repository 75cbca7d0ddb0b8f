// The flags of the job itself: what differs from the recorded one, the pipeline that it is spread
// over, and the training whose time and money are asked for.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "absl/status/statusor.h"

#include "stepcast/v1/prediction.pb.h"
#include "stepcast/v1/scenario.pb.h"
#include "stepcast/v1/strategy.pb.h"

namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace stepcast::client {

// A message that has the second recording alone: a file's profile, or the name of a stored one. Of
// JobChange and StrategyMemory.
template <typename Message>
absl::StatusOr<Message> SecondRecording(const std::string& argument);

// Scenario.change. Both outlive the parse, as below; `told`: lines on where a figure is from.
void DeclareChangeFlags(CLI::App& app, v1::Scenario& scenario, std::string& told);

// Scenario.pipeline.
CLI::Option* DeclarePipelineFlag(CLI::App& app, v1::Scenario& scenario);
// KEY=VALUE,... as the flag takes them. INVALID_ARGUMENT, with the key, for others.
absl::StatusOr<v1::Pipeline> ParsePipeline(const std::string& text);

// Examples, prices and failures.
class PlanFlags {
 public:
  // This outlives the parse.
  void Declare(CLI::App& app);

  bool any() const { return any_; }
  // The plan of the flags; its examples are 0 where they were not given.
  v1::TrainingPlan plan() const;
  bool has_examples() const { return has_examples_; }
  bool has_prices() const {
    return plan_.has_worker_hour() || plan_.has_parameter_server_hour() || plan_.has_node_hour() ||
           plan_.has_device_hour() || !plan_.currency_code().empty();
  }

 private:
  void DeclareFailures(CLI::App& app);

  v1::TrainingPlan plan_;
  std::optional<double> epochs_;
  std::optional<int64_t> dataset_;
  bool has_examples_ = false;
  bool any_ = false;
};

}  // namespace stepcast::client
