// Questions to a server about one recorded job, under load.
//
// Throws std::runtime_error where the server refuses what it is to answer.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "client/src/load/grpc_load_transport.h"
#include "client/src/load/load_run.h"

namespace stepcast::bench {

// Stores the job; gives its name.
std::string StoreRecordedJob(const std::string& address);

// One prediction that the server remembers once it was made.
client::LoadQuestions CachedQuestion(const std::string& profile);
// Predictions with seeds of their own, so that each is simulated: five replications of so many
// steps of four workers.
client::LoadQuestions UncachedQuestions(const std::string& profile, int32_t steps);
// The empty call.
client::LoadQuestions EmptyCall();

class ServerLoad {
 public:
  // Asks the first question once and checks the answer.
  ServerLoad(const std::string& address, const client::LoadQuestions& questions,
             std::chrono::nanoseconds deadline = std::chrono::seconds(60));

  // Each run goes on with the questions where the last one ended.
  client::LoadResult Run(const client::LoadPlan& plan);
  // The same; throws where a call fails.
  client::LoadResult RunAnswered(const client::LoadPlan& plan);

 private:
  std::unique_ptr<client::GrpcLoadTransport> transport_;
  uint64_t next_question_ = 0;
};

}  // namespace stepcast::bench
