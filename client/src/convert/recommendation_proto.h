// Recommendations between structs and messages.
//
// ToProto fills a message that is empty before; FromProto fills a struct that is default-constructed before.
#pragma once

#include "stepcast/recommendation.h"
#include "stepcast/v1/recommendation.pb.h"

namespace stepcast::client {

void ToProto(const RecommendWorkersRequest& from, v1::RecommendWorkersRequest& to);

void ToProto(const RecommendWorkersResponse& from, v1::RecommendWorkersResponse& to);
void FromProto(const v1::RecommendWorkersResponse& from, RecommendWorkersResponse& to);

}  // namespace stepcast::client
