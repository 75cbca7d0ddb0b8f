// The calls of a load as they will be sent many times, and what carries them over gRPC.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "client/src/load/load_run.h"

#include "stepcast/client_options.h"
#include "stepcast/v1/order.pb.h"
#include "stepcast/v1/prediction.pb.h"
#include "stepcast/v1/recommendation.pb.h"

namespace stepcast::client {

// A call as it will be sent many times: its method, its request in bytes, and how to tell whether a
// reply answers it.
//
// Requests differ by their seed only, which is put behind the bytes they share: of two values of a
// field Protobuf takes the later one. So to ask another question costs no encoding of the profile,
// however many there are.
struct PreparedCall {
  std::string method;   // "/stepcast.v1.AdminService/Ping"
  std::string request;  // without a seed of its own where `seed` is
  std::string (*seed)(uint64_t) =
      nullptr;  // what to put behind the request; null: there is but one question
  // The reason why the bytes of a reply are no answer, if so.
  absl::Status (*check)(std::string_view reply) = nullptr;
};

// The empty call of AdminService.
PreparedCall PreparePing();
PreparedCall Prepare(const v1::PredictThroughputRequest& request);
PreparedCall Prepare(const v1::RecommendWorkersRequest& request);
PreparedCall Prepare(const v1::OptimizeOrderRequest& request);

// The questions that numbers stand for.
struct LoadQuestions {
  std::vector<PreparedCall> calls;  // asked in turn
  uint64_t vary = 1;                // so many questions of each that has a seed
  uint64_t first_seed = 1;

  const PreparedCall& CallOf(uint64_t question) const { return calls[question % calls.size()]; }
  uint64_t SeedOf(uint64_t question) const { return first_seed + question / calls.size() % vary; }
};

struct GrpcLoadOptions {
  ClientOptions client;  // of it the server and max_reply_bytes; nothing is retried
  int connections = 1;   // calls are spread over them evenly
  std::chrono::nanoseconds deadline = std::chrono::seconds(10);  // of each call
  uint32_t calls_max = 65'536;
};

// The LoadTransport over gRPC, made to cost little: requests are bytes already, replies are not
// parsed, one thread hears all ends.
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
