// Conversions between the messages of RecommendLayout and FitRuns and their plain requests and
// answers.
//
// Threads: pure functions. Cost: linear in the message.
#pragma once

#include "server/convert/prediction_requests.h"
#include "stepcast/v1/layout.pb.h"

namespace stepcast::server {

RecommendLayoutCall FromWire(const v1::RecommendLayoutRequest& wire);
v1::RecommendLayoutResponse ToWire(const RecommendLayoutAnswer& answer);
FitRunsCall FromWire(const v1::FitRunsRequest& wire);
v1::FitRunsResponse ToWire(const FitRunsAnswer& answer);

}  // namespace stepcast::server
