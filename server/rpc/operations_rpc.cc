#include "server/rpc/operations_rpc.h"

#include <google/protobuf/empty.pb.h>

#include <algorithm>
#include <cstdint>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "google/longrunning/operations.grpc.pb.h"

#include "core/base/error.h"
#include "server/convert/any_message.h"
#include "server/convert/operation_convert.h"
#include "server/handlers/expected_work.h"
#include "server/handlers/shared_work.h"
#include "server/methods/prediction_methods.h"
#include "server/rpc/calls.h"
#include "server/rpc/services.h"
#include "stepcast/v1/job_service.grpc.pb.h"
#include "stepcast/v1/job_service.pb.h"

namespace stepcast::server {

namespace {

absl::Status TooLarge(int64_t bytes, int64_t max_bytes) {
  return MakeError(
      absl::StatusCode::kInvalidArgument,
      absl::StrCat("a job of ", bytes, " bytes is above the limit max_job_bytes = ", max_bytes),
      {.reason = "JOB_TOO_LARGE",
       .metadata = {{"bytes", absl::StrCat(bytes)}, {"max_job_bytes", absl::StrCat(max_bytes)}},
       .quota_subject = "max_job_bytes"});
}

class JobRpc final
    : public v1::JobService::WithRawCallbackMethod_StartJob<v1::JobService::Service> {
 public:
  explicit JobRpc(const OperationEnvironment& environment) : environment_(environment) {}

  grpc::ServerUnaryReactor* StartJob(grpc::CallbackServerContext* context,
                                     const grpc::ByteBuffer* request,
                                     grpc::ByteBuffer* reply) override {
    auto* call = new UnaryCall(environment_.calls, v1::JobService::service_full_name(),
                               {"StartJob", context, request, reply});
    call->Start([this, bytes = static_cast<int64_t>(request->Length())](UnaryCall& started) {
      if (bytes > environment_.max_job_bytes)
        return started.Fail(TooLarge(bytes, environment_.max_job_bytes));
      v1::StartJobRequest message;
      const absl::Status parsed = started.Read(message);
      if (!parsed.ok()) return started.Fail(parsed);
      const absl::StatusOr<StoredOperation> operation =
          environment_.handler.Start(FromWire(message), started.state().caller());
      if (!operation.ok()) return started.Fail(operation.status());
      environment_.started();
      started.Reply(ToWire(*operation));
    });
    return call;
  }

 private:
  const OperationEnvironment& environment_;
};

}  // namespace

std::unique_ptr<grpc::Service> MakeJobService(const OperationEnvironment& environment) {
  return std::make_unique<JobRpc>(environment);
}

namespace {

namespace longrunning = google::longrunning;

using OperationsMethods = longrunning::Operations::WithRawCallbackMethod_ListOperations<
    longrunning::Operations::WithRawCallbackMethod_GetOperation<
        longrunning::Operations::WithRawCallbackMethod_DeleteOperation<
            longrunning::Operations::WithRawCallbackMethod_CancelOperation<
                longrunning::Operations::WithRawCallbackMethod_WaitOperation<
                    longrunning::Operations::Service>>>>>;

class OperationsRpc final : public OperationsMethods {
 public:
  explicit OperationsRpc(const OperationEnvironment& environment) : environment_(environment) {}

  grpc::ServerUnaryReactor* ListOperations(grpc::CallbackServerContext* context,
                                           const grpc::ByteBuffer* request,
                                           grpc::ByteBuffer* reply) override {
    return Start<longrunning::ListOperationsRequest>(
        {"ListOperations", context, request, reply},
        [this](UnaryCall& call, const longrunning::ListOperationsRequest& message) {
          const auto answer = environment_.handler.List(FromWire(message));
          if (!answer.ok()) return call.Fail(answer.status());
          call.Reply(ToWire(*answer));
        });
  }

  grpc::ServerUnaryReactor* GetOperation(grpc::CallbackServerContext* context,
                                         const grpc::ByteBuffer* request,
                                         grpc::ByteBuffer* reply) override {
    return Start<longrunning::GetOperationRequest>(
        {"GetOperation", context, request, reply},
        [this](UnaryCall& call, const longrunning::GetOperationRequest& message) {
          const auto operation = environment_.handler.Get(message.name());
          if (!operation.ok()) return call.Fail(operation.status());
          call.Reply(ToWire(*operation));
        });
  }

  grpc::ServerUnaryReactor* DeleteOperation(grpc::CallbackServerContext* context,
                                            const grpc::ByteBuffer* request,
                                            grpc::ByteBuffer* reply) override {
    return Start<longrunning::DeleteOperationRequest>(
        {"DeleteOperation", context, request, reply},
        [this](UnaryCall& call, const longrunning::DeleteOperationRequest& message) {
          ReplyEmpty(call, environment_.handler.Delete(message.name()));
        });
  }

  grpc::ServerUnaryReactor* CancelOperation(grpc::CallbackServerContext* context,
                                            const grpc::ByteBuffer* request,
                                            grpc::ByteBuffer* reply) override {
    return Start<longrunning::CancelOperationRequest>(
        {"CancelOperation", context, request, reply},
        [this](UnaryCall& call, const longrunning::CancelOperationRequest& message) {
          const absl::Status status = environment_.handler.Cancel(message.name());
          if (status.ok()) environment_.cancelled();
          ReplyEmpty(call, status);
        });
  }

  grpc::ServerUnaryReactor* WaitOperation(grpc::CallbackServerContext* context,
                                          const grpc::ByteBuffer* request,
                                          grpc::ByteBuffer* reply) override {
    return Start<longrunning::WaitOperationRequest>(
        {"WaitOperation", context, request, reply},
        [this](UnaryCall& call, const longrunning::WaitOperationRequest& message) {
          Wait(call, FromWire(message));
        });
  }

 private:
  template <typename Request, typename Part>
  grpc::ServerUnaryReactor* Start(const UnaryWire& wire, Part part) {
    return StartUnary<Request>(environment_.calls, longrunning::Operations::service_full_name(),
                               wire, std::move(part));
  }

  static void ReplyEmpty(UnaryCall& call, const absl::Status& status) {
    if (!status.ok()) return call.Fail(status);
    call.Reply(google::protobuf::Empty());
  }

  void Wait(UnaryCall& call, const WaitOperationCall& asked) const {
    const absl::StatusOr<double> seconds = OperationHandler::WaitSeconds(asked);
    if (!seconds.ok()) return call.Fail(seconds.status());
    const absl::StatusOr<StoredOperation> operation = environment_.handler.Get(asked.name);
    if (!operation.ok()) return call.Fail(operation.status());
    if (IsDone(operation->record.state) || *seconds == 0) return call.Reply(ToWire(*operation));
    environment_.waiters.Wait(call, asked.name, *seconds);
    // It may have ended in between.
    environment_.waits();
  }

  const OperationEnvironment& environment_;
};

}  // namespace

std::unique_ptr<grpc::Service> MakeOperationsService(const OperationEnvironment& environment) {
  return std::make_unique<OperationsRpc>(environment);
}

namespace {

constexpr int64_t kNothingToDoNs = int64_t{3600} * 1'000'000'000;

absl::Status TooMany(int64_t max_waiting) {
  return MakeError(absl::StatusCode::kResourceExhausted,
                   absl::StrCat(max_waiting, " calls wait for operations already"),
                   {.reason = "TOO_MANY_WAITING",
                    .metadata = {{"max_waiting_calls", absl::StrCat(max_waiting)}},
                    .retry_delay_ms = kRetryDelayMs,
                    .quota_subject = "max_waiting_calls"});
}

absl::Status ShuttingDown() {
  return MakeError(absl::StatusCode::kUnavailable, "the server is shutting down",
                   {.reason = "SHUTTING_DOWN", .retry_delay_ms = kRetryDelayMs});
}

}  // namespace

void OperationWaiters::Wait(UnaryCall& call, const std::string& name, double seconds) {
  int64_t until_ns = clock_.MonotonicNs() + static_cast<int64_t>(seconds * kNsPerSecond);
  until_ns = std::min(until_ns, call.state().end_ns().value_or(until_ns));
  absl::Status refused;
  {
    MutexLock lock(mutex_);
    if (leaving_) {
      refused = ShuttingDown();
    } else if (count_ >= max_waiting_) {
      refused = TooMany(max_waiting_);
    } else {
      waiting_[name].push_back({.call = &call, .until_ns = until_ns});
      ++count_;
    }
  }
  if (!refused.ok()) call.Fail(refused);
}

void OperationWaiters::FreePlace() {
  MutexLock lock(mutex_);
  --count_;
}

void OperationWaiters::Look(const std::string& name, std::vector<Waiting>& waiting) {
  const absl::StatusOr<StoredOperation> operation = handler_.Get(name);
  // A store that is away for a moment ends nobody's waiting before its time.
  const bool is_away = absl::IsUnavailable(operation.status());
  const bool is_done = is_away ? false : !operation.ok() || IsDone(operation->record.state);
  const int64_t now_ns = clock_.MonotonicNs();
  std::erase_if(waiting, [&](const Waiting& each) {
    const absl::Status go_on = each.call->Check();
    if (go_on.ok() && !is_done && now_ns < each.until_ns) return false;
    FreePlace();
    // The end of the call's time is that of the wait.
    if (absl::IsCancelled(go_on)) {
      each.call->Fail(go_on);
    } else if (operation.ok()) {
      each.call->Reply(ToWire(*operation));
    } else {
      each.call->Fail(operation.status());
    }
    return true;
  });
}

int64_t OperationWaiters::Tick() {
  Waitings taken;
  bool is_leaving = false;
  {
    MutexLock lock(mutex_);
    taken.swap(waiting_);
    is_leaving = leaving_;
  }
  bool is_left = false;
  int64_t next_ns = clock_.MonotonicNs() + kPollNs;
  for (auto& [name, waiting] : taken) {
    if (is_leaving) {
      for (const Waiting& each : waiting) {
        FreePlace();
        each.call->Fail(ShuttingDown());
      }
      waiting.clear();
      continue;
    }
    Look(name, waiting);
    is_left = is_left || !waiting.empty();
    for (const Waiting& each : waiting) next_ns = std::min(next_ns, each.until_ns);
  }
  // Waiters that came meanwhile have woken the next Tick.
  MutexLock lock(mutex_);
  for (auto& [name, waiting] : taken) {
    if (!waiting.empty())
      waiting_[name].insert(waiting_[name].end(), waiting.begin(), waiting.end());
  }
  return !is_left ? kNothingToDoNs : std::max<int64_t>(0, next_ns - clock_.MonotonicNs());
}

void OperationWaiters::Leave() {
  MutexLock lock(mutex_);
  leaving_ = true;
}

namespace {

absl::Status TooLong(double max_seconds) {
  return MakeError(
      absl::StatusCode::kDeadlineExceeded,
      absl::StrCat("the computation has reached the limit max_operation_seconds = ", max_seconds),
      {.reason = "JOB_TOO_LONG",
       .metadata = {{"max_operation_seconds", absl::StrCat(max_seconds)}},
       .quota_subject = "max_operation_seconds"});
}

// The reply of `computation`, serialised.
template <typename Answer>
absl::StatusOr<std::string> ReplyOf(Computation<Answer> computation, const WorkProgress& done,
                                    StopCheck stop, const ComputingMeans* means) {
  const absl::StatusOr<Answer> answer = std::move(computation)(stop, means);
  if (!answer.ok()) return done.Explain(answer.status());
  std::string reply;
  if (!ToWire(*answer).SerializeToString(&reply)) {
    return MakeError(absl::StatusCode::kInternal, "the reply takes 2 GiB or more",
                     {.reason = "REPLY_TOO_LARGE"});
  }
  return reply;
}

template <typename Answer>
absl::StatusOr<OperationWork> WorkOf(absl::StatusOr<Computation<Answer>> computation,
                                     const JobComputationOptions& options) {
  if (!computation.ok()) return computation.status();
  return OperationWork([todo = *std::move(computation), &executor = options.handler.executor(),
                        &clock = options.clock, max_seconds = options.max_seconds](
                           StopCheck stop, AttemptProgress& progress,
                           const OperationShare& share) mutable -> absl::StatusOr<std::string> {
    const int64_t end_ns = clock.MonotonicNs() + static_cast<int64_t>(max_seconds * kNsPerSecond);
    WorkProgress done(todo.work(), clock, Remedy::kAskForLess);
    progress.expected = done.expected();
    std::optional<SharedWork> shared;
    const auto tell = [&] {
      progress.done = done.done() + (shared.has_value() ? shared->foreign_operations() : 0);
      progress.expected = std::max(progress.expected.load(), progress.done.load());
    };
    const auto end = [&] {
      tell();
      return clock.MonotonicNs() < end_ns ? stop() : TooLong(max_seconds);
    };
    const auto stop_or_end = [&] {
      done.Count();
      if (shared.has_value() && shared->IsOver())
        return absl::AbortedError("the operation does not run any more");
      return end();
    };
    // An answer that a time budget cuts short depends on who else takes part.
    if (share.shards == nullptr || todo.work().most_seconds > 0) {
      absl::StatusOr<std::string> reply = ReplyOf(std::move(todo), done, stop_or_end, nullptr);
      tell();
      return reply;
    }
    shared.emplace(
        SharedWork::Environment{
            .store = *share.shards, .executor = executor, .clock = clock, .stop = end},
        share.operation, share.helps);
    const ComputingMeans means{*shared, &*shared, share.helps};
    absl::StatusOr<std::string> reply = ReplyOf(std::move(todo), done, stop_or_end, &means);
    tell();
    return reply;
  });
}

}  // namespace

absl::StatusOr<OperationWork> CheckJob(const std::string& request,
                                       const JobComputationOptions& options) {
  v1::StartJobRequest job;
  if (!job.ParseFromString(request)) {
    return MakeError(absl::StatusCode::kDataLoss, "the kept bytes are no StartJobRequest",
                     {.reason = "OPERATION_CORRUPT"});
  }
  // Another replica took it, which may know more.
  if (absl::Status known = CheckFieldsAreKnown(job); !known.ok()) return known;
  absl::StatusOr<OperationWork> work =
      MakeError(absl::StatusCode::kUnimplemented, "this server does not know the computation",
                {.reason = "COMPUTATION_UNKNOWN"});
  const google::protobuf::Message* const asked = ComputationOf(job);
  if (asked == nullptr) return work;
  ForEachPredictionMethod([&]<typename Method>(Method) {
    using Request = typename Method::Request;
    if (asked->GetDescriptor() != Request::descriptor()) return;
    work = WorkOf(Method::Check(options.handler, static_cast<const Request&>(*asked)), options);
  });
  return work;
}

}  // namespace stepcast::server
