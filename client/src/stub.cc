#include "client/src/stub.h"

#include <grpc/grpc_security_constants.h>
#include <grpcpp/channel.h>
#include <grpcpp/client_context.h>
#include <grpcpp/create_channel.h>
#include <grpcpp/impl/client_unary_call.h>
#include <grpcpp/impl/rpc_method.h>
#include <grpcpp/security/credentials.h>
#include <grpcpp/support/channel_arguments.h>

#include <algorithm>
#include <chrono>
#include <limits>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "client/src/connection_probe.h"
#include "client/src/error_status.h"

#include "stepcast/v1/prediction_service.grpc.pb.h"
#include "stepcast/v1/profile_service.grpc.pb.h"

namespace stepcast::client {

namespace {

using google::protobuf::Message;

// Well under the 4 MiB that gRPC takes in one message unless told otherwise.
constexpr size_t kChunkBytes = size_t{512} << 10;

// Reconnect as quickly as calls are retried: gRPC's own first pause is a second, in which every
// retry would fail unsent.
constexpr int kFirstReconnectMs = 100;
constexpr int kMaxReconnectMs = 5'000;
// The longest wait of a call for a channel that could not connect the last time it tried.
constexpr std::chrono::nanoseconds kReconnectWait = std::chrono::milliseconds(100);

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

std::chrono::system_clock::time_point Deadline(std::chrono::nanoseconds timeout) {
  // The sum must not pass the end of the clock.
  const auto now = std::chrono::system_clock::now();
  const auto latest = std::chrono::system_clock::time_point::max();
  return timeout < latest - now
             ? now + std::chrono::duration_cast<std::chrono::system_clock::duration>(timeout)
             : latest;
}

// Makes the context one of a call that ends within `timeout`.
//
// A channel that could not connect tries again by itself, but sees that it succeeded only while it
// is polled, which a call that fails at once does not: without the wait, which polls, all calls of
// a program that makes one at a time would fail from then on, the server being back or not.
void Begin(grpc::Channel& channel, std::chrono::nanoseconds timeout, grpc::ClientContext& context) {
  const auto deadline = Deadline(timeout);
  if (channel.GetState(/*try_to_connect=*/false) == GRPC_CHANNEL_TRANSIENT_FAILURE)
    channel.WaitForConnected(Deadline(std::min(kReconnectWait, timeout / 2)));
  context.set_deadline(deadline);
}

absl::Status FromGrpc(const grpc::Status& status) {
  return StatusFromWire(static_cast<absl::StatusCode>(status.error_code()), status.error_message(),
                        status.error_details());
}

class GrpcStub : public Stub {
 public:
  explicit GrpcStub(const ClientOptions& options) : GrpcStub(options, MakeChannel(options)) {}
  GrpcStub(const ClientOptions& options, const std::shared_ptr<grpc::Channel>& channel)
      : channel_(channel),
        unreachable_(options),
        profiles_(v1::ProfileService::NewStub(channel)),
        predictions_(v1::PredictionService::NewStub(channel)) {}

  // Calls as the generated stubs make them, but for any messages.
  absl::Status Call(const Method& method, const Message& request, Message& response,
                    Timeout timeout) override {
    using grpc::protobuf::MessageLite;
    grpc::ClientContext context;
    Begin(*channel_, timeout, context);
    const grpc::internal::RpcMethod rpc(method.path.c_str(), grpc::internal::RpcMethod::NORMAL_RPC);
    const CallUnderWay call(*this, context);
    return Ended(grpc::internal::BlockingUnaryCall<MessageLite, MessageLite>(
                     channel_.get(), rpc, &context, request, &response),
                 context);
  }

  void CancelCalls() override {
    const std::lock_guard lock(mutex_);
    cancelled_ = true;
    for (grpc::ClientContext* context : under_way_) context->TryCancel();
  }

  // A write that fails ends the sending; why is in the final status.
  absl::StatusOr<v1::Profile> UploadProfile(const v1::UploadProfileRequest::Header& header,
                                            std::string_view bytes, Timeout timeout) override {
    grpc::ClientContext context;
    Begin(*channel_, timeout, context);
    v1::Profile stored;
    const auto writer = profiles_->UploadProfile(&context, &stored);
    v1::UploadProfileRequest message;
    *message.mutable_header() = header;
    bool sending = writer->Write(message);
    for (size_t at = 0; sending && at < bytes.size(); at += kChunkBytes) {
      message.set_chunk(std::string(bytes.substr(at, kChunkBytes)));
      sending = writer->Write(message);
    }
    writer->WritesDone();
    const grpc::Status status = writer->Finish();
    if (!status.ok()) return Ended(status, context);
    return stored;
  }

  absl::StatusOr<v1::ImportProfileResponse> ImportProfile(
      const v1::ImportProfileRequest::Header& header, const ImportStreams& streams,
      Timeout timeout) override {
    grpc::ClientContext context;
    Begin(*channel_, timeout, context);
    v1::ImportProfileResponse reply;
    const auto writer = profiles_->ImportProfile(&context, &reply);
    v1::ImportProfileRequest message;
    *message.mutable_header() = header;
    bool sending = writer->Write(message);
    absl::Status read =
        streams.graph == nullptr ? absl::OkStatus() : Send(*streams.graph, true, *writer, sending);
    if (read.ok() && streams.recordings.empty())
      read = Send(streams.recording, false, *writer, sending);
    for (const auto& [stream, name] : streams.recordings) {
      if (!read.ok() || !sending) break;
      message.mutable_recording()->set_name(name);
      sending = writer->Write(message);
      read = Send(*stream, false, *writer, sending);
    }
    // A stream that ended here would look like a whole one.
    if (!read.ok()) context.TryCancel();
    if (read.ok()) writer->WritesDone();
    const grpc::Status status = writer->Finish();
    if (!read.ok()) return read;
    if (!status.ok()) return Ended(status, context);
    return reply;
  }

  absl::Status GenerateTrace(const v1::GenerateTraceRequest& request, TakeChunk take,
                             Timeout timeout) override {
    grpc::ClientContext context;
    Begin(*channel_, timeout, context);
    const auto reader = predictions_->GenerateTrace(&context, request);
    absl::Status taken;
    v1::GenerateTraceResponse message;
    while (taken.ok() && reader->Read(&message)) taken = take(message.chunk());
    if (!taken.ok()) context.TryCancel();
    const grpc::Status status = reader->Finish();
    return taken.ok() ? Ended(status, context) : taken;
  }

 private:
  // A call that CancelCalls finds while this lives.
  class CallUnderWay {
   public:
    CallUnderWay(GrpcStub& stub, grpc::ClientContext& context) : stub_(stub), context_(context) {
      const std::lock_guard lock(stub_.mutex_);
      stub_.under_way_.insert(&context_);
      if (stub_.cancelled_) context_.TryCancel();
    }
    ~CallUnderWay() {
      const std::lock_guard lock(stub_.mutex_);
      stub_.under_way_.erase(&context_);
    }
    CallUnderWay(const CallUnderWay&) = delete;
    CallUnderWay& operator=(const CallUnderWay&) = delete;

   private:
    GrpcStub& stub_;
    grpc::ClientContext& context_;
  };

  // Fails as the stream does. `sending` turns false where a write fails; why is in the final
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

  absl::Status Ended(const grpc::Status& status, const grpc::ClientContext& context) {
    return unreachable_.Explain(FromGrpc(status),
                                context.deadline() - std::chrono::system_clock::now());
  }

  const std::shared_ptr<grpc::Channel> channel_;
  UnreachableServer unreachable_;
  const std::unique_ptr<v1::ProfileService::Stub> profiles_;
  const std::unique_ptr<v1::PredictionService::Stub> predictions_;

  std::mutex mutex_;
  std::set<grpc::ClientContext*> under_way_;  // guarded by mutex_
  bool cancelled_ = false;                    // guarded by mutex_
};

}  // namespace

std::unique_ptr<Stub> MakeGrpcStub(const ClientOptions& options) {
  return std::make_unique<GrpcStub>(options);
}

namespace {

class TokenPlugin final : public grpc::MetadataCredentialsPlugin {
 public:
  explicit TokenPlugin(const std::string& token) : authorization_("Bearer " + token) {}
  bool IsBlocking() const override { return false; }
  grpc::Status GetMetadata(grpc::string_ref /*service_url*/, grpc::string_ref /*method_name*/,
                           const grpc::AuthContext& /*channel*/,
                           std::multimap<grpc::string, grpc::string>* metadata) override {
    metadata->emplace("authorization", authorization_);
    return grpc::Status::OK;
  }

 private:
  const std::string authorization_;
};

}  // namespace

bool UsesTls(const ClientCredentials& options) {
  return options.use_tls || !options.root_certificates.empty() || !options.certificate.empty();
}

std::shared_ptr<grpc::ChannelCredentials> ChannelCredentialsOf(const ClientCredentials& options) {
  if (UsesTls(options)) {
    std::shared_ptr<grpc::ChannelCredentials> channel =
        grpc::SslCredentials({.pem_root_certs = options.root_certificates,
                              .pem_private_key = options.private_key,
                              .pem_cert_chain = options.certificate});
    return options.token.empty() ? channel
                                 : grpc::CompositeChannelCredentials(
                                       channel, grpc::AccessTokenCredentials(options.token));
  }
  if (options.token.empty()) return grpc::InsecureChannelCredentials();
  // These are in clear as well, but make no connection that leaves the machine.
  return grpc::CompositeChannelCredentials(
      grpc::experimental::LocalCredentials(LOCAL_TCP),
      grpc::experimental::MetadataCredentialsFromPlugin(
          std::make_unique<TokenPlugin>(options.token), GRPC_SECURITY_NONE));
}

}  // namespace stepcast::client
