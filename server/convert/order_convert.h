// Conversions between the messages of order.proto and their plain requests and answers.
//
// Threads: pure functions. Cost: linear in the message.
#pragma once

#include "server/convert/prediction_requests.h"
#include "stepcast/v1/order.pb.h"

namespace stepcast::server {

OptimizeOrderCall FromWire(const v1::OptimizeOrderRequest& wire);
v1::OptimizeOrderResponse ToWire(const OptimizeOrderAnswer& answer);

}  // namespace stepcast::server
