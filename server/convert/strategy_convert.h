// Conversions between the messages of OptimizeJob and its plain request and answer.
//
// Threads: pure functions. Cost: linear in the message.
#pragma once

#include "server/convert/prediction_requests.h"
#include "stepcast/v1/strategy.pb.h"

namespace stepcast::server {

OptimizeJobCall FromWire(const v1::OptimizeJobRequest& wire);
v1::OptimizeJobResponse ToWire(const OptimizeJobAnswer& answer);

}  // namespace stepcast::server
