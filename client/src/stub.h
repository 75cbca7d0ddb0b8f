// One attempt of each call of the service, and how it is made over gRPC: with what credentials, and
// in what time to connect.
#pragma once

#include <chrono>
#include <memory>
#include <string_view>

#include "client/src/connection.h"

#include "stepcast/client_options.h"

namespace grpc {
class ChannelCredentials;
}  // namespace grpc

namespace stepcast::client {

// One attempt of each call of the service.
//
// Implementations: GrpcStub, and fakes in tests.
// Threads: safe; any number of calls at once. Calls block, for `timeout` at most.
// Failure: the canonical code, with the details of the service as payloads (error_details.h).
class Stub {
 public:
  using Timeout = std::chrono::nanoseconds;

  virtual ~Stub() = default;

  // REQUIRES: request and response are of the method's types.
  virtual absl::Status Call(const Method& method, const google::protobuf::Message& request,
                            google::protobuf::Message& response, Timeout timeout) = 0;

  virtual absl::StatusOr<v1::Profile> UploadProfile(const v1::UploadProfileRequest::Header& header,
                                                    std::string_view bytes, Timeout timeout) = 0;
  virtual absl::StatusOr<v1::ImportProfileResponse> ImportProfile(
      const v1::ImportProfileRequest::Header& header, const ImportStreams& streams,
      Timeout timeout) = 0;
  // Hands every chunk to `take`; its failure ends the call.
  virtual absl::Status GenerateTrace(const v1::GenerateTraceRequest& request, TakeChunk take,
                                     Timeout timeout) = 0;

  // See Connection.
  virtual void CancelCalls() {}
};

// Connects with the first call, and again after a loss.
std::unique_ptr<Stub> MakeGrpcStub(const ClientOptions& options);

// For gRPC's GRPC_ARG_MIN_RECONNECT_BACKOFF_MS, which is this, and no pause: an attempt that takes
// longer is given up. A handshake over a slow link, or with a server that is busy, takes seconds.
inline constexpr int kMaxConnectMs = 10'000;

bool UsesTls(const ClientCredentials& options);

// Over TLS if the options have roots, a certificate or ask for it; a token goes with every call. In
// clear a token goes to this machine only: calls to another fail with UNAVAILABLE, unsent.
std::shared_ptr<grpc::ChannelCredentials> ChannelCredentialsOf(const ClientCredentials& options);

}  // namespace stepcast::client
