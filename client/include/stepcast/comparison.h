// What simpler models would predict, beside the simulation: request and reply of
// Client::CompareModels.
//
// Fields, units, defaults and bounds are those of proto/stepcast/v1/comparison.proto.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "stepcast/prediction.h"
#include "stepcast/scenario.h"
#include "stepcast/simulation_options.h"

namespace stepcast::client {

// Models of asynchronous training that are not this service's own.
enum class ComparedModel : int32_t {
  kUnspecified = 0,
  kQueueing = 1,
  kCynthia = 2,
  kCynthiaHalved = 3,
  kCoarseTensors = 4
};

// QUEUEING and so on; MODEL_UNSPECIFIED for what is none.
std::string_view ComparedModelName(ComparedModel model);

struct CompareModelsRequest {
  ProfileSource source;
  std::vector<int32_t> worker_counts;  // 1 to 8
  Scenario scenario;                   // everything but the number of workers
  SimulationOptions options;

  friend bool operator==(const CompareModelsRequest&, const CompareModelsRequest&) = default;
};

struct ModelPrediction {
  ComparedModel model = ComparedModel::kUnspecified;
  double examples_per_second = 0;
  double steps_per_second = 0;
  double relative_difference = 0;  // to the simulation
  bool within_interval = false;
  std::string unavailable_reason;  // empty where the model says something

  friend bool operator==(const ModelPrediction&, const ModelPrediction&) = default;
};

// All models at one number of workers.
struct ModelComparison {
  int32_t workers = 0;
  Prediction prediction;  // the simulation's
  std::vector<ModelPrediction> models;

  friend bool operator==(const ModelComparison&, const ModelComparison&) = default;
};

// The inputs of the coarse models.
struct CoarseProfile {
  double downlink_phase_seconds = 0;
  double worker_phase_seconds = 0;
  double uplink_phase_seconds = 0;
  double parameter_server_phase_seconds = 0;
  double computation_seconds = 0;
  double transfer_seconds = 0;
  double network_utilization = 0;
  double halved_network_utilization = 0;

  friend bool operator==(const CoarseProfile&, const CoarseProfile&) = default;
};

struct CompareModelsResponse {
  std::vector<ModelComparison> comparisons;
  CoarseProfile inputs;
  SimulationStatistics simulation;
  SimulationOptions options;
  std::string profile_digest;
  std::string engine_version;

  friend bool operator==(const CompareModelsResponse&, const CompareModelsResponse&) = default;
};

}  // namespace stepcast::client
