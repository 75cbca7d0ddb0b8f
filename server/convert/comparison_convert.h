// Conversions between the messages of comparison.proto and their plain requests and answers.
//
// Threads: pure functions. Cost: linear in the message.
#pragma once

#include "server/convert/prediction_requests.h"
#include "stepcast/v1/comparison.pb.h"

namespace stepcast::server {

CompareModelsCall FromWire(const v1::CompareModelsRequest& wire);
v1::CompareModelsResponse ToWire(const CompareModelsAnswer& answer);

}  // namespace stepcast::server
