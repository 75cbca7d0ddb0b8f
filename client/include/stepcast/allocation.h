// How a cluster's workers are shared between jobs: request and reply of Client::AllocateWorkers.
//
// Fields, units, defaults and bounds are those of proto/stepcast/v1/allocation.proto.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

#include "stepcast/prediction.h"
#include "stepcast/recommendation.h"
#include "stepcast/scenario.h"
#include "stepcast/simulation_options.h"

namespace stepcast::client {

// What is made best.
enum class AllocationObjective : int32_t {
  kUnspecified = 0,
  kTotalUtility = 1,
  kMaxMinFair = 2,
  kMinMakespan = 3
};

// What there is to share.
struct ClusterCapacity {
  int32_t workers = 0;
  std::optional<int32_t> parameter_servers;  // as many as wanted

  friend bool operator==(const ClusterCapacity&, const ClusterCapacity&) = default;
};

// A job that wants workers.
struct AllocationJob {
  std::string id;  // no other job's
  ProfileSource source;
  Scenario scenario;                   // everything but the number of workers
  std::optional<double> weight;        // 1
  std::optional<int32_t> min_workers;  // gang; 0: may get none
  std::optional<int32_t> max_workers;
  std::optional<int32_t> gang;  // workers come in multiples of it
  std::optional<int32_t> max_parameter_servers;
  std::optional<int64_t> remaining_examples;
  std::optional<CurrentAllocation> current;

  friend bool operator==(const AllocationJob&, const AllocationJob&) = default;
};

struct AllocateWorkersRequest {
  std::vector<AllocationJob> jobs;
  std::optional<ClusterCapacity> capacity;                            // required
  AllocationObjective objective = AllocationObjective::kUnspecified;  // kTotalUtility
  SimulationOptions options;

  friend bool operator==(const AllocateWorkersRequest&, const AllocateWorkersRequest&) = default;
};

// The request in the proto3 JSON mapping, its profiles by name or inline. Failure:
// INVALID_ARGUMENT, reason REQUEST_UNREADABLE, with what is wrong.
absl::StatusOr<AllocateWorkersRequest> ParseAllocateWorkersRequest(std::string_view json);

// One simulated point of a job's curve.
struct CurvePoint {
  int32_t workers = 0;
  int32_t parameter_servers = 0;
  double examples_per_second = 0;
  ConfidenceInterval confidence_interval;

  friend bool operator==(const CurvePoint&, const CurvePoint&) = default;
};

// What one job gets.
struct JobAllocation {
  std::string id;
  absl::Status status;  // why it could not be looked at; GetErrorDetails says more
  int32_t workers = 0;
  int32_t parameter_servers = 0;
  double utility = 0;
  double speedup = 0;
  double examples_per_second = 0;
  bool interpolated = false;
  std::optional<std::chrono::nanoseconds> duration;
  std::vector<CurvePoint> curve;
  std::string profile_digest;
  std::vector<std::string> warnings;  // of the curve, each once

  friend bool operator==(const JobAllocation&, const JobAllocation&) = default;
};

// What a job would have with one more worker.
struct AllocationChange {
  std::string id;
  int32_t workers = 0;
  int32_t parameter_servers = 0;

  friend bool operator==(const AllocationChange&, const AllocationChange&) = default;
};

// What one more worker would give.
struct OneMoreWorker {
  double utility_gain = 0;
  double objective_gain = 0;
  std::vector<AllocationChange> changes;

  friend bool operator==(const OneMoreWorker&, const OneMoreWorker&) = default;
};

struct AllocateWorkersResponse {
  std::vector<JobAllocation> allocations;
  double total_utility = 0;
  double objective_value = 0;
  int32_t workers = 0;
  int32_t parameter_servers = 0;
  OneMoreWorker one_more_worker;
  std::string infeasible_reason;
  SimulationStatistics simulation;
  SimulationOptions options;
  std::string engine_version;

  friend bool operator==(const AllocateWorkersResponse&, const AllocateWorkersResponse&) = default;
};

}  // namespace stepcast::client
