// How many workers a job should get: request and reply of Client::RecommendWorkers.
//
// Fields, units, defaults and bounds are those of proto/stepcast/v1/recommendation.proto.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "stepcast/prediction.h"
#include "stepcast/scenario.h"
#include "stepcast/simulation_options.h"

namespace stepcast::client {

// What the number of workers is chosen for. kKnee: where more workers stop paying, the highest
// throughput times efficiency.
enum class Objective : int32_t {
  kUnspecified = 0,
  kMaxThroughput = 1,
  kMinCost = 2,
  kMinTime = 3,
  kKnee = 4
};

// What a recommendation must keep.
struct Constraints {
  std::optional<int32_t> min_workers;
  std::optional<int32_t> max_workers;
  std::optional<int32_t> max_parameter_servers;
  std::optional<std::chrono::nanoseconds> deadline;  // needs examples
  std::optional<int64_t> examples;                   // left to train on
  std::optional<double> budget;                      // needs prices and examples
  std::optional<double> min_scaling_efficiency;

  friend bool operator==(const Constraints&, const Constraints&) = default;
};

// What machines cost.
struct Prices {
  double worker_hour = 0;
  double parameter_server_hour = 0;
  std::string currency_code;  // ISO 4217

  friend bool operator==(const Prices&, const Prices&) = default;
};

// What a running job has, and what it costs to change it.
struct CurrentAllocation {
  int32_t workers = 0;
  double rescale_seconds = 0;
  std::optional<int32_t> parameter_servers;  // the scenario's

  friend bool operator==(const CurrentAllocation&, const CurrentAllocation&) = default;
};

struct RecommendWorkersRequest {
  ProfileSource source;
  Scenario scenario;  // everything but the number of workers
  SimulationOptions options;
  Objective objective = Objective::kUnspecified;  // kKnee
  std::optional<Constraints> constraints;         // 1 to 16 workers
  std::optional<Prices> prices;
  std::optional<CurrentAllocation> current;

  friend bool operator==(const RecommendWorkersRequest&, const RecommendWorkersRequest&) = default;
};

// A constraint that a choice does not keep.
struct BrokenConstraint {
  enum class Kind : int32_t {
    kUnspecified = 0,
    kDeadline = 1,
    kBudget = 2,
    kMinScalingEfficiency = 3
  };

  Kind kind = Kind::kUnspecified;
  double missed_by = 0;  // share of the limit

  friend bool operator==(const BrokenConstraint&, const BrokenConstraint&) = default;
};

// What a choice of workers and servers means for the request.
struct FrontierOutcome {
  std::optional<double> cost;
  std::optional<std::chrono::nanoseconds> duration;
  bool keeps_constraints = false;
  std::vector<BrokenConstraint> broken_constraints;
  bool in_full = false;  // with all replications and the other start

  friend bool operator==(const FrontierOutcome&, const FrontierOutcome&) = default;
};

// A choice that is as good as the recommended one.
struct Tie {
  int32_t workers = 0;
  int32_t parameter_servers = 0;

  friend bool operator==(const Tie&, const Tie&) = default;
};

// What misses the constraints by the least.
struct NearestChoice {
  int32_t workers = 0;
  int32_t parameter_servers = 0;
  std::optional<Prediction> prediction;
  std::optional<FrontierOutcome> outcome;

  friend bool operator==(const NearestChoice&, const NearestChoice&) = default;
};

struct RecommendWorkersResponse {
  int32_t workers = 0;  // 0: nothing keeps the constraints, and infeasible_reason says why
  int32_t parameter_servers = 0;
  std::optional<Prediction> prediction;
  std::optional<double> cost;
  std::optional<std::chrono::nanoseconds> duration;
  std::string reason;  // one sentence
  std::vector<Prediction>
      frontier;  // every choice simulated, in ascending order of servers, then of workers
  std::string infeasible_reason;
  std::string currency_code;
  SimulationStatistics simulation;
  SimulationOptions options;
  std::string profile_digest;
  std::string engine_version;
  std::vector<FrontierOutcome> frontier_outcomes;  // parallel to frontier
  std::vector<Tie> ties;
  std::optional<NearestChoice> nearest;
  int32_t choices = 0;                // that the request allows
  double untried_gain_bound = 0;      // share of the recommended value
  std::vector<std::string> warnings;  // of the frontier, each once

  friend bool operator==(const RecommendWorkersResponse&,
                         const RecommendWorkersResponse&) = default;
};

}  // namespace stepcast::client
