// The handler of PredictionService, and the profiles that it keeps as it computes with them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/functional/any_invocable.h"
#include "absl/status/statusor.h"

#include "core/base/executor.h"
#include "core/base/stop_check.h"
#include "core/model/profile.h"
#include "core/predict/run_memory.h"
#include "core/trace/trace_events.h"
#include "server/base/bounded_cache.h"
#include "server/base/clock.h"
#include "server/convert/prediction_requests.h"
#include "server/convert/profile_codec.h"
#include "server/handlers/engine_run.h"
#include "server/handlers/expected_work.h"
#include "server/store/profile_store.h"

namespace stepcast::server {

// Profiles as they were decoded from what a store keeps, within a bound of bytes.
//
// Decoding takes longer than all else that a call needs before it waits for its simulation, or is
// refused. A decoded profile stands for the very bytes that it was decoded from: they are compared,
// so none is ever stale. Cost: of a profile that is kept a comparison of its bytes, of any other
// what DecodeProfile takes. Threads: safe. Lifetime: borrows the observer.
class DecodedProfiles {
 public:
  // `observer` may be null. With a bound of 0 nothing is kept.
  explicit DecodedProfiles(size_t max_bytes, CacheObserver* observer = nullptr)
      : keeps_(max_bytes > 0), kept_(max_bytes, observer) {}

  // DecodeProfile of the content.
  absl::StatusOr<Profile> Decode(StoredProfile stored) {
    if (!keeps_) return DecodeProfile(stored.content);
    const auto kept = kept_.Find(stored.summary.id);
    if (kept != nullptr && kept->content == stored.content) return kept->profile;
    absl::StatusOr<Profile> profile = DecodeProfile(stored.content);
    if (!profile.ok()) return profile;
    const size_t bytes = stored.content.size() + BytesOf(profile->content());
    kept_.Keep(stored.summary.id,
               std::make_shared<const Entry>(
                   Entry{.content = std::move(stored.content), .profile = *profile}),
               bytes);
    return profile;
  }

 private:
  struct Entry {
    std::string content;
    Profile profile;
  };

  static size_t BytesOf(const RecordedStep& step) {
    return sizeof(step) + (step.start_ns.size() + step.end_ns.size()) * sizeof(int64_t);
  }

  // About what it takes in memory.
  static size_t BytesOf(const ProfileDraft& draft) {
    constexpr size_t kLabelBytes = 96;  // what holds one
    size_t bytes =
        sizeof(draft) + draft.display_name.size() + draft.model.size() + draft.framework.size();
    for (const auto& [key, value] : draft.labels) bytes += key.size() + value.size() + kLabelBytes;
    for (const Operation& operation : draft.operations) {
      bytes += sizeof(operation) + operation.name.size() + operation.parameter.size() +
               operation.waiting_for.size() * sizeof(int32_t);
    }
    for (const RecordedStep& step : draft.steps) bytes += BytesOf(step);
    if (!draft.recording) return bytes;
    bytes += draft.recording->collectives.size() * sizeof(LaunchedCollective);
    for (const WorkerRecording& worker : draft.recording->workers) {
      bytes += sizeof(worker) + worker.name.size() + worker.runs.size() * sizeof(CollectiveRun) +
               (worker.step_begins_ns.size() + worker.step_ends_ns.size()) * sizeof(int64_t);
      for (const RecordedStep& step : worker.steps) bytes += BytesOf(step);
    }
    return bytes;
  }

  const bool keeps_;
  BoundedCache<Entry> kept_;
};

// The means of a computation: threads, and a memory of runs.
struct ComputingMeans {
  const Executor& executor;
  RunMemory* runs = nullptr;  // null: no run is kept
  bool helps = false;         // another server gives the answer, and counts it
};

// A computation: the rest of a request that has been checked.
//
// Keeps its profile alive; may be run on any thread, once.
// A time budget counts from the checking on.
template <typename Answer>
class Computation {
 public:
  using Run = absl::AnyInvocable<absl::StatusOr<Answer>(StopCheck, const ComputingMeans*) &&>;

  // `content`: see below.
  Computation(std::string content, ExpectedWork work, Run run)
      : content_(std::move(content)), work_(std::move(work)), run_(std::move(run)) {}

  // `means`, in place of the handler's own.
  absl::StatusOr<Answer> operator()(StopCheck stop, const ComputingMeans* means = nullptr) && {
    return std::move(run_)(stop, means);
  }

  // Digests of the profiles it computes with: with the same ones, an equal request of the same
  // method has the same answer. Empty where it must not be shared, because it says what a profile's
  // store failed with.
  const std::string& content() const { return content_; }
  const ExpectedWork& work() const { return work_; }

 private:
  std::string content_;
  ExpectedWork work_;
  Run run_;
};

// Computation of a trace, whose pieces go to a sink, which may block.
struct TraceComputation {
  ExpectedWork work;
  absl::AnyInvocable<absl::StatusOr<GenerateTraceAnswer>(TextSink, StopCheck) &&> run;
};

// The handler of PredictionService, in plain types: finds the profile, checks the request against
// it, simulates.
//
// Each method does its work in two parts, for two pools: checking, which may block on the store,
// and a computation, which does nothing but compute.
// Knows nothing of gRPC, proto or threads: it is given an executor for the runs of one computation.
// Threads: safe; computations share nothing that changes. What one is told to stop by is asked by
// all threads that compute.
// Failure: INVALID_ARGUMENT with every fault (paths relative to the request), NOT_FOUND for a
// profile's name, and what the core's functions fail with.
class PredictionHandler {
 public:
  // The surroundings that a handler borrows; they must outlive the computations.
  struct Environment {
    ProfileStore& store;
    const Clock& clock;
    const Executor& executor;
    RunMemory* runs = nullptr;               // of all computations; may be null
    SimulationObserver* observer = nullptr;  // may be null
    size_t max_decoded_bytes = 0;            // of stored profiles that are kept decoded
    CacheObserver* decoded_cache = nullptr;  // of these; may be null
  };

  PredictionHandler(const Environment& environment, const ProfileLimits& limits);

  absl::StatusOr<Computation<PredictThroughputAnswer>> PredictThroughput(
      PredictThroughputCall call) const;
  absl::StatusOr<Computation<RecommendWorkersAnswer>> RecommendWorkers(
      RecommendWorkersCall call) const;
  absl::StatusOr<Computation<OptimizeOrderAnswer>> OptimizeOrder(OptimizeOrderCall call) const;
  absl::StatusOr<Computation<OptimizeCommunicationAnswer>> OptimizeCommunication(
      OptimizeCommunicationCall call) const;
  // A job that is not found or breaks a rule does not fail the call: it has its own status in the
  // answer.
  absl::StatusOr<Computation<AllocateWorkersAnswer>> AllocateWorkers(
      AllocateWorkersCall call) const;
  absl::StatusOr<Computation<CompareModelsAnswer>> CompareModels(CompareModelsCall call) const;
  absl::StatusOr<Computation<DiagnoseJobAnswer>> DiagnoseJob(DiagnoseJobCall call) const;
  absl::StatusOr<Computation<OptimizeJobAnswer>> OptimizeJob(OptimizeJobCall call) const;
  // About no profile, and nothing is simulated.
  absl::StatusOr<Computation<FitParsingOverheadAnswer>> FitParsingOverhead(
      const FitParsingOverheadCall& call) const;
  // About no profile, and nothing is simulated.
  absl::StatusOr<Computation<FitCollectivesAnswer>> FitCollectives(FitCollectivesCall call) const;
  absl::StatusOr<Computation<FitContentionAnswer>> FitContention(FitContentionCall call) const;
  absl::StatusOr<Computation<RecommendLayoutAnswer>> RecommendLayout(
      RecommendLayoutCall call) const;
  // About no profile, and nothing is simulated.
  absl::StatusOr<Computation<FitRunsAnswer>> FitRuns(FitRunsCall call) const;
  absl::StatusOr<TraceComputation> GenerateTrace(GenerateTraceCall call) const;

  // Changes whenever what a profile's name stands for may have changed (ProfileStore::Generation).
  uint64_t ProfilesGeneration() const { return environment_.store.Generation(); }
  // On which computations run.
  const Executor& executor() const { return environment_.executor; }

 private:
  struct Subject;

  // The names in the error for a profile that is not there: of others that are like it, or none.
  enum class Names : uint8_t { kSimilar, kNone };
  // `faults` are the request's: they go before what is found here, and are returned with it.
  absl::StatusOr<Subject> Find(ProfileSource source, const std::vector<Fault>& faults,
                               Names names = Names::kSimilar) const;
  // The profile of a source without its change; `prefix`: of the two fields that may name it.
  absl::StatusOr<Subject> FindRecorded(ProfileOrigin source, const std::vector<Fault>& faults,
                                       const std::string& prefix, Names names) const;
  // A second recording, by the beginning of its two fields; none was given: none.
  absl::StatusOr<std::optional<Subject>> FindSecond(ProfileOrigin second,
                                                    const std::vector<Fault>& faults,
                                                    const char* prefix, Names names) const;
  // Finds the profile, checks the request with `resolve`, and leaves `compute` to be done.
  // `beside`: digest of another profile that the answer depends on.
  template <typename Answer, typename Call, typename Resolve, typename Compute>
  absl::StatusOr<Computation<Answer>> Prepare(std::string_view method, Call call, Resolve resolve,
                                              Compute compute,
                                              const std::string& beside = "") const;
  // The same, where workers may divide a batch among them: `resolve` is then given it, and the
  // profile as recorded.
  template <typename Answer, typename Call, typename Resolve, typename Compute>
  absl::StatusOr<Computation<Answer>> PrepareShared(std::string_view method, Call call,
                                                    Resolve resolve, Compute compute) const;
  struct JobDigests {
    std::string profile;
    std::string second;  // that tells how a batch that is divided would take
  };
  // The digests are set where the profiles were found.
  absl::StatusOr<AllocationJob> ResolveJob(AllocationJobCall call, const AllocationQuery& query,
                                           Names names, JobDigests& digests) const;

  ComputingMeans means() const { return {environment_.executor, environment_.runs}; }
  // For one computation.
  EngineRun RunOf(const SimulatedWork& work, const SimulationOptions& options,
                  const std::string& digest) const;

  const Environment environment_;
  const ProfileLimits limits_;
  mutable DecodedProfiles decoded_;
};

}  // namespace stepcast::server
