// A call as it will be sent many times: its method, its request in bytes, and how to tell whether a
// reply answers it.
//
// Requests differ by their seed only, which is put behind the bytes they share: of two values of a
// field Protobuf takes the later one. So to ask another question costs no encoding of the profile,
// however many there are.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"

#include "stepcast/v1/order.pb.h"
#include "stepcast/v1/prediction.pb.h"
#include "stepcast/v1/recommendation.pb.h"

namespace stepcast::client {

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

}  // namespace stepcast::client
