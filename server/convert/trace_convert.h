// Between the messages of trace.proto and their plain requests and answers.
//
// Threads: pure functions. Cost: linear in the message.
#pragma once

#include "server/convert/prediction_requests.h"
#include "stepcast/v1/trace.pb.h"

namespace stepcast::server {

GenerateTraceCall FromWire(const v1::GenerateTraceRequest& wire);

}  // namespace stepcast::server
