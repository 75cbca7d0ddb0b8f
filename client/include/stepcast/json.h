// The proto JSON of what the service replied.
//
// Form: the proto3 JSON mapping with its lowerCamelCase names, indented by one space, ended by a
// newline. Fields without presence are always printed, also where they have their default;
// `optional` fields only where they are set. As in all proto JSON, 64-bit integers are strings and
// durations are written "1.5s". Keys of maps are in ascending order, so that the same reply gives
// the same text. Threads: pure functions; any number at once.
#pragma once

#include <string>

#include "stepcast/allocation.h"
#include "stepcast/calibration.h"
#include "stepcast/comparison.h"
#include "stepcast/job.h"
#include "stepcast/order.h"
#include "stepcast/prediction.h"
#include "stepcast/profile.h"
#include "stepcast/profile_requests.h"
#include "stepcast/recommendation.h"
#include "stepcast/scenario.h"
#include "stepcast/simulation_options.h"

namespace stepcast::client {

std::string ToJson(const Profile& profile);
std::string ToJson(const ListProfilesResponse& response);
std::string ToJson(const ImportProfileResponse& response);
std::string ToJson(const Scenario& scenario);
std::string ToJson(const SimulationOptions& options);
std::string ToJson(const Prediction& prediction);
std::string ToJson(const PredictThroughputResponse& response);
std::string ToJson(const RecommendWorkersResponse& response);
std::string ToJson(const TransferOrderResult& result);
std::string ToJson(const OptimizeOrderResponse& response);
std::string ToJson(const AllocateWorkersResponse& response);
std::string ToJson(const CompareModelsResponse& response);
std::string ToJson(const FitParsingOverheadResponse& response);
// A google.longrunning.Operation; metadata, reply and the details of an error name their types in
// "@type".
std::string ToJson(const Job& job);
std::string ToJson(const ListJobsResponse& response);

}  // namespace stepcast::client
