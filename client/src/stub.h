// One attempt of each call of the service.
//
// Implementations: GrpcStub, and fakes in tests.
// Threads: safe; any number of calls at once. Calls block, for `timeout` at most.
// Failure: the canonical code, with the details of the service as payloads (error_details.h).
#pragma once

#include <chrono>
#include <string_view>

#include "client/src/connection.h"

namespace stepcast::client {

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

  // As of Connection.
  virtual void CancelCalls() {}
};

}  // namespace stepcast::client
