// Conversions between the messages of prediction.proto and their plain requests and answers.
//
// Threads: pure functions. Cost: linear in the message.
#pragma once

#include "server/convert/prediction_requests.h"
#include "stepcast/v1/prediction.pb.h"

namespace stepcast::server {

PredictThroughputCall FromWire(const v1::PredictThroughputRequest& wire);
v1::PredictThroughputResponse ToWire(const PredictThroughputAnswer& answer);

// The parts of the other answers, too.
v1::Prediction ToWire(const Prediction& prediction);
v1::ConfidenceInterval ToWire(const Interval& interval);
v1::Warning ToWire(const Warning& warning);
v1::SimulationStatistics ToWire(const SimulationStatistics& simulation, double engine_seconds);

}  // namespace stepcast::server
