#include "stepcast/json.h"

#include <google/protobuf/descriptor.h>
#include <google/protobuf/util/json_util.h>
#include <google/protobuf/util/type_resolver_util.h>

#include <memory>

#include "client/src/convert/allocation_proto.h"
#include "client/src/convert/calibration_proto.h"
#include "client/src/convert/comparison_proto.h"
#include "client/src/convert/deterministic_bytes.h"
#include "client/src/convert/job_proto.h"
#include "client/src/convert/order_proto.h"
#include "client/src/convert/prediction_proto.h"
#include "client/src/convert/profile_proto.h"
#include "client/src/convert/profile_requests_proto.h"
#include "client/src/convert/recommendation_proto.h"
#include "client/src/convert/scenario_proto.h"

namespace stepcast::client {

namespace {

// Through the deterministic binary form, because only there maps have an order. The types of what
// Any holds are found among those of this program.
std::string Print(const google::protobuf::Message& message) {
  const std::unique_ptr<google::protobuf::util::TypeResolver> resolver(
      google::protobuf::util::NewTypeResolverForDescriptorPool(
          "type.googleapis.com", message.GetDescriptor()->file()->pool()));
  google::protobuf::util::JsonPrintOptions options;
  options.add_whitespace = true;
  options.always_print_primitive_fields = true;
  std::string json;
  const auto status = google::protobuf::util::BinaryToJsonString(
      resolver.get(), "type.googleapis.com/" + message.GetDescriptor()->full_name(),
      DeterministicBytes(message), &json, options);
  // Fails only for text that is not UTF-8 and durations out of bounds, neither of which a reply
  // that was parsed can have.
  return status.ok() ? json : std::string("{}\n");
}

template <typename Message, typename Struct>
std::string PrintAs(const Struct& value) {
  Message message;
  ToProto(value, message);
  return Print(message);
}

}  // namespace

std::string ToJson(const Profile& profile) { return PrintAs<v1::Profile>(profile); }
std::string ToJson(const ListProfilesResponse& response) {
  return PrintAs<v1::ListProfilesResponse>(response);
}
std::string ToJson(const ImportProfileResponse& response) {
  return PrintAs<v1::ImportProfileResponse>(response);
}
std::string ToJson(const Scenario& scenario) { return PrintAs<v1::Scenario>(scenario); }
std::string ToJson(const SimulationOptions& options) {
  return PrintAs<v1::SimulationOptions>(options);
}
std::string ToJson(const Prediction& prediction) { return PrintAs<v1::Prediction>(prediction); }
std::string ToJson(const PredictThroughputResponse& response) {
  return PrintAs<v1::PredictThroughputResponse>(response);
}
std::string ToJson(const RecommendWorkersResponse& response) {
  return PrintAs<v1::RecommendWorkersResponse>(response);
}
std::string ToJson(const TransferOrderResult& result) {
  return PrintAs<v1::TransferOrderResult>(result);
}
std::string ToJson(const OptimizeOrderResponse& response) {
  return PrintAs<v1::OptimizeOrderResponse>(response);
}
std::string ToJson(const AllocateWorkersResponse& response) {
  return PrintAs<v1::AllocateWorkersResponse>(response);
}
std::string ToJson(const FitParsingOverheadResponse& response) {
  return PrintAs<v1::FitParsingOverheadResponse>(response);
}
std::string ToJson(const CompareModelsResponse& response) {
  return PrintAs<v1::CompareModelsResponse>(response);
}
std::string ToJson(const Job& job) { return PrintAs<google::longrunning::Operation>(job); }
std::string ToJson(const ListJobsResponse& response) {
  return PrintAs<google::longrunning::ListOperationsResponse>(response);
}

}  // namespace stepcast::client
