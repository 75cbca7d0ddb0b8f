// The way of a Client to the service: its methods, one generic call for all unary ones, and the
// streams.
#pragma once

#include <google/protobuf/descriptor.h>
#include <google/protobuf/message.h>

#include <chrono>
#include <string>
#include <string_view>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "client/src/byte_stream.h"
#include "google/longrunning/operations.pb.h"

#include "stepcast/client_options.h"
#include "stepcast/v1/prediction_service.pb.h"
#include "stepcast/v1/profile_service.pb.h"

namespace stepcast::client {

// The unary methods of the service are found by the messages that they take: the contract is the
// only table of them.

// The class of a method by its retries: one whose request has a request_id may be repeated under
// it, a deletion never, and any other changes nothing, or the same again.
enum class Retry {
  kNever,        // a repetition would report an error for a success
  kByRequestId,  // with a request_id, under which the service acts once
  kAlways,       // it changes nothing, or the same again
};

struct Method {
  std::string path;  // as on the wire: /package.Service/Method
  Retry retry;
  const google::protobuf::Descriptor* reply;
};

// The method with a request of that type. REQUIRES: the contract has one.
const Method& MethodOf(const google::protobuf::Descriptor& request);
template <typename Request>
const Method& MethodFor() {
  return MethodOf(*Request::descriptor());
}

// The methods of profiles, predictions and jobs, in the order of the contract.
std::vector<Method> UnaryMethods();

// The time limit and the retries in force for one call.
struct CallTerms {
  std::chrono::nanoseconds timeout{0};
  RetryPolicy retry;
};

inline CallTerms TermsOf(const ClientOptions& client, const CallOptions& call) {
  return {.timeout = call.timeout.value_or(client.timeout),
          .retry = call.retry.value_or(client.retry)};
}

// A function that takes the next bytes of a stream. Not OK: no more are wanted, and why.
using TakeChunk = absl::FunctionRef<absl::Status(std::string_view chunk)>;

// The way of a Client to the service: one generic call for all unary methods, and the streams.
//
// Implementations: over gRPC with retries (RemoteConnection), and the command line's own without a
// server (client/cli/local_connection.h).
// Threads: safe; any number of calls at once. Calls block.
// Failure: the canonical code, with the details of the service as payloads (error_details.h).
class Connection {
 public:
  virtual ~Connection() = default;

  // REQUIRES: request and response are of the method's types.
  virtual absl::Status Call(const Method& method, const google::protobuf::Message& request,
                            google::protobuf::Message& response, const CallTerms& terms) = 0;

  virtual absl::StatusOr<v1::Profile> UploadProfile(const v1::UploadProfileRequest::Header& header,
                                                    std::string_view bytes,
                                                    const CallTerms& terms) = 0;
  virtual absl::StatusOr<v1::ImportProfileResponse> ImportProfile(
      const v1::ImportProfileRequest::Header& header, const ImportStreams& streams,
      const CallTerms& terms) = 0;
  // Hands every chunk to `take`; its failure ends the call.
  virtual absl::Status GenerateTrace(const v1::GenerateTraceRequest& request, TakeChunk take,
                                     const CallTerms& terms) = 0;
  // Returns the operation once it is done.
  virtual absl::StatusOr<google::longrunning::Operation> AwaitOperation(const std::string& name,
                                                                        const CallTerms& terms) = 0;

  // Ends every Call under way soon, and every later one at once, with CANCELLED. Of connections
  // whose calls wait for nobody: nothing.
  virtual void CancelCalls() {}
};

// The call of the method that takes the request. REQUIRES: there is one, and the response is of its
// type.
inline absl::Status CallMethod(Connection& connection, const google::protobuf::Message& request,
                               google::protobuf::Message& response, const CallTerms& terms) {
  return connection.Call(MethodOf(*request.GetDescriptor()), request, response, terms);
}

// The same with a response of its own.
template <typename Response>
absl::StatusOr<Response> CallFor(Connection& connection, const google::protobuf::Message& request,
                                 const CallTerms& terms) {
  absl::StatusOr<Response> response{Response()};
  const absl::Status status = CallMethod(connection, request, *response, terms);
  if (!status.ok()) return status;
  return response;
}

}  // namespace stepcast::client
