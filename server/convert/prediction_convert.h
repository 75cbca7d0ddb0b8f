// Between the messages of PredictionService and its plain requests and answers.
//
// Threads: pure functions. Cost: linear in the message.
#pragma once

#include "server/convert/prediction_requests.h"
#include "stepcast/v1/prediction_service.pb.h"

namespace stepcast::server {

PredictThroughputCall FromWire(const v1::PredictThroughputRequest& wire);
RecommendWorkersCall FromWire(const v1::RecommendWorkersRequest& wire);
OptimizeOrderCall FromWire(const v1::OptimizeOrderRequest& wire);
GenerateTraceCall FromWire(const v1::GenerateTraceRequest& wire);

v1::PredictThroughputResponse ToWire(const PredictThroughputAnswer& answer);
v1::RecommendWorkersResponse ToWire(const RecommendWorkersAnswer& answer);
v1::OptimizeOrderResponse ToWire(const OptimizeOrderAnswer& answer);

v1::Prediction ToWire(const Prediction& prediction);

}  // namespace stepcast::server
