// The flags of a training whose time and money are asked for: its examples, prices, and failures.
#pragma once

#include <cstdint>
#include <optional>

#include "stepcast/v1/prediction.pb.h"

namespace CLI {
class App;
}  // namespace CLI

namespace stepcast::client {

class PlanFlags {
 public:
  // This outlives the parse.
  void Declare(CLI::App& app);

  bool any() const { return any_; }
  // What the flags say. Its examples are 0 where they were not given.
  v1::TrainingPlan plan() const;
  bool has_examples() const { return has_examples_; }
  bool has_prices() const {
    return plan_.has_worker_hour() || plan_.has_parameter_server_hour() || plan_.has_node_hour() ||
           !plan_.currency_code().empty();
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
