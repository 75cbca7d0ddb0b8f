#include "client/src/load/prepared_call.h"

#include <google/protobuf/message_lite.h>

#include "client/src/methods.h"

#include "stepcast/v1/admin_service.pb.h"

namespace stepcast::client {

namespace {

absl::Status NoAnswer(const char* why) { return absl::DataLossError(why); }

template <typename Reply>
bool Parse(std::string_view bytes, Reply& reply) {
  return reply.ParseFromArray(bytes.data(), static_cast<int>(bytes.size()));
}

// In proto3 a message that is met twice is merged, field by field.
template <typename Request>
std::string SeedBytes(uint64_t seed) {
  Request request;
  request.mutable_options()->set_seed(seed);
  return request.SerializeAsString();
}

// A reply that parses, and of which `has_answer` holds.
template <typename Reply, bool (*has_answer)(const Reply&)>
absl::Status Check(std::string_view bytes) {
  Reply reply;
  if (!Parse(bytes, reply)) return NoAnswer("the reply cannot be read");
  return has_answer(reply) ? absl::OkStatus() : NoAnswer("the reply holds no answer");
}

bool IsEmpty(const v1::PingResponse& /*reply*/) { return true; }
bool HasPredictions(const v1::PredictThroughputResponse& reply) {
  return reply.predictions_size() > 0;
}
bool HasChoice(const v1::RecommendWorkersResponse& reply) {
  return reply.workers() > 0 || !reply.infeasible_reason().empty();
}
bool HasOrders(const v1::OptimizeOrderResponse& reply) { return reply.orders_size() > 0; }

template <typename Request>
PreparedCall PrepareAs(const Request& request, absl::Status (*check)(std::string_view)) {
  return {.method = MethodFor<Request>().path,
          .request = request.SerializeAsString(),
          .seed = SeedBytes<Request>,
          .check = check};
}

}  // namespace

PreparedCall PreparePing() {
  return {.method = "/stepcast.v1.AdminService/Ping", .check = Check<v1::PingResponse, IsEmpty>};
}

PreparedCall Prepare(const v1::PredictThroughputRequest& request) {
  return PrepareAs(request, Check<v1::PredictThroughputResponse, HasPredictions>);
}

PreparedCall Prepare(const v1::RecommendWorkersRequest& request) {
  return PrepareAs(request, Check<v1::RecommendWorkersResponse, HasChoice>);
}

PreparedCall Prepare(const v1::OptimizeOrderRequest& request) {
  return PrepareAs(request, Check<v1::OptimizeOrderResponse, HasOrders>);
}

}  // namespace stepcast::client
