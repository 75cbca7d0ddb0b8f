// The requests of PredictionService: the first byte is the method, the rest the message. What is
// accepted is computed, up to a number of checks.
#include <google/protobuf/util/json_util.h>

#include <algorithm>
#include <iterator>
#include <string>
#include <utility>
#include <vector>

#include "core/base/error.h"
#include "core/base/executor.h"
#include "server/base/clock.h"
#include "server/convert/profile_codec.h"
#include "server/convert/profile_convert.h"
#include "server/handlers/prediction_handler.h"
#include "server/methods/prediction_methods.h"
#include "server/store/memory_stores.h"
#include "tests/core/predict/kept_runs.h"
#include "tests/fuzz/demand.h"
#include "tests/fuzz/fuzz_target.h"
#include "tests/fuzz/method_input.h"
#include "tests/fuzz/refusal.h"
#include "tests/fuzz/small_limits.h"
#include "tests/fuzz/small_profile.h"

namespace stepcast::fuzz {

namespace {

using google::protobuf::Message;
using server::PredictionHandler;

constexpr int kMaxChecks = 400;  // each some 4096 chunks of a transfer or operations
constexpr size_t kMaxTraceBytes = size_t{1} << 20;

void DemandSound(const absl::Status& status) {
  DemandSoundRefusal(status, {absl::StatusCode::kInvalidArgument, absl::StatusCode::kNotFound,
                              absl::StatusCode::kFailedPrecondition, absl::StatusCode::kOutOfRange,
                              absl::StatusCode::kCancelled});
}

absl::Status Enough() {
  return MakeError(absl::StatusCode::kCancelled, "enough", {.reason = "ENOUGH"});
}

template <typename Answer>
std::string Written(const Answer& answer) {
  const auto message = server::ToWire(answer);
  std::string json;
  Demand(google::protobuf::util::MessageToJsonString(message, &json).ok(),
         "every reply can be written as JSON:", message.ShortDebugString());
  return message.SerializeAsString();
}

// The small job with a backward pass of its own, so that its forward pass can be told.
ProfileDraft TwoPassesDraft() {
  ProfileDraft draft = SmallDraft();
  for (Operation& operation : draft.operations) {
    for (int32_t& before : operation.waiting_for) before += before > 0 ? 1 : 0;
  }
  draft.operations[2].waiting_for = {2};
  draft.operations.insert(draft.operations.begin() + 2,
                          {.name = "backward", .resource = Resource::kWorker, .waiting_for = {1}});
  for (RecordedStep& step : draft.steps) {
    step.start_ns.insert(step.start_ns.begin() + 2, 2'000'000);
    step.end_ns.insert(step.end_ns.begin() + 2, step.end_ns[1]);
    step.end_ns[1] = 2'000'000;
  }
  return draft;
}

// A job that can be cut in two stages: two layers forward, backward, and their gradients summed.
ProfileDraft TwoLayersDraft() {
  ProfileDraft draft{.display_name = "two layers",
                     .model = "tiny",
                     .framework = "test",
                     .batch_size = 10,
                     .platform = {.bandwidth_bytes_per_second = 1e6}};
  const auto compute = [&](const char* name, Pass pass, std::vector<int32_t> waiting_for) {
    draft.operations.push_back({.name = name,
                                .resource = Resource::kWorker,
                                .waiting_for = std::move(waiting_for),
                                .kept_bytes = pass == Pass::kForward ? 100 : 0,
                                .pass = pass,
                                .output_bytes = pass == Pass::kForward ? 50 : 0});
  };
  const auto reduce = [&](const char* name, int32_t waiting_for, const char* parameter) {
    draft.operations.push_back({.name = name,
                                .resource = Resource::kCollective,
                                .size_bytes = 1000,
                                .waiting_for = {waiting_for},
                                .parameter = parameter,
                                .collective = Collective::kAllReduce});
  };
  compute("forward/1", Pass::kForward, {});
  compute("forward/2", Pass::kForward, {0});
  compute("backward/2", Pass::kBackward, {1});
  compute("backward/1", Pass::kBackward, {2});
  reduce("reduce 2", 2, "w2");
  reduce("reduce 1", 3, "w1");
  RecordedStep step;
  for (const int64_t begin : {0, 1, 2, 4, 4, 6}) {
    step.start_ns.push_back(begin * 1'000'000);
    step.end_ns.push_back((begin + (begin < 2 ? 1 : 2)) * 1'000'000);
  }
  draft.steps = {step};
  return draft;
}

class PredictionRequestTarget final : public FuzzTarget {
 public:
  PredictionRequestTarget()
      : store_({}, clock_),
        handler_({.store = store_, .clock = clock_, .executor = executor_, .runs = &runs_},
                 SmallLimits()) {
    const Profile profile = Profile::Create(SmallDraft()).value();
    const server::EncodedProfile encoded = server::EncodeProfile(profile);
    Demand(
        store_
            .Put({.summary = {.id = "small", .digest = encoded.digest}, .content = encoded.content},
                 "")
            .ok(),
        "a profile is stored");
  }

  std::vector<std::string> Seeds() const override {
    std::vector<std::string> seeds;
    const auto add = [&](const Message& message) {
      const std::vector<const Message*> prototypes = Prototypes();
      const auto method =
          std::find_if(prototypes.begin(), prototypes.end(), [&](const Message* prototype) {
            return prototype->GetDescriptor() == message.GetDescriptor();
          });
      seeds.push_back(
          MethodInput(static_cast<size_t>(std::distance(prototypes.begin(), method)), message));
    };
    enum class About : uint8_t { kStored, kServers, kCollectives };
    for (const About job_kind : {About::kStored, About::kServers, About::kCollectives}) {
      const auto about = [&](auto message) {
        if (job_kind == About::kStored) {
          message.set_profile("profiles/small");
        } else {
          *message.mutable_inline_profile() =
              server::ToWire(job_kind == About::kServers ? SmallDraft() : SmallCollectivesDraft());
        }
        return message;
      };
      auto predict = about(v1::PredictThroughputRequest());
      predict.add_worker_counts(2);
      predict.mutable_options()->set_steps_per_worker(20);
      predict.mutable_options()->set_warmup_steps(2);
      predict.mutable_options()->set_replications(2);
      add(predict);
      if (job_kind == About::kServers) {
        auto by_priority = predict;
        *by_priority.mutable_inline_profile() = server::ToWire(TwoPassesDraft());
        v1::AllReduce* reduce = by_priority.mutable_scenario()->mutable_all_reduce();
        reduce->set_partition_bytes(500);
        reduce->mutable_byte_scheduler()->set_credit_bytes(1000);
        add(by_priority);
      }
      auto recommend = about(v1::RecommendWorkersRequest());
      recommend.mutable_constraints()->set_max_workers(3);
      *recommend.mutable_options() = predict.options();
      add(recommend);
      auto order = about(v1::OptimizeOrderRequest());
      *order.mutable_options() = predict.options();
      if (job_kind != About::kCollectives) add(order);
      auto tune = about(v1::OptimizeCommunicationRequest());
      tune.mutable_scenario()->set_workers(2);
      tune.add_bucket_caps_bytes(2000);
      *tune.mutable_options() = predict.options();
      if (job_kind == About::kCollectives) add(tune);
      tune.mutable_contention()->set_alpha2(1e-4);
      for (auto* rate : {tune.mutable_contention()->mutable_overlapped(),
                         tune.mutable_contention()->mutable_alone()}) {
        rate->set_gamma1(1e9);
        rate->set_gamma2(5e8);
        rate->set_gamma3(0.01);
      }
      tune.set_chunks(20);
      if (job_kind == About::kCollectives) add(tune);
      auto compare = about(v1::CompareModelsRequest());
      compare.add_worker_counts(2);
      *compare.mutable_options() = predict.options();
      add(compare);
      auto diagnose = about(v1::DiagnoseJobRequest());
      diagnose.mutable_scenario()->set_workers(2);
      diagnose.mutable_scenario()->add_worker_groups()->set_count(1);
      v1::WorkerGroup& slow = *diagnose.mutable_scenario()->add_worker_groups();
      slow.set_count(1);
      slow.set_compute_speed_factor(0.5);
      *diagnose.mutable_options() = predict.options();
      add(diagnose);
      auto optimize = about(v1::OptimizeJobRequest());
      optimize.mutable_scenario()->set_workers(2);
      *optimize.mutable_options() = predict.options();
      optimize.set_fused_share(0.8);
      optimize.set_max_partitions(2);
      optimize.mutable_shortcuts()->set_partial_replay(false);
      v1::KeptOutput& kept = *optimize.mutable_memory()->add_kept_outputs();
      kept.set_operation("compute");
      kept.set_bytes(1000);
      optimize.mutable_memory()->set_budget_bytes(1 << 20);
      if (job_kind == About::kCollectives) add(optimize);
      auto trace = about(v1::GenerateTraceRequest());
      trace.mutable_options()->set_steps_per_worker(4);
      trace.mutable_options()->set_warmup_steps(0);
      add(trace);
      v1::AllocateWorkersRequest allocate;
      allocate.mutable_capacity()->set_workers(3);
      *allocate.mutable_options() = predict.options();
      for (const char* id : {"a", "b"}) {
        v1::AllocationJob job;
        job.set_id(id);
        *allocate.add_jobs() = about(job);
      }
      add(allocate);
    }
    v1::PredictThroughputRequest of_recording;
    *of_recording.mutable_inline_profile() = server::ToWire(SmallRecordedDraft());
    of_recording.add_worker_counts(3);
    of_recording.mutable_options()->set_steps_per_worker(20);
    of_recording.mutable_options()->set_replications(2);
    add(of_recording);
    v1::DiagnoseJobRequest diagnose_recording;
    *diagnose_recording.mutable_inline_profile() = of_recording.inline_profile();
    *diagnose_recording.mutable_options() = of_recording.options();
    add(diagnose_recording);
    v1::FitParsingOverheadRequest fit;
    for (int i = 1; i <= 4; ++i) {
      v1::ParsingMeasurement& measurement = *fit.add_measurements();
      measurement.set_size_bytes(1000 * i);
      measurement.set_seconds(1e-3 * i + 1e-5 * (i % 2));
    }
    add(fit);
    v1::FitCollectivesRequest collectives;
    for (int i = 1; i <= 4; ++i) {
      v1::AllReduce::MeasuredCollective& measurement = *collectives.add_measurements();
      measurement.set_kind(v1::Operation::ALL_REDUCE);
      measurement.set_workers(2 + i % 2);
      measurement.set_size_bytes(1000 * i);
      measurement.set_seconds(1e-3 * i + 1e-5 * (i % 2));
    }
    add(collectives);
    collectives.set_algorithm(v1::AllReduce::GLOO);
    add(collectives);
    v1::FitContentionRequest contention;
    for (const int threads : {128, 256, 512, 1024}) {
      for (const bool overlapped : {true, false}) {
        v1::FitContentionRequest::Transfer& transfer = *contention.add_transfers();
        transfer.set_threads(threads);
        transfer.set_size_bytes(1'000'000);
        transfer.set_seconds((overlapped ? 3e-3 : 2e-3) + 0.1 / threads);
        transfer.set_overlapped(overlapped);
      }
      v1::FitContentionRequest::Slowdown& slowdown = *contention.add_slowdowns();
      slowdown.set_threads(threads);
      slowdown.set_slowdown(1 + 1e-4 * threads);
    }
    add(contention);
    v1::RecommendLayoutRequest layouts;
    *layouts.mutable_inline_profile() = server::ToWire(TwoLayersDraft());
    layouts.set_devices(2);
    layouts.set_micro_batches(2);
    layouts.mutable_options()->set_replications(2);
    add(layouts);
    v1::FitRunsRequest runs;
    for (const int micro_batches : {4, 8, 16}) {
      v1::MeasuredRun& run = *runs.add_runs();
      run.set_devices(8);
      run.mutable_pipeline()->set_stages(4);
      run.mutable_pipeline()->set_micro_batches(micro_batches);
      run.set_step_seconds(0.1 * (micro_batches + 3));
    }
    add(runs);
    return seeds;
  }

  bool Run(std::string_view input) override {
    if (input.empty()) return false;
    const std::string bytes(input.substr(1));
    const size_t asked = MethodOf(input[0], Prototypes().size());
    bool is_answered = false;
    size_t method = 0;
    server::ForEachPredictionMethod([&]<typename Method>(Method) {
      if (method++ == asked) is_answered = Try<Method>(bytes);
    });
    return asked < method ? is_answered : TryTrace(bytes);
  }

  std::string Mutate(std::string input, const Mutation& mutation) const override {
    return MutateRequest(Prototypes(), std::move(input), mutation);
  }

 private:
  // A request of each method; the last one is of a trace.
  static std::vector<const Message*> Prototypes() {
    std::vector<const Message*> prototypes;
    server::ForEachPredictionMethod([&]<typename Method>(Method) {
      prototypes.push_back(&Method::Request::default_instance());
    });
    prototypes.push_back(&v1::GenerateTraceRequest::default_instance());
    return prototypes;
  }

  // The second time all runs are recalled, and the reply must be the same.
  template <typename Method>
  bool Try(const std::string& bytes) {
    runs_ = {};
    const absl::StatusOr<std::string> first = Compute<Method>(bytes);
    if (!first.ok()) {
      DemandSound(first.status());
      return false;
    }
    const absl::StatusOr<std::string> second = Compute<Method>(bytes);
    Demand(second.ok() && *second == *first,
           "a reply is the same with runs that are known:", second.status().ToString());
    return true;
  }

  template <typename Method>
  absl::StatusOr<std::string> Compute(const std::string& bytes) {
    typename Method::Request request;
    if (!request.ParseFromString(bytes)) return Enough();
    auto computation = Method::Check(handler_, request);
    if (!computation.ok()) return computation.status();
    int checks = 0;
    const auto answer = (*std::move(computation))(
        [&] { return ++checks > kMaxChecks ? Enough() : absl::OkStatus(); });
    if (!answer.ok()) return answer.status();
    return Written(*answer);
  }

  bool TryTrace(const std::string& bytes) {
    v1::GenerateTraceRequest request;
    if (!request.ParseFromString(bytes)) return false;
    auto computation = handler_.GenerateTrace(server::FromWire(request));
    size_t size = 0;
    const auto sink = [&](const std::string& piece) {
      size += piece.size();
      return size > kMaxTraceBytes ? Enough() : absl::OkStatus();
    };
    int checks = 0;
    const absl::Status traced =
        computation.ok()
            ? std::move(computation->run)(
                  sink, [&] { return ++checks > kMaxChecks ? Enough() : absl::OkStatus(); })
                  .status()
            : computation.status();
    if (!traced.ok()) DemandSound(traced);
    return traced.ok();
  }

  const server::FakeClock clock_;
  server::MemoryProfileStore store_;
  const InOrder executor_;
  testing::KeptRuns runs_;
  const PredictionHandler handler_;
};

}  // namespace

std::unique_ptr<FuzzTarget> MakeFuzzTarget() { return std::make_unique<PredictionRequestTarget>(); }

}  // namespace stepcast::fuzz
