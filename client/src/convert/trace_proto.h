// Requests for traces, from struct to message.
//
// ToProto fills a message that is empty before.
#pragma once

#include "stepcast/trace.h"
#include "stepcast/v1/prediction_service.pb.h"

namespace stepcast::client {

void ToProto(const GenerateTraceRequest& from, v1::GenerateTraceRequest& to);

}  // namespace stepcast::client
