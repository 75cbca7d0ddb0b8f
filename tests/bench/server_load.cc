#include "tests/bench/server_load.h"

#include <stdexcept>

#include "absl/status/status.h"

#include "stepcast/client.h"

namespace stepcast::bench {

namespace {

// More than any run asks.
constexpr uint64_t kManyQuestions = 1'000'000'000;

void MustBeOk(const absl::Status& status) {
  if (!status.ok()) throw std::runtime_error(status.ToString());
}

v1::PredictThroughputRequest ForFourWorkers(const std::string& profile) {
  v1::PredictThroughputRequest request;
  request.set_profile(profile);
  request.add_worker_counts(4);
  return request;
}

}  // namespace

std::string StoreRecordedJob(const std::string& address) {
  const absl::StatusOr<v1::Profile> stored =
      client::Client({.server = address}).UploadProfileFile(STEPCAST_BENCH_PROFILE);
  MustBeOk(stored.status());
  return stored->name();
}

client::LoadQuestions CachedQuestion(const std::string& profile) {
  return {.calls = {client::Prepare(ForFourWorkers(profile))}};
}

client::LoadQuestions UncachedQuestions(const std::string& profile, int32_t steps) {
  v1::PredictThroughputRequest request = ForFourWorkers(profile);
  request.mutable_options()->set_steps_per_worker(steps);
  request.mutable_options()->set_replications(5);
  // The cached question's seed is 1.
  return {.calls = {client::Prepare(request)}, .vary = kManyQuestions, .first_seed = 2};
}

client::LoadQuestions EmptyCall() { return {.calls = {client::PreparePing()}}; }

ServerLoad::ServerLoad(const std::string& address, const client::LoadQuestions& questions,
                       std::chrono::nanoseconds deadline)
    : transport_(client::MakeGrpcLoadTransport(
          {.client = {.server = address}, .deadline = deadline}, questions)) {
  MustBeOk(transport_->Check(questions.calls.front()));
  next_question_ = 1;
}

client::LoadResult ServerLoad::Run(const client::LoadPlan& plan) {
  client::LoadPlan next = plan;
  next.first_question = next_question_;
  client::SteadyLoadClock clock;
  client::LoadResult result = RunLoad(next, clock, *transport_);
  next_question_ = result.next_question;
  return result;
}

client::LoadResult ServerLoad::RunAnswered(const client::LoadPlan& plan) {
  client::LoadResult result = Run(plan);
  for (size_t code = 1; code < result.all_codes.size(); ++code) {
    if (result.all_codes[code] == 0) continue;
    throw std::runtime_error("the server answered " + std::to_string(result.all_codes[code]) +
                             " calls with " +
                             absl::StatusCodeToString(static_cast<absl::StatusCode>(code)));
  }
  if (result.latency.count() == 0) throw std::runtime_error("the server answered no call");
  return result;
}

}  // namespace stepcast::bench
