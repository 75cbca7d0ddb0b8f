// What PredictionService does, in plain types: finds the profile, checks the request against it, simulates.
//
// Each method does its work in two parts, for two pools: checking, which may block on the store, and a computation, which does nothing but compute.
// Knows nothing of gRPC, proto or threads: it is given an executor for the runs of one computation. Threads: safe; computations share nothing that
// changes. What one is told to stop by is asked by all threads that compute.
// Failure: INVALID_ARGUMENT with every fault (paths relative to the request), NOT_FOUND for a profile's name, and what the core's functions fail
// with.
#pragma once

#include <string>

#include "absl/functional/any_invocable.h"
#include "absl/status/statusor.h"

#include "core/base/executor.h"
#include "core/base/stop_check.h"
#include "core/model/profile.h"
#include "core/model/profile_limits.h"
#include "core/trace/text_pieces.h"
#include "server/base/clock.h"
#include "server/convert/prediction_requests.h"
#include "server/handlers/simulation_observer.h"
#include "server/store/profile_store.h"

namespace stepcast::server {

// What is left of a checked request. Keeps its profile alive; may be run on any thread, once. A time budget counts from the checking on.
template <typename Answer>
using Computation = absl::AnyInvocable<absl::StatusOr<Answer>(StopCheck) &&>;

// The same for a trace, whose pieces go to a sink, which may block.
using TraceComputation = absl::AnyInvocable<absl::StatusOr<GenerateTraceAnswer>(TextSink, StopCheck) &&>;

class PredictionHandler {
 public:
  // Store, clock, executor and observer, which may be null, are borrowed, and must outlive the computations.
  PredictionHandler(ProfileStore& store, const Clock& clock, const ProfileLimits& limits, const Executor& executor,
                    SimulationObserver* observer = nullptr);

  absl::StatusOr<Computation<PredictThroughputAnswer>> PredictThroughput(PredictThroughputCall call) const;
  absl::StatusOr<Computation<RecommendWorkersAnswer>> RecommendWorkers(RecommendWorkersCall call) const;
  absl::StatusOr<Computation<OptimizeOrderAnswer>> OptimizeOrder(OptimizeOrderCall call) const;
  // A job that is not found or breaks a rule does not fail the call: it has its own status in the answer.
  absl::StatusOr<Computation<AllocateWorkersAnswer>> AllocateWorkers(AllocateWorkersCall call) const;
  absl::StatusOr<Computation<CompareModelsAnswer>> CompareModels(CompareModelsCall call) const;
  absl::StatusOr<TraceComputation> GenerateTrace(GenerateTraceCall call) const;

 private:
  struct Subject;

  // `faults` are the request's: they go before what is found here, and are returned with it.
  absl::StatusOr<Subject> Find(ProfileSource source, const std::vector<Fault>& faults) const;
  // The digest is set where a profile was found.
  absl::StatusOr<AllocationJob> ResolveJob(AllocationJobCall call, const AllocationQuery& query, std::string& profile_digest) const;

  ProfileStore& store_;
  const Clock& clock_;
  const ProfileLimits limits_;
  const Executor& executor_;
  SimulationObserver* const observer_;
};

}  // namespace stepcast::server
