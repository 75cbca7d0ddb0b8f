// Predictions between structs and messages.
//
// ToProto fills a message that is empty before; FromProto fills a struct that is
// default-constructed before.
#pragma once

#include <variant>

#include "client/src/convert/profile_proto.h"

#include "stepcast/prediction.h"
#include "stepcast/v1/prediction.pb.h"

namespace stepcast::client {

// Of any request that has the `source` of PredictThroughputRequest.
template <typename Message>
void ToProto(const ProfileSource& from, Message& to) {
  if (const std::string* name = std::get_if<std::string>(&from)) {
    to.set_profile(*name);
  } else {
    ToProto(std::get<Profile>(from), *to.mutable_inline_profile());
  }
}

void ToProto(const ConfidenceInterval& from, v1::ConfidenceInterval& to);
void FromProto(const v1::ConfidenceInterval& from, ConfidenceInterval& to);

void ToProto(const StepTime& from, v1::StepTime& to);
void FromProto(const v1::StepTime& from, StepTime& to);

void ToProto(const ResourceUtilization& from, v1::ResourceUtilization& to);
void FromProto(const v1::ResourceUtilization& from, ResourceUtilization& to);

void ToProto(const SimulationStatistics& from, v1::SimulationStatistics& to);
void FromProto(const v1::SimulationStatistics& from, SimulationStatistics& to);

void ToProto(const Prediction& from, v1::Prediction& to);
void FromProto(const v1::Prediction& from, Prediction& to);

void ToProto(const PredictThroughputRequest& from, v1::PredictThroughputRequest& to);

void ToProto(const PredictThroughputResponse& from, v1::PredictThroughputResponse& to);
void FromProto(const v1::PredictThroughputResponse& from, PredictThroughputResponse& to);

}  // namespace stepcast::client
