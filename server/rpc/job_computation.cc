#include "server/rpc/job_computation.h"

#include <cstdint>
#include <utility>

#include "absl/strings/str_cat.h"

#include "core/base/error.h"
#include "server/convert/earlier_contract.h"
#include "server/convert/prediction_convert.h"
#include "server/convert/search_convert.h"
#include "server/convert/strategy_convert.h"
#include "server/handlers/expected_work.h"
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
                                    StopCheck stop) {
  const absl::StatusOr<Answer> answer = std::move(computation)(stop);
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
  return OperationWork([todo = *std::move(computation), &clock = options.clock,
                        max_seconds = options.max_seconds](StopCheck stop,
                                                           std::atomic<int64_t>& progress) mutable {
    const int64_t end_ns = clock.MonotonicNs() + static_cast<int64_t>(max_seconds * kNsPerSecond);
    WorkProgress done(todo.work(), clock, Remedy::kAskForLess);
    const auto stop_or_end = [&] {
      done.Count();
      progress.fetch_add(kStopCheckInterval, std::memory_order_relaxed);
      return clock.MonotonicNs() < end_ns ? stop() : TooLong(max_seconds);
    };
    return ReplyOf(std::move(todo), done, stop_or_end);
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
  UpgradeStored(job);
  const PredictionHandler& handler = options.handler;
  switch (job.computation_case()) {
    case v1::StartJobRequest::kPredictThroughput:
      return WorkOf(handler.PredictThroughput(FromWire(job.predict_throughput())), options);
    case v1::StartJobRequest::kRecommendWorkers:
      return WorkOf(handler.RecommendWorkers(FromWire(job.recommend_workers())), options);
    case v1::StartJobRequest::kOptimizeOrder:
      return WorkOf(handler.OptimizeOrder(FromWire(job.optimize_order())), options);
    case v1::StartJobRequest::kAllocateWorkers:
      return WorkOf(handler.AllocateWorkers(FromWire(job.allocate_workers())), options);
    case v1::StartJobRequest::kCompareModels:
      return WorkOf(handler.CompareModels(FromWire(job.compare_models())), options);
    case v1::StartJobRequest::kOptimizeCommunication:
      return WorkOf(handler.OptimizeCommunication(FromWire(job.optimize_communication())), options);
    case v1::StartJobRequest::kDiagnoseJob:
      return WorkOf(handler.DiagnoseJob(FromWire(job.diagnose_job())), options);
    case v1::StartJobRequest::kOptimizeJob:
      return WorkOf(handler.OptimizeJob(FromWire(job.optimize_job())), options);
    case v1::StartJobRequest::kRecommendLayout:
      return WorkOf(handler.RecommendLayout(FromWire(job.recommend_layout())), options);
    case v1::StartJobRequest::COMPUTATION_NOT_SET:
      break;
  }
  return MakeError(absl::StatusCode::kUnimplemented, "this server does not know the computation",
                   {.reason = "COMPUTATION_UNKNOWN"});
}

}  // namespace stepcast::server
