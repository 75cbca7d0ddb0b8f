// Conversions between the messages of PredictionService and OptimizeJob and their plain requests
// and answers.
//
// Threads: pure functions. Cost: linear in the message.
#pragma once

#include "core/model/scenario.h"
#include "server/convert/prediction_requests.h"
#include "server/convert/profile_convert.h"
#include "stepcast/v1/allocation.pb.h"
#include "stepcast/v1/calibration.pb.h"
#include "stepcast/v1/comparison.pb.h"
#include "stepcast/v1/diagnosis.pb.h"
#include "stepcast/v1/layout.pb.h"
#include "stepcast/v1/order.pb.h"
#include "stepcast/v1/prediction.pb.h"
#include "stepcast/v1/prediction_service.pb.h"
#include "stepcast/v1/recommendation.pb.h"
#include "stepcast/v1/strategy.pb.h"
#include "stepcast/v1/tuning.pb.h"

namespace stepcast::server {

// The prices of a message that has them among its fields.
template <typename Message>
MachinePrices PricesOf(const Message& wire) {
  return {.worker_hour = wire.worker_hour(),
          .parameter_server_hour = wire.parameter_server_hour(),
          .node_hour = wire.node_hour(),
          .device_hour = wire.device_hour(),
          .currency_code = wire.currency_code()};
}

// The change of a job, which is not recorded yet.
ProfileSource ChangeOf(const v1::JobChange& wire);

// The source of a request's profile. Of any message with a `source`: they are all the same.
template <typename Request>
ProfileSource SourceOf(const Request& wire) {
  ProfileSource source = ChangeOf(wire.scenario().change());
  if (wire.has_inline_profile()) {
    source.recorded = FromWire(wire.inline_profile());
  } else if (wire.has_profile()) {
    source.recorded = wire.profile();
  }
  return source;
}

PredictThroughputCall FromWire(const v1::PredictThroughputRequest& wire);
v1::PredictThroughputResponse ToWire(const PredictThroughputAnswer& answer);

// The parts of the other answers, too.
v1::Prediction ToWire(const Prediction& prediction);
Failures FailuresOf(const v1::Failures& wire, const std::string& path, FaultList& faults);
v1::StepTime ToWire(const StepTime& step_time);
v1::ConfidenceInterval ToWire(const Interval& interval);
v1::Warning ToWire(const Warning& warning);
v1::Assumption ToWire(const Assumption& assumption);
v1::SimulationStatistics ToWire(const SimulationStatistics& simulation, double engine_seconds);

CompareModelsCall FromWire(const v1::CompareModelsRequest& wire);
v1::CompareModelsResponse ToWire(const CompareModelsAnswer& answer);

DiagnoseJobCall FromWire(const v1::DiagnoseJobRequest& wire);
v1::DiagnoseJobResponse ToWire(const DiagnoseJobAnswer& answer);

FitParsingOverheadCall FromWire(const v1::FitParsingOverheadRequest& wire);
v1::FitParsingOverheadResponse ToWire(const FitParsingOverheadAnswer& answer);

FitCollectivesCall FromWire(const v1::FitCollectivesRequest& wire);
v1::FitCollectivesResponse ToWire(const FitCollectivesAnswer& answer);
FitContentionCall FromWire(const v1::FitContentionRequest& wire);
v1::FitContentionResponse ToWire(const FitContentionAnswer& answer);

GenerateTraceCall FromWire(const v1::GenerateTraceRequest& wire);

// Searches for numbers of workers, for an order and for an allocation; search_convert.cc has these.
RecommendWorkersCall FromWire(const v1::RecommendWorkersRequest& wire);
v1::RecommendWorkersResponse ToWire(const RecommendWorkersAnswer& answer);

OptimizeOrderCall FromWire(const v1::OptimizeOrderRequest& wire);
v1::OptimizeOrderResponse ToWire(const OptimizeOrderAnswer& answer);
OptimizeCommunicationCall FromWire(const v1::OptimizeCommunicationRequest& wire);
v1::OptimizeCommunicationResponse ToWire(const OptimizeCommunicationAnswer& answer);
v1::CommunicationGroup ToWire(const TunedGroup& group);

AllocateWorkersCall FromWire(const v1::AllocateWorkersRequest& wire);
v1::AllocateWorkersResponse ToWire(const AllocateWorkersAnswer& answer);

// Searches for a layout, and fits; layout_convert.cc has these.
RecommendLayoutCall FromWire(const v1::RecommendLayoutRequest& wire);
v1::RecommendLayoutResponse ToWire(const RecommendLayoutAnswer& answer);
FitRunsCall FromWire(const v1::FitRunsRequest& wire);
v1::FitRunsResponse ToWire(const FitRunsAnswer& answer);

// Strategies; strategy_convert.cc has these.
OptimizeJobCall FromWire(const v1::OptimizeJobRequest& wire);
v1::OptimizeJobResponse ToWire(const OptimizeJobAnswer& answer);

}  // namespace stepcast::server
