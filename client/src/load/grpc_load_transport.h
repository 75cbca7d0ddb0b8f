// The LoadTransport over gRPC, made to cost little: requests are bytes already, replies are not
// parsed, one thread hears all ends.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "client/src/load/load_transport.h"
#include "client/src/load/prepared_call.h"

#include "stepcast/client_options.h"

namespace stepcast::client {

struct GrpcLoadOptions {
  ClientOptions client;  // of it the server and max_reply_bytes; nothing is retried
  int connections = 1;   // calls are spread over them evenly
  std::chrono::nanoseconds deadline = std::chrono::seconds(10);  // of each call
  uint32_t calls_max = 65'536;
};

class GrpcLoadTransport : public LoadTransport {
 public:
  // Makes one call and reads its reply, at most for the deadline. Errors: the service's, with its
  // details; DATA_LOSS for a reply that is no answer.
  virtual absl::Status Check(const PreparedCall& call) = 0;
};

// `questions` is copied. REQUIRES: it has a call.
std::unique_ptr<GrpcLoadTransport> MakeGrpcLoadTransport(const GrpcLoadOptions& options,
                                                         LoadQuestions questions);

}  // namespace stepcast::client
