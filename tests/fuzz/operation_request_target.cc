// The requests of JobService and google.longrunning.Operations: the first byte is the method, the
// rest the message. What is started is checked as the replica that takes it checks it, and ended.
#include <google/longrunning/operations.pb.h>

#include <array>
#include <string>
#include <utility>
#include <vector>

#include "core/base/error.h"
#include "core/base/executor.h"
#include "server/base/clock.h"
#include "server/convert/any_message.h"
#include "server/convert/operation_convert.h"
#include "server/convert/profile_codec.h"
#include "server/convert/profile_convert.h"
#include "server/handlers/operation_handler.h"
#include "server/handlers/prediction_handler.h"
#include "server/rpc/operations_rpc.h"
#include "server/store/memory_stores.h"
#include "stepcast/v1/job_service.pb.h"
#include "tests/fuzz/demand.h"
#include "tests/fuzz/fuzz_target.h"
#include "tests/fuzz/method_input.h"
#include "tests/fuzz/refusal.h"
#include "tests/fuzz/small_limits.h"
#include "tests/fuzz/small_profile.h"

namespace stepcast::fuzz {

namespace {

namespace longrunning = google::longrunning;
using google::protobuf::Message;
using server::OperationHandler;

// A server that has the small profile as `small`, and one operation, whose name is asked for as
// operations/first.
class Service {
 public:
  Service() {
    const server::EncodedProfile encoded =
        server::EncodeProfile(Profile::Create(SmallDraft()).value());
    Demand(
        profiles_
            .Put({.summary = {.id = "small", .digest = encoded.digest}, .content = encoded.content},
                 "")
            .ok(),
        "a profile is stored");
    v1::StartJobRequest job;
    job.mutable_predict_throughput()->set_profile("profiles/small");
    const auto started = handler_.Start(server::FromWire(job), "");
    Demand(started.ok(), "an operation is started");
    first_ = server::ToWire(*started).name();
  }

  absl::Status Call(const v1::StartJobRequest& request) {
    const auto started = handler_.Start(server::FromWire(request), "somebody");
    if (started.ok()) DemandOneEnd(request, *started);
    return started.status();
  }
  absl::Status Call(const longrunning::ListOperationsRequest& request) {
    const auto listed = handler_.List(server::FromWire(request));
    if (listed.ok())
      Demand(server::ToWire(*listed).operations_size() <= 1, "a listing has what is there");
    return listed.status();
  }
  absl::Status Call(const longrunning::GetOperationRequest& request) {
    const auto found = handler_.Get(Known(request.name()));
    if (found.ok())
      Demand(server::ToWire(*found).name() == first_,
             "what is asked for is found:", request.name());
    return found.status();
  }
  absl::Status Call(const longrunning::WaitOperationRequest& request) {
    const auto seconds = OperationHandler::WaitSeconds(server::FromWire(request));
    if (seconds.ok())
      Demand(*seconds >= 0 && *seconds <= OperationHandler::kMaxWaitSeconds,
             "no wait is longer than the longest");
    return seconds.status();
  }
  absl::Status Call(const longrunning::CancelOperationRequest& request) {
    return handler_.Cancel(Known(request.name()));
  }
  absl::Status Call(const longrunning::DeleteOperationRequest& request) {
    Demand(handler_.Cancel(first_).ok(), "one in the queue is done once it is cancelled");
    absl::Status deleted = handler_.Delete(Known(request.name()));
    if (deleted.ok()) Demand(!handler_.Get(first_).ok(), "what was deleted is gone");
    return deleted;
  }

 private:
  // Names of operations are the store's choice, which no seed can know.
  std::string Known(const std::string& name) const {
    return name == "operations/first" ? first_ : name;
  }

  void DemandOneEnd(const v1::StartJobRequest& request, const server::StoredOperation& started) {
    Demand(handler_.Cancel(first_).ok(), "one in the queue is out of the way once it is cancelled");
    const auto claimed = operations_.Claim({.replica = "r", .lease_ns = 1'000'000'000}).value();
    Demand(claimed && claimed->record.id == started.record.id,
           "what was started is there to be taken");
    v1::StartJobRequest kept = request;
    kept.clear_request_id();
    v1::StartJobRequest found;
    Demand(found.ParseFromString(claimed->request) &&
               server::DeterministicBytes(found) == server::DeterministicBytes(kept),
           "a request is kept as it was");
    const auto work = server::CheckJob(
        claimed->request, {.handler = predictions_, .clock = clock_, .max_seconds = 1});
    if (!work.ok())
      DemandSoundRefusal(work.status(),
                         {absl::StatusCode::kInvalidArgument, absl::StatusCode::kNotFound,
                          absl::StatusCode::kFailedPrecondition});
    const server::OperationResult result{
        .is_error = !work.ok(), .bytes = work.ok() ? "" : server::ErrorBytes(work.status())};
    Demand(
        operations_
            .Finish({.id = claimed->record.id, .replica = "r", .number = claimed->record.attempts},
                    result)
            .ok(),
        "it is ended");
    const longrunning::Operation ended =
        server::ToWire(operations_.Get(claimed->record.id).value());
    Demand(ended.done() && ended.has_error() != work.ok(), "it has one end");
    if (!work.ok())
      Demand(ended.error().code() == static_cast<int>(work.status().code()),
             "its error is that of the check");
  }

  const server::FakeClock clock_;
  server::MemoryProfileStore profiles_{{}, clock_};
  server::MemoryOperationStore operations_{{}, clock_};
  const InOrder executor_;
  const server::PredictionHandler predictions_{
      {.store = profiles_, .clock = clock_, .executor = executor_}, SmallLimits()};
  const OperationHandler handler_{operations_, profiles_};
  std::string first_;
};

class OperationRequestTarget final : public FuzzTarget {
 public:
  std::vector<std::string> Seeds() const override {
    std::vector<std::string> seeds;
    const auto add = [&](size_t method, const Message& message) {
      seeds.push_back(MethodInput(method, message));
    };
    v1::StartJobRequest start;
    start.set_request_id("123e4567-e89b-12d3-a456-426614174000");
    start.mutable_predict_throughput()->set_profile("profiles/small");
    start.mutable_predict_throughput()->add_worker_counts(2);
    add(0, start);
    *start.mutable_recommend_workers()->mutable_inline_profile() = server::ToWire(SmallDraft());
    add(0, start);
    start.mutable_optimize_order()->set_profile("profiles/small");
    add(0, start);
    v1::AllocationJob& job = *start.mutable_allocate_workers()->add_jobs();
    job.set_id("a");
    job.set_profile("profiles/small");
    add(0, start);
    longrunning::ListOperationsRequest list;
    list.set_name("operations");
    list.set_page_size(1);
    add(1, list);
    add(2, Named<longrunning::GetOperationRequest>());
    auto wait = Named<longrunning::WaitOperationRequest>();
    wait.mutable_timeout()->set_seconds(3);
    add(3, wait);
    add(4, Named<longrunning::CancelOperationRequest>());
    add(5, Named<longrunning::DeleteOperationRequest>());
    return seeds;
  }

  bool Run(std::string_view input) override {
    if (input.empty()) return false;
    const std::string bytes(input.substr(1));
    switch (MethodOf(input[0], kMethods)) {
      case 0:
        return Try<v1::StartJobRequest>(bytes);
      case 1:
        return Try<longrunning::ListOperationsRequest>(bytes);
      case 2:
        return Try<longrunning::GetOperationRequest>(bytes);
      case 3:
        return Try<longrunning::WaitOperationRequest>(bytes);
      case 4:
        return Try<longrunning::CancelOperationRequest>(bytes);
      default:
        return Try<longrunning::DeleteOperationRequest>(bytes);
    }
  }

  std::string Mutate(std::string input, const Mutation& mutation) const override {
    return MutateRequest(Prototypes(), std::move(input), mutation);
  }

 private:
  static constexpr size_t kMethods = 6;

  static std::array<const Message*, kMethods> Prototypes() {
    return {&v1::StartJobRequest::default_instance(),
            &longrunning::ListOperationsRequest::default_instance(),
            &longrunning::GetOperationRequest::default_instance(),
            &longrunning::WaitOperationRequest::default_instance(),
            &longrunning::CancelOperationRequest::default_instance(),
            &longrunning::DeleteOperationRequest::default_instance()};
  }

  template <typename Request>
  static Request Named() {
    Request request;
    request.set_name("operations/first");
    return request;
  }

  template <typename Request>
  static bool Try(const std::string& bytes) {
    Request request;
    if (!request.ParseFromString(bytes)) return false;
    const absl::Status status = Service().Call(request);
    if (!status.ok())
      DemandSoundRefusal(status, {absl::StatusCode::kInvalidArgument, absl::StatusCode::kNotFound});
    return status.ok();
  }
};

}  // namespace

std::unique_ptr<FuzzTarget> MakeFuzzTarget() { return std::make_unique<OperationRequestTarget>(); }

}  // namespace stepcast::fuzz
