// Recommendations between structs and messages.
//
// ToProto fills a message that is empty before; FromProto fills a struct that is
// default-constructed before.
#pragma once

#include "stepcast/recommendation.h"
#include "stepcast/v1/recommendation.pb.h"

namespace stepcast::client {

void ToProto(const BrokenConstraint& from, v1::BrokenConstraint& to);
void FromProto(const v1::BrokenConstraint& from, BrokenConstraint& to);

void ToProto(const FrontierOutcome& from, v1::FrontierOutcome& to);
void FromProto(const v1::FrontierOutcome& from, FrontierOutcome& to);

void ToProto(const Tie& from, v1::Tie& to);
void FromProto(const v1::Tie& from, Tie& to);

void ToProto(const NearestChoice& from, v1::NearestChoice& to);
void FromProto(const v1::NearestChoice& from, NearestChoice& to);

void ToProto(const RecommendWorkersRequest& from, v1::RecommendWorkersRequest& to);

void ToProto(const RecommendWorkersResponse& from, v1::RecommendWorkersResponse& to);
void FromProto(const v1::RecommendWorkersResponse& from, RecommendWorkersResponse& to);

}  // namespace stepcast::client
