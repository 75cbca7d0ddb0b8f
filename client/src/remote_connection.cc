#include "client/src/remote_connection.h"

#include <google/protobuf/descriptor.h>
#include <google/protobuf/util/time_util.h>

#include <algorithm>
#include <limits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "client/src/error_status.h"
#include "client/src/retry.h"

namespace stepcast::client {

namespace {

using google::protobuf::Message;
using std::chrono::nanoseconds;

Repeatable IfIdentified(const std::string& request_id) {
  return request_id.empty() ? Repeatable::kNo : Repeatable::kYes;
}

Repeatable RepeatableOf(const Method& method, const Message& request) {
  if (method.retry == Retry::kAlways) return Repeatable::kYes;
  const google::protobuf::FieldDescriptor* const id =
      method.retry == Retry::kByRequestId ? request.GetDescriptor()->FindFieldByName("request_id")
                                          : nullptr;
  return id == nullptr ? Repeatable::kNo
                       : IfIdentified(request.GetReflection()->GetString(request, id));
}

class RemoteConnection : public Connection {
 public:
  RemoteConnection(std::unique_ptr<Stub> stub, std::unique_ptr<RetryEnvironment> environment)
      : stub_(std::move(stub)), environment_(std::move(environment)) {}

  absl::Status Call(const Method& method, const Message& request, Message& response,
                    const CallTerms& terms) override {
    return RetryLoop(terms, RepeatableOf(method, request), *environment_, [&](nanoseconds timeout) {
      return stub_->Call(method, request, response, timeout);
    });
  }

  absl::StatusOr<v1::Profile> UploadProfile(const v1::UploadProfileRequest::Header& header,
                                            std::string_view bytes,
                                            const CallTerms& terms) override {
    return Run<v1::Profile>(terms, IfIdentified(header.request_id()), [&](nanoseconds timeout) {
      return stub_->UploadProfile(header, bytes, timeout);
    });
  }
  absl::StatusOr<v1::ImportProfileResponse> ImportProfile(
      const v1::ImportProfileRequest::Header& header, const ImportStreams& streams,
      const CallTerms& terms) override {
    return Run<v1::ImportProfileResponse>(
        terms, IfIdentified(header.request_id()),
        [&](nanoseconds timeout) { return stub_->ImportProfile(header, streams, timeout); });
  }

  // Repeatable only until something was handed on, which cannot be taken back.
  absl::Status GenerateTrace(const v1::GenerateTraceRequest& request, TakeChunk take,
                             const CallTerms& terms) override {
    bool begun = false;
    absl::Status status;
    const auto take_more = [&](std::string_view chunk) {
      begun = true;
      return take(chunk);
    };
    const absl::Status unbegun =
        RetryLoop(terms, Repeatable::kYes, *environment_, [&](nanoseconds timeout) {
          status = stub_->GenerateTrace(request, take_more, timeout);
          return begun ? absl::OkStatus() : status;
        });
    return begun ? status : unbegun;
  }

  absl::StatusOr<google::longrunning::Operation> AwaitOperation(const std::string& name,
                                                                const CallTerms& terms) override {
    return client::AwaitOperation(name, terms, *stub_, *environment_);
  }

  void CancelCalls() override { stub_->CancelCalls(); }

 private:
  template <typename Reply, typename Attempt>
  absl::StatusOr<Reply> Run(const CallTerms& terms, Repeatable repeatable, const Attempt& attempt) {
    absl::StatusOr<Reply> reply;
    absl::Status status = RetryLoop(terms, repeatable, *environment_, [&](nanoseconds timeout) {
      reply = attempt(timeout);
      return reply.status();
    });
    if (!status.ok()) return status;
    return reply;
  }

  std::unique_ptr<Stub> stub_;
  std::unique_ptr<RetryEnvironment> environment_;
};

}  // namespace

std::shared_ptr<Connection> MakeRemoteConnection(std::unique_ptr<Stub> stub,
                                                 std::unique_ptr<RetryEnvironment> environment) {
  return std::make_shared<RemoteConnection>(std::move(stub), std::move(environment));
}

namespace {

using google::protobuf::util::TimeUtil;

// A server may end a wait early; one that always does is not to be asked without a pause.
constexpr nanoseconds kMinRound = std::chrono::milliseconds(100);

absl::Status NotDone(const std::string& name) {
  return MakeLocalError(absl::StatusCode::kDeadlineExceeded, "JOB_NOT_DONE",
                        absl::StrCat(name, " was not done in time; it goes on"), {{"name", name}});
}

}  // namespace

absl::StatusOr<google::longrunning::Operation> AwaitOperation(const std::string& name,
                                                              const CallTerms& terms, Stub& stub,
                                                              RetryEnvironment& environment) {
  const RetryEnvironment::Time start = environment.Now();
  google::longrunning::GetOperationRequest look;
  look.set_name(name);
  google::longrunning::Operation operation;
  absl::Status status = RetryLoop(terms, Repeatable::kYes, environment, [&](nanoseconds timeout) {
    return stub.Call(MethodOf(*look.GetDescriptor()), look, operation, timeout);
  });
  google::longrunning::WaitOperationRequest wait;
  wait.set_name(name);
  while (status.ok() && !operation.done()) {
    const RetryEnvironment::Time begin = environment.Now();
    const nanoseconds left = terms.timeout - (begin - start);
    if (left <= nanoseconds(0)) return NotDone(name);
    *wait.mutable_timeout() = TimeUtil::NanosecondsToDuration(std::min(left, kWaitRound).count());
    CallTerms round{.timeout = std::min(left, kWaitRound + kMaxOutage), .retry = terms.retry};
    if (round.retry.max_attempts > 1) round.retry.max_attempts = std::numeric_limits<int>::max();
    status = RetryLoop(round, Repeatable::kYes, environment, [&](nanoseconds timeout) {
      return stub.Call(MethodOf(*wait.GetDescriptor()), wait, operation, timeout);
    });
    if (absl::IsDeadlineExceeded(status) && round.timeout == left) return NotDone(name);
    const bool is_early = status.ok() && !operation.done() && environment.Now() - begin < kMinRound;
    if (is_early) environment.Sleep(std::min(left, kMinRound));
  }
  if (!status.ok()) return status;
  return operation;
}

}  // namespace stepcast::client
