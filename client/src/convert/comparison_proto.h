// Comparisons of models between structs and messages.
//
// ToProto fills a message that is empty before; FromProto fills a struct that is
// default-constructed before.
#pragma once

#include "stepcast/comparison.h"
#include "stepcast/v1/comparison.pb.h"

namespace stepcast::client {

void ToProto(const CompareModelsRequest& from, v1::CompareModelsRequest& to);

void ToProto(const ModelPrediction& from, v1::ModelPrediction& to);
void FromProto(const v1::ModelPrediction& from, ModelPrediction& to);

void ToProto(const ModelComparison& from, v1::ModelComparison& to);
void FromProto(const v1::ModelComparison& from, ModelComparison& to);

void ToProto(const CompareModelsResponse& from, v1::CompareModelsResponse& to);
void FromProto(const v1::CompareModelsResponse& from, CompareModelsResponse& to);

}  // namespace stepcast::client
