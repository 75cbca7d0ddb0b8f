// The unary methods of PredictionService, a row each: what RPCs, jobs, calls within this process
// and metrics are made of. A new method is its messages, their conversions (FromWire, ToWire), its
// handler and its row. A method may be a job where StartJobRequest can hold its request.
#pragma once

#include <string_view>
#include <tuple>
#include <vector>

#include "server/convert/operation_convert.h"
#include "server/convert/prediction_convert.h"
#include "server/handlers/engine_run.h"
#include "server/handlers/prediction_handler.h"

namespace stepcast::server {

// `check`: the handler's method; `kinds`: the jobs that are simulated for it.
template <typename RequestMessage, auto check, JobKinds kinds>
struct PredictionMethod {
  using Request = RequestMessage;
  static constexpr JobKinds kKinds = kinds;

  static auto Check(const PredictionHandler& handler, const Request& request) {
    return (handler.*check)(FromWire(request));
  }
  // "PredictThroughput".
  static std::string_view Name() { return MethodNameOf(*Request::descriptor()); }
};

using PredictionMethods = std::tuple<
    PredictionMethod<v1::PredictThroughputRequest, &PredictionHandler::PredictThroughput,
                     kAllKinds>,
    PredictionMethod<v1::RecommendWorkersRequest, &PredictionHandler::RecommendWorkers, kOneKind>,
    PredictionMethod<v1::OptimizeOrderRequest, &PredictionHandler::OptimizeOrder, kOfServers>,
    PredictionMethod<v1::OptimizeCommunicationRequest, &PredictionHandler::OptimizeCommunication,
                     kOfAllReduces>,
    PredictionMethod<v1::AllocateWorkersRequest, &PredictionHandler::AllocateWorkers, kAllKinds>,
    PredictionMethod<v1::CompareModelsRequest, &PredictionHandler::CompareModels, kOneKind>,
    PredictionMethod<v1::DiagnoseJobRequest, &PredictionHandler::DiagnoseJob, kOneKind>,
    PredictionMethod<v1::OptimizeJobRequest, &PredictionHandler::OptimizeJob,
                     kOfServers | kOfAllReduces>,
    PredictionMethod<v1::RecommendLayoutRequest, &PredictionHandler::RecommendLayout, kOfPipelines>,
    PredictionMethod<v1::FitParsingOverheadRequest, &PredictionHandler::FitParsingOverhead,
                     kNothingSimulated>,
    PredictionMethod<v1::FitCollectivesRequest, &PredictionHandler::FitCollectives,
                     kNothingSimulated>,
    PredictionMethod<v1::FitContentionRequest, &PredictionHandler::FitContention,
                     kNothingSimulated>,
    PredictionMethod<v1::FitRunsRequest, &PredictionHandler::FitRuns, kNothingSimulated>>;

// Calls `take` with a value of each row's type.
template <typename Take>
void ForEachPredictionMethod(Take take) {
  std::apply([&](auto... methods) { (take(methods), ...); }, PredictionMethods());
}

// All methods that simulate.
inline std::vector<SimulatingMethod> SimulatingMethods() {
  // A stream, which no row has.
  std::vector<SimulatingMethod> simulating = {{.name = "GenerateTrace", .kinds = kOneKind}};
  ForEachPredictionMethod([&]<typename Method>(Method) {
    if (Method::kKinds != kNothingSimulated)
      simulating.push_back({.name = Method::Name(), .kinds = Method::kKinds});
  });
  return simulating;
}

}  // namespace stepcast::server
