// Conversions between the messages of PredictionService that search, for numbers of workers, for an
// order, for an allocation or for a layout, and their plain requests and answers.
//
// Threads: pure functions. Cost: linear in the message.
#pragma once

#include "server/convert/prediction_requests.h"
#include "stepcast/v1/allocation.pb.h"
#include "stepcast/v1/layout.pb.h"
#include "stepcast/v1/order.pb.h"
#include "stepcast/v1/recommendation.pb.h"
#include "stepcast/v1/tuning.pb.h"

namespace stepcast::server {

RecommendWorkersCall FromWire(const v1::RecommendWorkersRequest& wire);
v1::RecommendWorkersResponse ToWire(const RecommendWorkersAnswer& answer);

OptimizeOrderCall FromWire(const v1::OptimizeOrderRequest& wire);
v1::OptimizeOrderResponse ToWire(const OptimizeOrderAnswer& answer);
OptimizeCommunicationCall FromWire(const v1::OptimizeCommunicationRequest& wire);
v1::OptimizeCommunicationResponse ToWire(const OptimizeCommunicationAnswer& answer);
v1::CommunicationGroup ToWire(const TunedGroup& group);

AllocateWorkersCall FromWire(const v1::AllocateWorkersRequest& wire);
v1::AllocateWorkersResponse ToWire(const AllocateWorkersAnswer& answer);

// layout_convert.cc has these.
RecommendLayoutCall FromWire(const v1::RecommendLayoutRequest& wire);
v1::RecommendLayoutResponse ToWire(const RecommendLayoutAnswer& answer);
FitRunsCall FromWire(const v1::FitRunsRequest& wire);
v1::FitRunsResponse ToWire(const FitRunsAnswer& answer);

}  // namespace stepcast::server
