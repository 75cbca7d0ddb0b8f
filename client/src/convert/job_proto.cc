#include "client/src/convert/job_proto.h"

#include <string>
#include <variant>

#include "absl/strings/str_cat.h"
#include "client/src/convert/allocation_proto.h"
#include "client/src/convert/comparison_proto.h"
#include "client/src/convert/deterministic_bytes.h"
#include "client/src/convert/duration_proto.h"
#include "client/src/convert/order_proto.h"
#include "client/src/convert/prediction_proto.h"
#include "client/src/convert/recommendation_proto.h"
#include "client/src/convert/repeated.h"
#include "client/src/convert/status_proto.h"

namespace stepcast::client {

namespace longrunning = google::longrunning;

static_assert(static_cast<int>(JobState::kQueued) == v1::JobMetadata::QUEUED);
static_assert(static_cast<int>(JobState::kRunning) == v1::JobMetadata::RUNNING);
static_assert(static_cast<int>(JobState::kSucceeded) == v1::JobMetadata::SUCCEEDED);
static_assert(static_cast<int>(JobState::kFailed) == v1::JobMetadata::FAILED);
static_assert(static_cast<int>(JobState::kCancelled) == v1::JobMetadata::JOB_CANCELLED);

namespace {

// Each computation to its member of the oneof.
struct SetComputation {
  v1::StartJobRequest& to;

  void operator()(const PredictThroughputRequest& from) const {
    ToProto(from, *to.mutable_predict_throughput());
  }
  void operator()(const RecommendWorkersRequest& from) const {
    ToProto(from, *to.mutable_recommend_workers());
  }
  void operator()(const OptimizeOrderRequest& from) const {
    ToProto(from, *to.mutable_optimize_order());
  }
  void operator()(const AllocateWorkersRequest& from) const {
    ToProto(from, *to.mutable_allocate_workers());
  }
  void operator()(const CompareModelsRequest& from) const {
    ToProto(from, *to.mutable_compare_models());
  }
};

// Not Any's own PackFrom, whose maps have no order.
void Pack(const google::protobuf::Message& message, google::protobuf::Any& to) {
  to.set_type_url(absl::StrCat("type.googleapis.com/", message.GetDescriptor()->full_name()));
  to.set_value(DeterministicBytes(message));
}

template <typename Message, typename Struct>
void PackAs(const Struct& from, google::protobuf::Any& to) {
  Message message;
  ToProto(from, message);
  Pack(message, to);
}

struct PackReply {
  longrunning::Operation& to;

  void operator()(std::monostate) const {}
  void operator()(const PredictThroughputResponse& from) const {
    PackAs<v1::PredictThroughputResponse>(from, *to.mutable_response());
  }
  void operator()(const RecommendWorkersResponse& from) const {
    PackAs<v1::RecommendWorkersResponse>(from, *to.mutable_response());
  }
  void operator()(const OptimizeOrderResponse& from) const {
    PackAs<v1::OptimizeOrderResponse>(from, *to.mutable_response());
  }
  void operator()(const AllocateWorkersResponse& from) const {
    PackAs<v1::AllocateWorkersResponse>(from, *to.mutable_response());
  }
  void operator()(const CompareModelsResponse& from) const {
    PackAs<v1::CompareModelsResponse>(from, *to.mutable_response());
  }
};

// Whether it is one.
template <typename Message, typename Struct>
bool Unpack(const google::protobuf::Any& from, JobReply& to) {
  Message message;
  if (!from.UnpackTo(&message)) return false;
  FromProto(message, to.emplace<Struct>());
  return true;
}

void ReadReply(const google::protobuf::Any& from, JobReply& to) {
  static_cast<void>(Unpack<v1::PredictThroughputResponse, PredictThroughputResponse>(from, to) ||
                    Unpack<v1::RecommendWorkersResponse, RecommendWorkersResponse>(from, to) ||
                    Unpack<v1::OptimizeOrderResponse, OptimizeOrderResponse>(from, to) ||
                    Unpack<v1::AllocateWorkersResponse, AllocateWorkersResponse>(from, to) ||
                    Unpack<v1::CompareModelsResponse, CompareModelsResponse>(from, to));
}

// `client::` because what another file of one merged compilation has in its unnamed namespace would
// hide the overloads for times.
v1::JobMetadata MetadataOf(const Job& from) {
  v1::JobMetadata to;
  to.set_method(from.method);
  to.set_state(static_cast<v1::JobMetadata::State>(from.state));
  if (from.create_time) client::ToProto(*from.create_time, *to.mutable_create_time());
  if (from.start_time) client::ToProto(*from.start_time, *to.mutable_start_time());
  if (from.end_time) client::ToProto(*from.end_time, *to.mutable_end_time());
  to.set_attempts(from.attempts);
  to.set_simulated_operations(from.simulated_operations);
  to.set_replica(from.replica);
  to.set_cancel_requested(from.cancel_requested);
  return to;
}

void ReadMetadata(const v1::JobMetadata& from, Job& to) {
  to.method = from.method();
  to.state = static_cast<JobState>(from.state());
  if (from.has_create_time()) client::FromProto(from.create_time(), to.create_time.emplace());
  if (from.has_start_time()) client::FromProto(from.start_time(), to.start_time.emplace());
  if (from.has_end_time()) client::FromProto(from.end_time(), to.end_time.emplace());
  to.attempts = from.attempts();
  to.simulated_operations = from.simulated_operations();
  to.replica = from.replica();
  to.cancel_requested = from.cancel_requested();
}

}  // namespace

void ToProto(const StartJobRequest& from, v1::StartJobRequest& to) {
  to.set_request_id(from.request_id);
  std::visit(SetComputation{to}, from.computation);
}

void ToProto(const ListJobsRequest& from, longrunning::ListOperationsRequest& to) {
  to.set_page_size(from.page_size);
  to.set_page_token(from.page_token);
}

void ToProto(const Job& from, longrunning::Operation& to) {
  to.set_name(from.name);
  Pack(MetadataOf(from), *to.mutable_metadata());
  to.set_done(from.done);
  if (!from.status.ok()) return ToProto(from.status, *to.mutable_error());
  std::visit(PackReply{to}, from.reply);
}

void FromProto(const longrunning::Operation& from, Job& to) {
  to.name = from.name();
  to.done = from.done();
  v1::JobMetadata metadata;
  if (from.metadata().UnpackTo(&metadata)) ReadMetadata(metadata, to);
  if (from.has_error()) FromProto(from.error(), to.status);
  if (from.has_response()) ReadReply(from.response(), to.reply);
}

void ToProto(const ListJobsResponse& from, longrunning::ListOperationsResponse& to) {
  ToProto(from.jobs, *to.mutable_operations());
  to.set_next_page_token(from.next_page_token);
}

void FromProto(const longrunning::ListOperationsResponse& from, ListJobsResponse& to) {
  FromProto(from.operations(), to.jobs);
  to.next_page_token = from.next_page_token();
}

}  // namespace stepcast::client
