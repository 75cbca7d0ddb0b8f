#include "server/rpc/job_computation.h"

#include <algorithm>
#include <cstdint>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"

#include "core/base/error.h"
#include "server/convert/any_message.h"
#include "server/convert/operation_convert.h"
#include "server/handlers/expected_work.h"
#include "server/handlers/shared_work.h"
#include "server/methods/prediction_methods.h"
#include "stepcast/v1/job_service.pb.h"

namespace stepcast::server {

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
    const auto end = [&] { return clock.MonotonicNs() < end_ns ? stop() : TooLong(max_seconds); };
    const auto stop_or_end = [&] {
      done.Count();
      progress.done = done.done() + (shared.has_value() ? shared->foreign_operations() : 0);
      progress.expected = std::max(progress.expected.load(), progress.done.load());
      if (shared.has_value() && shared->IsOver())
        return absl::AbortedError("the operation does not run any more");
      return end();
    };
    // What a time budget cuts short depends on who else takes part.
    if (share.shards == nullptr || todo.work().most_seconds > 0)
      return ReplyOf(std::move(todo), done, stop_or_end, nullptr);
    shared.emplace(
        SharedWork::Environment{
            .store = *share.shards, .executor = executor, .clock = clock, .stop = end},
        share.operation, share.helps);
    const ComputingMeans means{*shared, &*shared};
    return ReplyOf(std::move(todo), done, stop_or_end, &means);
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
