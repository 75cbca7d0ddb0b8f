// A worker of the testbed: step after step it downloads all parameters, computes by timed sleep,
// and uploads all gradients, as its job says.
//
// One remote call a tensor. All downloads of a step are requested at once; a computation runs when
// what it waits for has arrived, in order of readiness, one at a time, from the planned end of the
// one before, so that waking late does not add up; a gradient is sent when its computation has
// ended. A step is over when every update is acknowledged; the next one begins then. Threads: one
// computes, one sends, gRPC's receive.
#pragma once

#include <grpcpp/generic/generic_stub.h>

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <queue>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "tests/testbed/node/job.h"
#include "tests/testbed/node/messages.h"
#include "tests/testbed/node/step_record.h"

namespace stepcast::testbed {

struct WorkerOptions {
  int32_t worker = 0;
  std::vector<std::string> servers;  // addresses, by parameter server
  int64_t start_offset_ns = 0;       // of the first step, from the run's origin
  int64_t length_ns = 0;             // no step begins so long after the origin
  int32_t most_steps = 1'000'000;
  uint64_t seed = 1;
  double variation =
      0.05;  // standard deviation of a step's speed, and of an operation's, as a share
};

class Worker {
 public:
  Worker(const Job& job, WorkerOptions options);

  // Connects; false where a server does not answer in time.
  bool Connect();
  // Transfers all tensors once, so that connections have found their pace. Throws as Run.
  void WarmUp();
  // Returns the steps. Throws std::runtime_error where a call failed.
  std::vector<StepRecord> Run(int64_t origin_ns);

 private:
  // Ready at, operation: earliest first, and in graph order.
  using ReadyQueue = std::priority_queue<std::pair<int64_t, int32_t>,
                                         std::vector<std::pair<int64_t, int32_t>>, std::greater<>>;

  void BeginStep(int64_t now_ns);
  void VaryDurations();
  void Compute();
  void Send();
  // Each calls done when its last byte has arrived, from a thread of gRPC's; the upload's reply is
  // empty where the call failed.
  using Downloaded = std::function<void(const grpc::Status& status)>;
  void Download(int32_t operation, Downloaded done);
  using Uploaded = std::function<void(const grpc::Status& status, const UploadReply& reply)>;
  void Upload(int32_t operation, int64_t update_ns, Uploaded done);
  void OnDownloaded(int32_t operation, const grpc::Status& status);
  void OnUploaded(int32_t operation, const grpc::Status& status, const UploadReply& reply);
  // The operation ended at that time; what it was the last to be waited for by becomes ready.
  // REQUIRES: mutex_ is held.
  void Done(int32_t operation, int64_t at_ns);
  int32_t UpdateAfter(int32_t upload) const;

  const Job& job_;
  const WorkerOptions options_;
  std::vector<std::unique_ptr<grpc::GenericStub>> stubs_;
  std::vector<std::shared_ptr<grpc::Channel>> channels_;
  std::mt19937_64 random_;

  std::mutex mutex_;
  std::condition_variable computation_ready_;
  std::condition_variable transfer_ready_;
  // All below are guarded by mutex_.
  std::vector<int64_t> durations_ns_;
  std::vector<int32_t> pending_;   // dependencies left, by operation
  std::vector<int64_t> ready_ns_;  // when the latest of those that are done was: a computation that
                                   // wakes late is noted late
  int32_t left_ = 0;               // operations of the step
  ReadyQueue computations_;
  std::deque<int32_t> transfers_;
  StepRecord step_;
  std::vector<StepRecord> steps_;
  std::string fault_;
  int64_t until_ns_ = 0;
  bool over_ = false;
};

}  // namespace stepcast::testbed
