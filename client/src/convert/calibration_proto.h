// Calibrations between structs and messages.
//
// ToProto fills a message that is empty before; FromProto fills a struct that is
// default-constructed before.
#pragma once

#include "stepcast/calibration.h"
#include "stepcast/v1/calibration.pb.h"

namespace stepcast::client {

void ToProto(const FitParsingOverheadRequest& from, v1::FitParsingOverheadRequest& to);

void ToProto(const FitParsingOverheadResponse& from, v1::FitParsingOverheadResponse& to);
void FromProto(const v1::FitParsingOverheadResponse& from, FitParsingOverheadResponse& to);

}  // namespace stepcast::client
