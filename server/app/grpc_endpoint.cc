#include "server/app/grpc_endpoint.h"

#include <google/protobuf/descriptor.h>
#include <grpcpp/security/server_credentials.h>
#include <grpcpp/server_builder.h>

#include <algorithm>
#include <chrono>
#include <limits>
#include <set>
#include <utility>

#include "google/longrunning/operations.pb.h"
#include "grpc/health/v1/health.pb.h"
#include "grpc/reflection/v1/reflection.pb.h"
#include "grpc/reflection/v1alpha/reflection.pb.h"

#include "server/app/listen_address.h"
#include "server/metrics/call_metrics.h"
#include "stepcast/v1/admin_service.pb.h"
#include "stepcast/v1/job_service.pb.h"
#include "stepcast/v1/prediction_service.pb.h"
#include "stepcast/v1/profile_service.pb.h"

namespace stepcast::server {

namespace {

const char* TypeOf(const google::protobuf::MethodDescriptor& method) {
  if (method.client_streaming()) return method.server_streaming() ? "bidi_stream" : "client_stream";
  return method.server_streaming() ? "server_stream" : "unary";
}

void AddServices(const google::protobuf::FileDescriptor& file, std::vector<MethodLabels>& methods) {
  for (int i = 0; i < file.service_count(); ++i) {
    const google::protobuf::ServiceDescriptor& service = *file.service(i);
    for (int j = 0; j < service.method_count(); ++j) {
      methods.push_back({.service = service.full_name(),
                         .method = service.method(j)->name(),
                         .type = TypeOf(*service.method(j))});
    }
  }
}

}  // namespace

std::vector<MethodLabels> ServedMethods() {
  std::vector<MethodLabels> methods;
  AddServices(*v1::CreateProfileRequest::descriptor()->file(), methods);
  AddServices(*v1::GenerateTraceRequest::descriptor()->file(), methods);
  AddServices(*v1::StartJobRequest::descriptor()->file(), methods);
  AddServices(*google::longrunning::Operation::descriptor()->file(), methods);
  AddServices(*v1::PingRequest::descriptor()->file(), methods);
  AddServices(*grpc::health::v1::HealthCheckRequest::descriptor()->file(), methods);
  AddServices(*grpc::reflection::v1::ServerReflectionRequest::descriptor()->file(), methods);
  AddServices(*grpc::reflection::v1alpha::ServerReflectionRequest::descriptor()->file(), methods);
  return methods;
}

std::vector<std::string> AllServices() {
  std::set<std::string> services;
  for (MethodLabels& method : ServedMethods()) services.insert(std::move(method.service));
  return {services.begin(), services.end()};
}

std::vector<std::string> ServedServices() {
  return {v1::CreateProfileRequest::descriptor()->file()->service(0)->full_name(),
          v1::GenerateTraceRequest::descriptor()->file()->service(0)->full_name(),
          v1::StartJobRequest::descriptor()->file()->service(0)->full_name(),
          google::longrunning::Operation::descriptor()->file()->service(0)->full_name(),
          v1::PingRequest::descriptor()->file()->service(0)->full_name()};
}

namespace {

void SetLimits(grpc::ServerBuilder& builder, int64_t max_message_bytes) {
  // Above the limit proper, so that most messages over it are refused with details; what is over
  // this, gRPC refuses by itself.
  const int64_t hard_limit =
      std::min<int64_t>(2 * max_message_bytes, std::numeric_limits<int>::max());
  builder.SetMaxReceiveMessageSize(static_cast<int>(hard_limit));
  builder.SetMaxSendMessageSize(-1);
}

// Refuses compressed messages: what gRPC inflates, it inflates whole before it looks at the size:
// half a megabyte becomes half a gigabyte.
void RefuseCompression(grpc::ServerBuilder& builder) {
  builder.SetCompressionAlgorithmSupportStatus(GRPC_COMPRESS_GZIP, false);
  builder.SetCompressionAlgorithmSupportStatus(GRPC_COMPRESS_DEFLATE, false);
}

void SetConnectionLimits(grpc::ServerBuilder& builder, const ConnectionOptions& options) {
  constexpr double kMsPerSecond = 1000;
  constexpr int kHandshakeTimeoutMs = 20'000;  // from accepting to the first HTTP/2 settings
  builder.AddChannelArgument(GRPC_ARG_SERVER_HANDSHAKE_TIMEOUT_MS, kHandshakeTimeoutMs);
  builder.AddChannelArgument(GRPC_ARG_MAX_CONCURRENT_STREAMS, options.max_calls);
  if (options.max_age_seconds == 0) return;
  builder.AddChannelArgument(GRPC_ARG_MAX_CONNECTION_AGE_MS,
                             static_cast<int>(options.max_age_seconds * kMsPerSecond));
  builder.AddChannelArgument(GRPC_ARG_MAX_CONNECTION_AGE_GRACE_MS,
                             static_cast<int>(options.max_age_grace_seconds * kMsPerSecond));
}

void SetChannelArguments(grpc::ServerBuilder& builder) {
  constexpr int kKeepaliveTimeMs = 60'000;  // finds connections that are dead but were never
                                            // closed, and with them abandoned calls
  constexpr int kKeepaliveTimeoutMs = 20'000;
  constexpr int kMinPingIntervalMs = 10'000;
  // Otherwise two servers share a port, silently.
  builder.AddChannelArgument(GRPC_ARG_ALLOW_REUSEPORT, 0);
  builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_TIME_MS, kKeepaliveTimeMs);
  builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, kKeepaliveTimeoutMs);
  builder.AddChannelArgument(GRPC_ARG_HTTP2_MIN_RECV_PING_INTERVAL_WITHOUT_DATA_MS,
                             kMinPingIntervalMs);
  builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_PERMIT_WITHOUT_CALLS, 1);
}

}  // namespace

absl::StatusOr<std::unique_ptr<GrpcEndpoint>> GrpcEndpoint::Start(
    const GrpcEndpointOptions& options, CallGate& gate, CallMetrics& metrics, const Clock& clock) {
  std::unique_ptr<GrpcEndpoint> endpoint(new GrpcEndpoint(gate));
  grpc::ServerBuilder builder;
  builder.AddListeningPort(options.address, options.credentials, &endpoint->port_);
  SetLimits(builder, options.max_message_bytes);
  SetChannelArguments(builder);
  SetConnectionLimits(builder, options.connections);
  RefuseCompression(builder);
  for (grpc::Service* service : options.services) builder.RegisterService(service);
  builder.RegisterCallbackGenericService(&endpoint->unknown_methods_);
  std::vector<std::unique_ptr<grpc::experimental::ServerInterceptorFactoryInterface>> interceptors;
  interceptors.push_back(MakeCallInterceptorFactory(metrics, clock));
  builder.experimental().SetInterceptorCreators(std::move(interceptors));
  endpoint->server_ = builder.BuildAndStart();
  if (endpoint->server_ == nullptr || endpoint->port_ == 0) return ListenError(options.address);
  return endpoint;
}

std::shared_ptr<grpc::Channel> GrpcEndpoint::InProcessChannel() {
  grpc::ChannelArguments arguments;
  arguments.SetMaxReceiveMessageSize(-1);
  return server_->InProcessChannel(arguments);
}

void GrpcEndpoint::Shutdown(double timeout_seconds) {
  const auto timeout = std::chrono::duration_cast<std::chrono::system_clock::duration>(
      std::chrono::duration<double>(timeout_seconds));
  server_->Shutdown(std::chrono::system_clock::now() + timeout);
}

}  // namespace stepcast::server
