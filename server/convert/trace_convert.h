// Conversions between the messages of GenerateTrace and their plain requests.
//
// Threads: pure functions. Cost: linear in the message.
#pragma once

#include "server/convert/prediction_requests.h"
#include "stepcast/v1/prediction_service.pb.h"

namespace stepcast::server {

GenerateTraceCall FromWire(const v1::GenerateTraceRequest& wire);

}  // namespace stepcast::server
