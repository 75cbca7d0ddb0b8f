#include "tests/server/app/test_server.h"

#include <grpcpp/generic/generic_stub.h>

#include <sstream>
#include <stdexcept>
#include <string>
#include <utility>

#include "server/app/process.h"
#include "tests/support/eventually.h"

namespace stepcast::server {

ServerOptions TestOptions() {
  ServerOptions options;
  options.listen = "127.0.0.1:0";
  options.http_listen = "";
  options.store = StoreKind::kMemory;
  options.log.level = LogLevel::kOff;
  return options;
}

void JobWatch::OnQueued(size_t /*queue_length*/) { Count(queued_); }

void JobWatch::OnRefused() {}

void JobWatch::OnStarted(size_t /*queue_length*/, double /*wait_seconds*/) { Count(started_); }

void JobWatch::OnDone(double /*run_seconds*/) { Count(done_); }

int JobWatch::Started() {
  const std::lock_guard<std::mutex> lock(mutex_);
  return started_;
}

void JobWatch::WaitQueued(int count) { Wait(queued_, count); }

void JobWatch::WaitStarted(int count) { Wait(started_, count); }

void JobWatch::WaitDone(int count) { Wait(done_, count); }

void JobWatch::Count(int& counter) {
  const std::lock_guard<std::mutex> lock(mutex_);
  ++counter;
  changed_.notify_all();
}

void JobWatch::Wait(const int& counter, int count) {
  std::unique_lock<std::mutex> lock(mutex_);
  if (!Eventually(changed_, lock, [&] { return counter >= count; })) {
    throw std::runtime_error("job " + std::to_string(count) + " did not come, but " +
                             std::to_string(counter));
  }
}

TestServer::TestServer(const ServerOptions& options) {
  SilenceLibraryLogs();
  absl::StatusOr<std::unique_ptr<Server>> server = Server::Start(options);
  EXPECT_TRUE(server.ok()) << server.status();
  server_ = *std::move(server);
  channel_ = grpc::CreateChannel(server_->grpc_address(), grpc::InsecureChannelCredentials());
  profiles_ = v1::ProfileService::NewStub(channel_);
  predictions_ = v1::PredictionService::NewStub(channel_);
}

std::string TestServer::Store(const v1::Profile& profile, const std::string& id) {
  grpc::ClientContext context;
  v1::CreateProfileRequest request;
  *request.mutable_profile() = profile;
  request.set_profile_id(id);
  v1::Profile reply;
  const grpc::Status status = profiles_->CreateProfile(&context, request, &reply);
  EXPECT_TRUE(status.ok()) << status.error_message();
  return reply.name();
}

std::string SampleOf(TestServer& server, const std::string& series) {
  std::istringstream lines(server.server().MetricsText());
  for (std::string line; std::getline(lines, line);) {
    if (line.rfind(series + " ", 0) == 0) return line.substr(series.size() + 1);
  }
  return "";
}

grpc::Status CallRaw(TestServer& server, const std::string& method, const std::string& bytes) {
  grpc::GenericStub stub(server.channel());
  grpc::ClientContext context;
  grpc::CompletionQueue queue;
  const grpc::Slice slice(bytes);
  const auto call = stub.PrepareUnaryCall(&context, method, grpc::ByteBuffer(&slice, 1), &queue);
  call->StartCall();
  grpc::ByteBuffer reply;
  grpc::Status status;
  call->Finish(&reply, &status, nullptr);
  void* tag = nullptr;
  bool ok = false;
  queue.Next(&tag, &ok);
  return status;
}

std::string ReasonOf(const grpc::Status& status) {
  const auto info = DetailOf<google::rpc::ErrorInfo>(status);
  EXPECT_TRUE(info.has_value()) << status.error_code()
                                << " without ErrorInfo: " << status.error_message();
  if (!info) return "";
  EXPECT_EQ(info->domain(), "stepcast");
  return info->reason();
}

std::vector<std::string> FieldsOf(const grpc::Status& status) {
  std::vector<std::string> fields;
  const auto bad_request = DetailOf<google::rpc::BadRequest>(status);
  if (!bad_request) return fields;
  for (const auto& violation : bad_request->field_violations()) fields.push_back(violation.field());
  return fields;
}

v1::PredictThroughputRequest EndlessRequest(const std::string& profile, uint64_t seed) {
  constexpr int kWorkers = 4;
  constexpr int kMostSteps = 10'000'000;
  v1::PredictThroughputRequest request;
  request.set_profile(profile);
  request.add_worker_counts(kWorkers);
  request.mutable_options()->set_steps_per_worker(kMostSteps);
  request.mutable_options()->set_replications(1000);
  request.mutable_options()->set_seed(seed);
  return request;
}

}  // namespace stepcast::server
