// Conversions between the messages of recommendation.proto and their plain requests and answers.
//
// Threads: pure functions. Cost: linear in the message.
#pragma once

#include "server/convert/prediction_requests.h"
#include "stepcast/v1/recommendation.pb.h"

namespace stepcast::server {

RecommendWorkersCall FromWire(const v1::RecommendWorkersRequest& wire);
v1::RecommendWorkersResponse ToWire(const RecommendWorkersAnswer& answer);

}  // namespace stepcast::server
