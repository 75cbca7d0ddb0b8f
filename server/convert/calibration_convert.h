// Conversions between the messages of calibration.proto and their plain requests and answers.
//
// Threads: pure functions. Cost: linear in the message.
#pragma once

#include "server/convert/prediction_requests.h"
#include "stepcast/v1/calibration.pb.h"

namespace stepcast::server {

FitParsingOverheadCall FromWire(const v1::FitParsingOverheadRequest& wire);
v1::FitParsingOverheadResponse ToWire(const FitParsingOverheadAnswer& answer);

}  // namespace stepcast::server
