#include "stepcast/comparison.h"
#include "stepcast/job.h"
#include "stepcast/order.h"
#include "stepcast/profile.h"

namespace stepcast::client {

std::string_view ResourceName(Resource resource) {
  switch (resource) {
    case Resource::kDownlink:
      return "DOWNLINK";
    case Resource::kWorker:
      return "WORKER";
    case Resource::kUplink:
      return "UPLINK";
    case Resource::kParameterServer:
      return "PARAMETER_SERVER";
    case Resource::kUnspecified:
      break;
  }
  return "RESOURCE_UNSPECIFIED";
}

std::string_view ComparedModelName(ComparedModel model) {
  switch (model) {
    case ComparedModel::kQueueing:
      return "QUEUEING";
    case ComparedModel::kCynthia:
      return "CYNTHIA";
    case ComparedModel::kCynthiaHalved:
      return "CYNTHIA_HALVED";
    case ComparedModel::kCoarseTensors:
      return "COARSE_TENSORS";
    case ComparedModel::kUnspecified:
      break;
  }
  return "MODEL_UNSPECIFIED";
}

std::string_view OrderMethodName(OrderMethod method) {
  switch (method) {
    case OrderMethod::kTic:
      return "TIC";
    case OrderMethod::kTac:
      return "TAC";
    case OrderMethod::kSearch:
      return "SEARCH";
    case OrderMethod::kReverse:
      return "REVERSE";
    case OrderMethod::kRandom:
      return "RANDOM";
    case OrderMethod::kRecorded:
      return "RECORDED";
    case OrderMethod::kGraph:
      return "GRAPH";
    case OrderMethod::kUnspecified:
      break;
  }
  return "ORDER_METHOD_UNSPECIFIED";
}

std::string_view JobStateName(JobState state) {
  switch (state) {
    case JobState::kQueued:
      return "QUEUED";
    case JobState::kRunning:
      return "RUNNING";
    case JobState::kSucceeded:
      return "SUCCEEDED";
    case JobState::kFailed:
      return "FAILED";
    case JobState::kCancelled:
      return "CANCELLED";
    case JobState::kUnspecified:
      break;
  }
  return "STATE_UNSPECIFIED";
}

}  // namespace stepcast::client
