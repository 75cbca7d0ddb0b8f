// A Stub that answers from a script.
#pragma once

#include <google/protobuf/descriptor.h>

#include <deque>
#include <functional>
#include <string>
#include <string_view>
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

  absl::Status Call(const Method& method, const google::protobuf::Message& request,
                    google::protobuf::Message& response, Timeout timeout) override {
    const std::string_view path = method.path;
    const std::string name(path.substr(path.rfind('/') + 1));
    if (const auto* wait = dynamic_cast<const google::longrunning::WaitOperationRequest*>(&request))
      NoteWait(*wait);
    absl::Status status = Next(name, RequestIdOf(request), timeout);
    if (!status.ok()) return status;
    if (auto* const operation = dynamic_cast<google::longrunning::Operation*>(&response)) {
      operation->set_done(name == "StartJob" || script_.open_for-- <= 0);
    }
    if (const auto* list =
            dynamic_cast<const google::longrunning::ListOperationsRequest*>(&request);
        list != nullptr && !script_.page_tokens.empty())
      FillPage(*list, static_cast<google::longrunning::ListOperationsResponse&>(response));
    return status;
  }
  absl::StatusOr<v1::Profile> UploadProfile(const v1::UploadProfileRequest::Header& header,
                                            std::string_view, Timeout timeout) override {
    const absl::Status status = Next("UploadProfile", header.request_id(), timeout);
    if (!status.ok()) return status;
    return v1::Profile();
  }
  absl::StatusOr<v1::ImportProfileResponse> ImportProfile(
      const v1::ImportProfileRequest::Header& header, const ImportStreams&,
      Timeout timeout) override {
    const absl::Status status = Next("ImportProfile", header.request_id(), timeout);
    if (!status.ok()) return status;
    return v1::ImportProfileResponse();
  }
  // Hands on the script's chunks before it ends with the script's status.
  absl::Status GenerateTrace(const v1::GenerateTraceRequest&, TakeChunk take,
                             Timeout timeout) override {
    for (const std::string& chunk : script_.chunks) {
      if (absl::Status taken = take(chunk); !taken.ok()) return taken;
    }
    return Next("GenerateTrace", "", timeout);
  }

 private:
  static std::string RequestIdOf(const google::protobuf::Message& request) {
    const auto* const field = request.GetDescriptor()->FindFieldByName("request_id");
    return field == nullptr ? "" : request.GetReflection()->GetString(request, field);
  }

  absl::Status Next(const std::string& method, const std::string& request_id, Timeout timeout) {
    script_.attempts.push_back({.method = method, .request_id = request_id, .timeout = timeout});
    if (script_.statuses.empty()) return absl::OkStatus();
    absl::Status status = script_.statuses.front();
    script_.statuses.pop_front();
    return status;
  }

  void NoteWait(const google::longrunning::WaitOperationRequest& request) {
    script_.waits.emplace_back(request.timeout().seconds());
    if (script_.on_wait) script_.on_wait();
  }

  void FillPage(const google::longrunning::ListOperationsRequest& request,
                google::longrunning::ListOperationsResponse& page) {
    page.add_operations()->set_name("operations/after-" + request.page_token());
    page.set_next_page_token(script_.page_tokens.front());
    script_.page_tokens.pop_front();
  }

  Script& script_;
};

}  // namespace stepcast::client
