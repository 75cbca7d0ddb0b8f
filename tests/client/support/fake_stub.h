// A Stub that answers from a script.
#pragma once

#include <deque>
#include <functional>
#include <string>
#include <vector>

#include "client/src/stub.h"

namespace stepcast::client {

// Every call notes its name, request_id and timeout, takes the next status of the script (OK where
// the script has ended), and replies with an empty message.
class FakeStub : public Stub {
 public:
  struct Attempt {
    std::string method;
    std::string request_id;
    std::chrono::nanoseconds timeout{0};
  };
  // Outlives the stub, which a connection owns.
  struct Script {
    std::deque<absl::Status> statuses;
    std::vector<Attempt> attempts;
    std::vector<std::string> chunks;  // of every stream
    std::deque<std::string>
        page_tokens;   // the next one of each page of operations, each of which has one
    int open_for = 0;  // so many times an operation that is asked for is not done
    std::vector<std::chrono::seconds> waits;
    std::function<void()> on_wait;
  };

  explicit FakeStub(Script& script) : script_(script) {}

  absl::StatusOr<v1::Profile> CreateProfile(const v1::CreateProfileRequest& request,
                                            Timeout timeout) override {
    return Next<v1::Profile>("CreateProfile", request.request_id(), timeout);
  }
  absl::StatusOr<v1::Profile> UploadProfile(const v1::UploadProfileRequest::Header& header,
                                            std::string_view, Timeout timeout) override {
    return Next<v1::Profile>("UploadProfile", header.request_id(), timeout);
  }
  absl::StatusOr<v1::ImportProfileResponse> ImportProfile(
      const v1::ImportProfileRequest::Header& header, const ImportStreams&,
      Timeout timeout) override {
    return Next<v1::ImportProfileResponse>("ImportProfile", header.request_id(), timeout);
  }
  absl::StatusOr<v1::Profile> GetProfile(const v1::GetProfileRequest&, Timeout timeout) override {
    return Next<v1::Profile>("GetProfile", "", timeout);
  }
  absl::StatusOr<v1::ListProfilesResponse> ListProfiles(const v1::ListProfilesRequest&,
                                                        Timeout timeout) override {
    return Next<v1::ListProfilesResponse>("ListProfiles", "", timeout);
  }
  absl::Status DeleteProfile(const v1::DeleteProfileRequest&, Timeout timeout) override {
    return Next<v1::Profile>("DeleteProfile", "", timeout).status();
  }
  absl::StatusOr<v1::PredictThroughputResponse> PredictThroughput(
      const v1::PredictThroughputRequest&, Timeout timeout) override {
    return Next<v1::PredictThroughputResponse>("PredictThroughput", "", timeout);
  }
  absl::StatusOr<v1::RecommendWorkersResponse> RecommendWorkers(const v1::RecommendWorkersRequest&,
                                                                Timeout timeout) override {
    return Next<v1::RecommendWorkersResponse>("RecommendWorkers", "", timeout);
  }
  absl::StatusOr<v1::OptimizeOrderResponse> OptimizeOrder(const v1::OptimizeOrderRequest&,
                                                          Timeout timeout) override {
    return Next<v1::OptimizeOrderResponse>("OptimizeOrder", "", timeout);
  }
  absl::StatusOr<v1::AllocateWorkersResponse> AllocateWorkers(const v1::AllocateWorkersRequest&,
                                                              Timeout timeout) override {
    return Next<v1::AllocateWorkersResponse>("AllocateWorkers", "", timeout);
  }
  absl::StatusOr<v1::CompareModelsResponse> CompareModels(const v1::CompareModelsRequest&,
                                                          Timeout timeout) override {
    return Next<v1::CompareModelsResponse>("CompareModels", "", timeout);
  }
  absl::StatusOr<v1::FitParsingOverheadResponse> FitParsingOverhead(
      const v1::FitParsingOverheadRequest&, Timeout timeout) override {
    return Next<v1::FitParsingOverheadResponse>("FitParsingOverhead", "", timeout);
  }
  absl::StatusOr<google::longrunning::Operation> StartJob(const v1::StartJobRequest& request,
                                                          Timeout timeout) override {
    return Next<google::longrunning::Operation>("StartJob", request.request_id(), timeout);
  }
  absl::StatusOr<google::longrunning::Operation> GetOperation(
      const google::longrunning::GetOperationRequest&, Timeout timeout) override {
    return NextOperation("GetOperation", timeout);
  }
  absl::StatusOr<google::longrunning::ListOperationsResponse> ListOperations(
      const google::longrunning::ListOperationsRequest& request, Timeout timeout) override {
    auto page = Next<google::longrunning::ListOperationsResponse>("ListOperations", "", timeout);
    if (!page.ok() || script_.page_tokens.empty()) return page;
    page->add_operations()->set_name("operations/after-" + request.page_token());
    page->set_next_page_token(script_.page_tokens.front());
    script_.page_tokens.pop_front();
    return page;
  }
  absl::StatusOr<google::longrunning::Operation> WaitOperation(
      const google::longrunning::WaitOperationRequest& request, Timeout timeout) override {
    script_.waits.emplace_back(request.timeout().seconds());
    if (script_.on_wait) script_.on_wait();
    return NextOperation("WaitOperation", timeout);
  }
  absl::Status CancelOperation(const google::longrunning::CancelOperationRequest&,
                               Timeout timeout) override {
    return Next<google::longrunning::Operation>("CancelOperation", "", timeout).status();
  }
  absl::Status DeleteOperation(const google::longrunning::DeleteOperationRequest&,
                               Timeout timeout) override {
    return Next<google::longrunning::Operation>("DeleteOperation", "", timeout).status();
  }
  // Hands on the script's chunks before it ends with the script's status.
  absl::Status GenerateTrace(const v1::GenerateTraceRequest&, TakeChunk take,
                             Timeout timeout) override {
    for (const std::string& chunk : script_.chunks) {
      if (absl::Status taken = take(chunk); !taken.ok()) return taken;
    }
    return Next<v1::GenerateTraceResponse>("GenerateTrace", "", timeout).status();
  }

 private:
  template <typename Reply>
  absl::StatusOr<Reply> Next(const char* method, const std::string& request_id, Timeout timeout) {
    script_.attempts.push_back({.method = method, .request_id = request_id, .timeout = timeout});
    if (script_.statuses.empty()) return Reply();
    const absl::Status status = script_.statuses.front();
    script_.statuses.pop_front();
    if (!status.ok()) return status;
    return Reply();
  }

  absl::StatusOr<google::longrunning::Operation> NextOperation(const char* method,
                                                               Timeout timeout) {
    absl::StatusOr<google::longrunning::Operation> operation =
        Next<google::longrunning::Operation>(method, "", timeout);
    if (operation.ok()) operation->set_done(script_.open_for-- <= 0);
    return operation;
  }

  Script& script_;
};

}  // namespace stepcast::client
