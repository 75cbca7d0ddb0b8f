#include "client/src/grpc_stub.h"

#include <grpcpp/channel.h>
#include <grpcpp/client_context.h>
#include <grpcpp/create_channel.h>
#include <grpcpp/support/channel_arguments.h>

#include <algorithm>
#include <limits>
#include <string>
#include <utility>

#include "client/src/channel_credentials.h"
#include "client/src/connect_time.h"
#include "client/src/wire_status.h"
#include "google/longrunning/operations.grpc.pb.h"

#include "stepcast/v1/job_service.grpc.pb.h"
#include "stepcast/v1/prediction_service.grpc.pb.h"
#include "stepcast/v1/profile_service.grpc.pb.h"

namespace stepcast::client {

namespace {

namespace longrunning = google::longrunning;

// Well under the 4 MiB that gRPC takes in one message unless told otherwise.
constexpr size_t kChunkBytes = size_t{512} << 10;

// Reconnect as quickly as calls are retried: gRPC's own first pause is a second, in which every
// retry would fail unsent.
constexpr int kFirstReconnectMs = 100;
constexpr int kMaxReconnectMs = 5'000;

std::shared_ptr<grpc::Channel> MakeChannel(const ClientOptions& options) {
  grpc::ChannelArguments arguments;
  arguments.SetMaxReceiveMessageSize(
      static_cast<int>(std::min<size_t>(options.max_reply_bytes, std::numeric_limits<int>::max())));
  arguments.SetMaxSendMessageSize(-1);
  arguments.SetInt(GRPC_ARG_INITIAL_RECONNECT_BACKOFF_MS, kFirstReconnectMs);
  arguments.SetInt(GRPC_ARG_MIN_RECONNECT_BACKOFF_MS, kMaxConnectMs);
  arguments.SetInt(GRPC_ARG_MAX_RECONNECT_BACKOFF_MS, kMaxReconnectMs);
  return grpc::CreateCustomChannel(options.server, ChannelCredentialsOf(options.credentials),
                                   arguments);
}

void SetTimeout(std::chrono::nanoseconds timeout, grpc::ClientContext& context) {
  // The sum must not pass the end of the clock.
  const auto now = std::chrono::system_clock::now();
  const auto latest = std::chrono::system_clock::time_point::max();
  context.set_deadline(
      timeout < latest - now
          ? now + std::chrono::duration_cast<std::chrono::system_clock::duration>(timeout)
          : latest);
}

absl::Status FromGrpc(const grpc::Status& status) {
  return StatusFromWire(static_cast<absl::StatusCode>(status.error_code()), status.error_message(),
                        status.error_details());
}

class GrpcStub : public Stub {
 public:
  explicit GrpcStub(const std::shared_ptr<grpc::Channel>& channel)
      : profiles_(v1::ProfileService::NewStub(channel)),
        predictions_(v1::PredictionService::NewStub(channel)),
        jobs_(v1::JobService::NewStub(channel)),
        operations_(longrunning::Operations::NewStub(channel)) {}

  absl::StatusOr<v1::Profile> CreateProfile(const v1::CreateProfileRequest& request,
                                            Timeout timeout) override {
    return Unary<v1::Profile>(*profiles_, &v1::ProfileService::Stub::CreateProfile, request,
                              timeout);
  }
  absl::StatusOr<v1::Profile> UploadProfile(const v1::UploadProfileRequest::Header& header,
                                            std::string_view bytes, Timeout timeout) override {
    return Upload<v1::Profile, v1::UploadProfileRequest>(&v1::ProfileService::Stub::UploadProfile,
                                                         header, bytes, timeout);
  }
  absl::StatusOr<v1::ImportProfileResponse> ImportProfile(
      const v1::ImportProfileRequest::Header& header, const ImportStreams& streams,
      Timeout timeout) override {
    grpc::ClientContext context;
    SetTimeout(timeout, context);
    v1::ImportProfileResponse reply;
    const auto writer = profiles_->ImportProfile(&context, &reply);
    v1::ImportProfileRequest message;
    *message.mutable_header() = header;
    bool sending = writer->Write(message);
    absl::Status read =
        streams.graph == nullptr ? absl::OkStatus() : Send(*streams.graph, true, *writer, sending);
    if (read.ok()) read = Send(streams.recording, false, *writer, sending);
    // A stream that ended here would look like a whole one.
    if (!read.ok()) context.TryCancel();
    if (read.ok()) writer->WritesDone();
    const grpc::Status status = writer->Finish();
    if (!read.ok()) return read;
    if (!status.ok()) return FromGrpc(status);
    return reply;
  }
  absl::StatusOr<v1::Profile> GetProfile(const v1::GetProfileRequest& request,
                                         Timeout timeout) override {
    return Unary<v1::Profile>(*profiles_, &v1::ProfileService::Stub::GetProfile, request, timeout);
  }
  absl::StatusOr<v1::ListProfilesResponse> ListProfiles(const v1::ListProfilesRequest& request,
                                                        Timeout timeout) override {
    return Unary<v1::ListProfilesResponse>(*profiles_, &v1::ProfileService::Stub::ListProfiles,
                                           request, timeout);
  }
  absl::Status DeleteProfile(const v1::DeleteProfileRequest& request, Timeout timeout) override {
    return Unary<google::protobuf::Empty>(*profiles_, &v1::ProfileService::Stub::DeleteProfile,
                                          request, timeout)
        .status();
  }
  absl::StatusOr<v1::PredictThroughputResponse> PredictThroughput(
      const v1::PredictThroughputRequest& request, Timeout timeout) override {
    return Unary<v1::PredictThroughputResponse>(
        *predictions_, &v1::PredictionService::Stub::PredictThroughput, request, timeout);
  }
  absl::StatusOr<v1::RecommendWorkersResponse> RecommendWorkers(
      const v1::RecommendWorkersRequest& request, Timeout timeout) override {
    return Unary<v1::RecommendWorkersResponse>(
        *predictions_, &v1::PredictionService::Stub::RecommendWorkers, request, timeout);
  }
  absl::StatusOr<v1::OptimizeOrderResponse> OptimizeOrder(const v1::OptimizeOrderRequest& request,
                                                          Timeout timeout) override {
    return Unary<v1::OptimizeOrderResponse>(
        *predictions_, &v1::PredictionService::Stub::OptimizeOrder, request, timeout);
  }
  absl::StatusOr<v1::AllocateWorkersResponse> AllocateWorkers(
      const v1::AllocateWorkersRequest& request, Timeout timeout) override {
    return Unary<v1::AllocateWorkersResponse>(
        *predictions_, &v1::PredictionService::Stub::AllocateWorkers, request, timeout);
  }
  absl::StatusOr<v1::CompareModelsResponse> CompareModels(const v1::CompareModelsRequest& request,
                                                          Timeout timeout) override {
    return Unary<v1::CompareModelsResponse>(
        *predictions_, &v1::PredictionService::Stub::CompareModels, request, timeout);
  }
  absl::StatusOr<v1::FitParsingOverheadResponse> FitParsingOverhead(
      const v1::FitParsingOverheadRequest& request, Timeout timeout) override {
    return Unary<v1::FitParsingOverheadResponse>(
        *predictions_, &v1::PredictionService::Stub::FitParsingOverhead, request, timeout);
  }

  absl::Status GenerateTrace(const v1::GenerateTraceRequest& request, TakeChunk take,
                             Timeout timeout) override {
    grpc::ClientContext context;
    SetTimeout(timeout, context);
    const auto reader = predictions_->GenerateTrace(&context, request);
    absl::Status taken;
    v1::GenerateTraceResponse message;
    while (taken.ok() && reader->Read(&message)) taken = take(message.chunk());
    if (!taken.ok()) context.TryCancel();
    const grpc::Status status = reader->Finish();
    return taken.ok() ? FromGrpc(status) : taken;
  }

  absl::StatusOr<longrunning::Operation> StartJob(const v1::StartJobRequest& request,
                                                  Timeout timeout) override {
    return Unary<longrunning::Operation>(*jobs_, &v1::JobService::Stub::StartJob, request, timeout);
  }
  absl::StatusOr<longrunning::Operation> GetOperation(
      const longrunning::GetOperationRequest& request, Timeout timeout) override {
    return Unary<longrunning::Operation>(*operations_, &longrunning::Operations::Stub::GetOperation,
                                         request, timeout);
  }
  absl::StatusOr<longrunning::ListOperationsResponse> ListOperations(
      const longrunning::ListOperationsRequest& request, Timeout timeout) override {
    return Unary<longrunning::ListOperationsResponse>(
        *operations_, &longrunning::Operations::Stub::ListOperations, request, timeout);
  }
  absl::StatusOr<longrunning::Operation> WaitOperation(
      const longrunning::WaitOperationRequest& request, Timeout timeout) override {
    return Unary<longrunning::Operation>(
        *operations_, &longrunning::Operations::Stub::WaitOperation, request, timeout);
  }
  absl::Status CancelOperation(const longrunning::CancelOperationRequest& request,
                               Timeout timeout) override {
    return Unary<google::protobuf::Empty>(
               *operations_, &longrunning::Operations::Stub::CancelOperation, request, timeout)
        .status();
  }
  absl::Status DeleteOperation(const longrunning::DeleteOperationRequest& request,
                               Timeout timeout) override {
    return Unary<google::protobuf::Empty>(
               *operations_, &longrunning::Operations::Stub::DeleteOperation, request, timeout)
        .status();
  }

 private:
  template <typename Reply, typename Service, typename Request>
  static absl::StatusOr<Reply> Unary(Service& service,
                                     grpc::Status (Service::*method)(grpc::ClientContext*,
                                                                     const Request&, Reply*),
                                     const Request& request, Timeout timeout) {
    grpc::ClientContext context;
    SetTimeout(timeout, context);
    Reply reply;
    const grpc::Status status = (service.*method)(&context, request, &reply);
    if (!status.ok()) return FromGrpc(status);
    return reply;
  }

  // Fails with what the stream does. `sending` turns false where a write fails; why is in the final
  // status.
  static absl::Status Send(ByteStream& stream, bool graph,
                           grpc::ClientWriter<v1::ImportProfileRequest>& writer, bool& sending) {
    if (absl::Status status = stream.Rewind(); !status.ok()) return status;
    std::string block(kChunkBytes, '\0');
    v1::ImportProfileRequest message;
    while (sending) {
      const absl::StatusOr<size_t> read = stream.Read(block.data(), block.size());
      if (!read.ok()) return read.status();
      if (*read == 0) break;
      (graph ? *message.mutable_graph_chunk() : *message.mutable_chunk()).assign(block, 0, *read);
      sending = writer.Write(message);
    }
    return absl::OkStatus();
  }

  // A header, then the bytes in chunks. A write that fails ends the sending; why is in the final
  // status.
  template <typename Reply, typename Message>
  absl::StatusOr<Reply> Upload(std::unique_ptr<grpc::ClientWriter<Message>> (
                                   v1::ProfileService::Stub::*method)(grpc::ClientContext*, Reply*),
                               const typename Message::Header& header, std::string_view bytes,
                               Timeout timeout) {
    grpc::ClientContext context;
    SetTimeout(timeout, context);
    Reply reply;
    const auto writer = ((*profiles_).*method)(&context, &reply);
    Message message;
    *message.mutable_header() = header;
    bool sending = writer->Write(message);
    for (size_t at = 0; sending && at < bytes.size(); at += kChunkBytes) {
      message.set_chunk(std::string(bytes.substr(at, kChunkBytes)));
      sending = writer->Write(message);
    }
    writer->WritesDone();
    const grpc::Status status = writer->Finish();
    if (!status.ok()) return FromGrpc(status);
    return reply;
  }

  std::unique_ptr<v1::ProfileService::Stub> profiles_;
  std::unique_ptr<v1::PredictionService::Stub> predictions_;
  std::unique_ptr<v1::JobService::Stub> jobs_;
  std::unique_ptr<longrunning::Operations::Stub> operations_;
};

}  // namespace

std::unique_ptr<Stub> MakeGrpcStub(const ClientOptions& options) {
  return std::make_unique<GrpcStub>(MakeChannel(options));
}

}  // namespace stepcast::client
