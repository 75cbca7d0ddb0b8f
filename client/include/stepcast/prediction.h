// How fast a job runs: request and reply of Client::PredictThroughput.
//
// Fields, units, defaults and bounds are those of proto/stepcast/v1/prediction.proto.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "stepcast/profile.h"
#include "stepcast/scenario.h"
#include "stepcast/simulation_options.h"

namespace stepcast::client {

// The job that is asked about: the name of a stored profile, `profiles/{profile}`, or a profile
// that the service checks, uses and forgets. An inline profile must fit into one message, whose
// limit the server sets (64 MiB by default); upload what does not.
using ProfileSource = std::variant<std::string, Profile>;

// An interval that holds the value with the probability `level`.
struct ConfidenceInterval {
  double lower = 0;
  double upper = 0;
  double level = 0;

  friend bool operator==(const ConfidenceInterval&, const ConfidenceInterval&) = default;
};

// How long steps take.
struct StepTime {
  std::chrono::nanoseconds mean{0};
  std::chrono::nanoseconds p50{0};
  std::chrono::nanoseconds p95{0};
  std::chrono::nanoseconds p99{0};

  friend bool operator==(const StepTime&, const StepTime&) = default;
};

// How busy one resource is.
struct ResourceUtilization {
  Resource resource = Resource::kUnspecified;
  int32_t parameter_server = 0;  // 0 for kWorker
  double fraction = 0;           // 0 to 1

  friend bool operator==(const ResourceUtilization&, const ResourceUtilization&) = default;
};

// What an answer took.
struct SimulationStatistics {
  int64_t simulated_operations = 0;
  double engine_seconds = 0;  // from the beginning to the end of the simulation
  std::string engine_path;    // "plain", "worker_loop" or "memoised", or several, joined by ", "
  bool cached = false;

  friend bool operator==(const SimulationStatistics&, const SimulationStatistics&) = default;
};

// A throughput that some runs of a job settle at and others do not.
struct Regime {
  double examples_per_second = 0;        // mean over its runs
  int32_t replications = 0;              // that fell into it
  int32_t other_start_replications = 0;  // runs of the other start that did

  friend bool operator==(const Regime&, const Regime&) = default;
};

// What one scenario will do.
struct Prediction {
  Scenario scenario;                       // in force, defaults filled in
  double examples_per_second = 0;          // of all workers together
  double steps_per_second = 0;             // of all workers together
  ConfidenceInterval confidence_interval;  // of examples_per_second, the mean over runs; has no
                                           // width where nothing is random
  ConfidenceInterval run_interval;         // where the examples_per_second of a single run falls
  StepTime step_time;
  double speedup = 0;             // over the same scenario with one worker
  double scaling_efficiency = 0;  // speedup over the number of workers
  std::vector<ResourceUtilization> utilization;
  Resource bottleneck = Resource::kUnspecified;  // the most used resource
  int32_t bottleneck_parameter_server = 0;
  double exposed_communication_fraction =
      0;  // share of a worker's time with a transfer under way and no computation
  bool steady_state = false;  // false: it drifts, another start gives another number, or a finite
                              // horizon was asked for
  std::string warning;        // what to know before trusting the number; empty: nothing
  int32_t replications = 0;
  std::vector<Regime>
      regimes;  // two, the faster first, where runs do not agree on one throughput; else none

  friend bool operator==(const Prediction&, const Prediction&) = default;
};

struct PredictThroughputRequest {
  ProfileSource source;
  std::vector<Scenario> scenarios;     // either these,
  std::vector<int32_t> worker_counts;  // or these with `scenario`
  std::optional<Scenario> scenario;
  SimulationOptions options;

  friend bool operator==(const PredictThroughputRequest&,
                         const PredictThroughputRequest&) = default;
};

struct PredictThroughputResponse {
  std::vector<Prediction> predictions;  // one a scenario, in the order of the request
  SimulationStatistics simulation;
  SimulationOptions options;  // in force, defaults filled in
  uint64_t seed = 0;
  std::string profile_digest;
  std::string engine_version;

  friend bool operator==(const PredictThroughputResponse&,
                         const PredictThroughputResponse&) = default;
};

}  // namespace stepcast::client
