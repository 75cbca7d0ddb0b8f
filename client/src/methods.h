// The unary methods of the service that the client calls.
//
// The one table of which calls may be repeated: a new method gets its line here.
#pragma once

#include <array>

namespace stepcast::client {

// The class of a method by its retries.
enum class Retry {
  kNever,        // a repetition would report an error for a success
  kByRequestId,  // with a request_id, under which the service acts once
  kAlways,       // it changes nothing, or the same again
};

struct Method {
  const char* path;  // as on the wire: /package.Service/Method
  Retry retry;
};

inline constexpr Method kCreateProfile{"/stepcast.v1.ProfileService/CreateProfile",
                                       Retry::kByRequestId};
inline constexpr Method kUpdateProfile{"/stepcast.v1.ProfileService/UpdateProfile",
                                       Retry::kByRequestId};
inline constexpr Method kGetProfile{"/stepcast.v1.ProfileService/GetProfile", Retry::kAlways};
inline constexpr Method kListProfiles{"/stepcast.v1.ProfileService/ListProfiles", Retry::kAlways};
inline constexpr Method kDeleteProfile{"/stepcast.v1.ProfileService/DeleteProfile", Retry::kNever};

inline constexpr Method kPredictThroughput{"/stepcast.v1.PredictionService/PredictThroughput",
                                           Retry::kAlways};
inline constexpr Method kRecommendWorkers{"/stepcast.v1.PredictionService/RecommendWorkers",
                                          Retry::kAlways};
inline constexpr Method kOptimizeOrder{"/stepcast.v1.PredictionService/OptimizeOrder",
                                       Retry::kAlways};
inline constexpr Method kOptimizeCommunication{
    "/stepcast.v1.PredictionService/OptimizeCommunication", Retry::kAlways};
inline constexpr Method kAllocateWorkers{"/stepcast.v1.PredictionService/AllocateWorkers",
                                         Retry::kAlways};
inline constexpr Method kCompareModels{"/stepcast.v1.PredictionService/CompareModels",
                                       Retry::kAlways};
inline constexpr Method kDiagnoseJob{"/stepcast.v1.PredictionService/DiagnoseJob", Retry::kAlways};
inline constexpr Method kOptimizeJob{"/stepcast.v1.PredictionService/OptimizeJob", Retry::kAlways};
inline constexpr Method kRecommendLayout{"/stepcast.v1.PredictionService/RecommendLayout",
                                         Retry::kAlways};
inline constexpr Method kFitRuns{"/stepcast.v1.PredictionService/FitRuns", Retry::kAlways};
inline constexpr Method kFitParsingOverhead{"/stepcast.v1.PredictionService/FitParsingOverhead",
                                            Retry::kAlways};
inline constexpr Method kFitCollectives{"/stepcast.v1.PredictionService/FitCollectives",
                                        Retry::kAlways};
inline constexpr Method kFitContention{"/stepcast.v1.PredictionService/FitContention",
                                       Retry::kAlways};

inline constexpr Method kStartJob{"/stepcast.v1.JobService/StartJob", Retry::kByRequestId};
inline constexpr Method kGetOperation{"/google.longrunning.Operations/GetOperation",
                                      Retry::kAlways};
inline constexpr Method kListOperations{"/google.longrunning.Operations/ListOperations",
                                        Retry::kAlways};
inline constexpr Method kWaitOperation{"/google.longrunning.Operations/WaitOperation",
                                       Retry::kAlways};
// A job that is cancelled already stays so.
inline constexpr Method kCancelOperation{"/google.longrunning.Operations/CancelOperation",
                                         Retry::kAlways};
inline constexpr Method kDeleteOperation{"/google.longrunning.Operations/DeleteOperation",
                                         Retry::kNever};

inline constexpr std::array kMethods{
    kCreateProfile,         kUpdateProfile,     kGetProfile,       kListProfiles,
    kDeleteProfile,         kPredictThroughput, kRecommendWorkers, kOptimizeOrder,
    kOptimizeCommunication, kAllocateWorkers,   kCompareModels,    kDiagnoseJob,
    kOptimizeJob,           kRecommendLayout,   kFitRuns,          kFitParsingOverhead,
    kFitCollectives,        kFitContention,     kStartJob,         kGetOperation,
    kListOperations,        kWaitOperation,     kCancelOperation,  kDeleteOperation};

}  // namespace stepcast::client
