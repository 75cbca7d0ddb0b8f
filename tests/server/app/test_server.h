// A real server in this process, over loopback, and a client's stubs for it.
#pragma once

#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>

#include <condition_variable>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "google/rpc/error_details.pb.h"
#include "google/rpc/status.pb.h"

#include "server/app/server.h"
#include "server/jobs/job_pool.h"
#include "stepcast/v1/prediction_service.grpc.pb.h"
#include "stepcast/v1/profile_service.grpc.pb.h"

namespace stepcast::server {

// On any free port, with an empty store in memory and without pages or log.
ServerOptions TestOptions();

// Waits for what the pool for simulations does.
class JobWatch final : public JobObserver {
 public:
  void OnQueued(size_t queue_length) override;
  void OnRefused() override;
  void OnDropped() override {}
  void OnStarted(size_t queue_length, double wait_seconds) override;
  void OnDone(double run_seconds) override;

  int Started();
  // Each returns when so many jobs, since the start, have been queued, started or done.
  void WaitQueued(int count);
  void WaitStarted(int count);
  void WaitDone(int count);

 private:
  void Count(int& counter);
  void Wait(const int& counter, int count);

  std::mutex mutex_;
  std::condition_variable changed_;
  int queued_ = 0;
  int started_ = 0;
  int done_ = 0;
};

class TestServer {
 public:
  explicit TestServer(const ServerOptions& options = TestOptions());

  Server& server() { return *server_; }
  std::shared_ptr<grpc::Channel> channel() { return channel_; }
  v1::ProfileService::Stub& profiles() { return *profiles_; }
  v1::PredictionService::Stub& predictions() { return *predictions_; }

  // Stores a profile and returns its name.
  std::string Store(const v1::Profile& profile, const std::string& id = "");

 private:
  std::unique_ptr<Server> server_;
  std::shared_ptr<grpc::Channel> channel_;
  std::unique_ptr<v1::ProfileService::Stub> profiles_;
  std::unique_ptr<v1::PredictionService::Stub> predictions_;
};

// The value of one series ("name" or "name{labels}") of a server's metrics; empty: there is none.
std::string SampleOf(TestServer& server, const std::string& series);

// A unary call of any method ("/service/method") with any bytes.
grpc::Status CallRaw(TestServer& server, const std::string& method, const std::string& bytes);

// One detail of an error; none: it has none of the kind.
template <typename Detail>
std::optional<Detail> DetailOf(const grpc::Status& status) {
  google::rpc::Status wire;
  if (!wire.ParseFromString(status.error_details())) return std::nullopt;
  for (const google::protobuf::Any& any : wire.details()) {
    Detail detail;
    if (any.UnpackTo(&detail)) return detail;
  }
  return std::nullopt;
}

// The reason in an error's ErrorInfo; empty, and a failed test, where it has none or the domain is
// not ours.
std::string ReasonOf(const grpc::Status& status);
// The paths in an error's BadRequest.
std::vector<std::string> FieldsOf(const grpc::Status& status);

// A prediction of the profile that takes hours.
// With other seeds they are not equal.
v1::PredictThroughputRequest EndlessRequest(const std::string& profile, uint64_t seed = 1);

}  // namespace stepcast::server
