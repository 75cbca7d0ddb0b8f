// Conversions between the messages of allocation.proto and their plain requests and answers.
//
// Threads: pure functions. Cost: linear in the message.
#pragma once

#include "server/convert/prediction_requests.h"
#include "stepcast/v1/allocation.pb.h"

namespace stepcast::server {

AllocateWorkersCall FromWire(const v1::AllocateWorkersRequest& wire);
v1::AllocateWorkersResponse ToWire(const AllocateWorkersAnswer& answer);

}  // namespace stepcast::server
