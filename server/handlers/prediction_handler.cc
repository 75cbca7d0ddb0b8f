#include "server/handlers/prediction_handler.h"

#include <algorithm>
#include <optional>
#include <utility>
#include <variant>
#include <vector>

#include "absl/strings/str_cat.h"

#include "core/allocate/allocation.h"
#include "core/base/error.h"
#include "core/compare/comparison.h"
#include "core/predict/order.h"
#include "core/predict/throughput.h"
#include "core/recommend/recommendation.h"
#include "core/trace/trace.h"
#include "server/convert/profile_codec.h"
#include "server/handlers/engine_run.h"
#include "server/handlers/profile_name.h"
#include "server/handlers/request_faults.h"

namespace stepcast::server {

// The profile a request is about.
struct PredictionHandler::Subject {
  Profile profile;
  std::string digest;
};

namespace {

// The request's own budget is one of its options under another name; the shorter one counts.
void MergeTimeBudget(OptimizeOrderCall& call) {
  if (!call.time_budget_seconds) return;
  const double seconds = *call.time_budget_seconds;
  if (seconds <= 0) {
    call.faults.push_back({.field = "time_budget", .description = absl::StrCat(seconds, " seconds: a budget must be above 0")});
    return;
  }
  std::optional<double>& budget = call.draft.options.time_budget_seconds;
  budget = std::min(budget.value_or(seconds), seconds);
}

}  // namespace

PredictionHandler::PredictionHandler(ProfileStore& store, const Clock& clock, const ProfileLimits& limits, const Executor& executor,
                                     SimulationObserver* observer)
    : store_(store), clock_(clock), limits_(limits), executor_(executor), observer_(observer) {}

absl::StatusOr<PredictionHandler::Subject> PredictionHandler::Find(ProfileSource source, const std::vector<Fault>& faults) const {
  if (std::holds_alternative<std::monostate>(source)) {
    return WithFaults(faults, FaultsError("REQUEST_INVALID", {{.field = "profile", .description = "one of profile and inline_profile is required"}}));
  }
  if (auto* input = std::get_if<ProfileInput>(&source)) {
    std::vector<Fault> all = FaultsUnder("inline_profile", std::move(input->faults));
    absl::StatusOr<Profile> profile = Profile::Create(std::move(input->draft), limits_);
    // The request's own faults are found again, and reported with others, once the profile is sound.
    if (profile.ok() && all.empty()) return Subject{.profile = *profile, .digest = DigestOf(*profile)};
    all.insert(all.end(), faults.begin(), faults.end());
    return WithFaults(std::move(all), UnderPath("inline_profile", profile.status()));
  }
  const absl::StatusOr<std::string> id = ProfileIdOf(std::get<std::string>(source), "profile");
  if (!id.ok()) return WithFaults(faults, id.status());
  absl::StatusOr<StoredProfile> stored = store_.Get(*id);
  if (!stored.ok()) return WithFaults(faults, stored.status());
  absl::StatusOr<Profile> profile = DecodeProfile(stored->content);
  if (!profile.ok()) return profile.status();
  return Subject{.profile = *std::move(profile), .digest = std::move(stored->summary.digest)};
}

absl::StatusOr<Computation<PredictThroughputAnswer>> PredictionHandler::PredictThroughput(PredictThroughputCall call) const {
  absl::StatusOr<Subject> subject = Find(std::move(call.source), call.faults);
  if (!subject.ok()) return subject.status();
  absl::StatusOr<ThroughputQuery> query = ResolveThroughput(subject->profile, call.draft);
  const absl::Status checked = WithFaults(std::move(call.faults), query.status());
  if (!checked.ok()) return checked;
  EngineRun run({.clock = clock_, .observer = observer_, .method = "PredictThroughput"},
                {.options = query->options, .profile_digest = std::move(subject->digest)});
  return [run = std::move(run), profile = subject->profile, query = *std::move(query), &executor = executor_](StopCheck stop) mutable {
    return run.Do<PredictThroughputAnswer>(stop, [&](StopCheck check) { return stepcast::PredictThroughput(profile, query, check, executor); });
  };
}

absl::StatusOr<Computation<RecommendWorkersAnswer>> PredictionHandler::RecommendWorkers(RecommendWorkersCall call) const {
  absl::StatusOr<Subject> subject = Find(std::move(call.source), call.faults);
  if (!subject.ok()) return subject.status();
  absl::StatusOr<RecommendationQuery> query = ResolveRecommendation(subject->profile, call.draft);
  const absl::Status checked = WithFaults(std::move(call.faults), query.status());
  if (!checked.ok()) return checked;
  EngineRun run({.clock = clock_, .observer = observer_, .method = "RecommendWorkers"},
                {.options = query->options, .profile_digest = std::move(subject->digest)});
  return [run = std::move(run), profile = subject->profile, query = *std::move(query), &executor = executor_](StopCheck stop) mutable {
    return run.Do<RecommendWorkersAnswer>(stop, [&](StopCheck check) { return stepcast::RecommendWorkers(profile, query, check, executor); });
  };
}

absl::StatusOr<Computation<OptimizeOrderAnswer>> PredictionHandler::OptimizeOrder(OptimizeOrderCall call) const {
  MergeTimeBudget(call);
  absl::StatusOr<Subject> subject = Find(std::move(call.source), call.faults);
  if (!subject.ok()) return subject.status();
  absl::StatusOr<OrderQuery> query = ResolveOrder(subject->profile, call.draft);
  const absl::Status checked = WithFaults(std::move(call.faults), query.status());
  if (!checked.ok()) return checked;
  EngineRun run({.clock = clock_, .observer = observer_, .method = "OptimizeOrder"},
                {.options = query->options, .profile_digest = std::move(subject->digest)});
  return [run = std::move(run), profile = subject->profile, query = *std::move(query), &executor = executor_](StopCheck stop) mutable {
    return run.Do<OptimizeOrderAnswer>(stop, [&](StopCheck check) { return stepcast::OptimizeOrder(profile, query, check, executor); });
  };
}

absl::StatusOr<AllocationJob> PredictionHandler::ResolveJob(AllocationJobCall call, const AllocationQuery& query, std::string& profile_digest) const {
  absl::StatusOr<Subject> subject = Find(std::move(call.source), call.faults);
  if (!subject.ok()) return subject.status();
  profile_digest = std::move(subject->digest);
  absl::StatusOr<AllocationJob> job = ResolveAllocationJob(subject->profile, call.draft, query.capacity, query.objective);
  const absl::Status checked = WithFaults(std::move(call.faults), job.status());
  if (!checked.ok()) return checked;
  return job;
}

absl::StatusOr<Computation<AllocateWorkersAnswer>> PredictionHandler::AllocateWorkers(AllocateWorkersCall call) const {
  absl::StatusOr<AllocationQuery> query = ResolveAllocation(call.draft);
  const absl::Status checked = WithFaults(std::move(call.faults), query.status());
  if (!checked.ok()) return checked;
  std::vector<std::string> digests(call.jobs.size());
  for (size_t i = 0; i < call.jobs.size(); ++i) query->jobs.push_back(ResolveJob(std::move(call.jobs[i]), *query, digests[i]));
  EngineRun run({.clock = clock_, .observer = observer_, .method = "AllocateWorkers"}, {.options = query->options});
  return [run = std::move(run), query = *std::move(query), ids = std::move(call.draft.job_ids), digests = std::move(digests),
          &executor = executor_](StopCheck stop) mutable {
    auto answer = run.Do<AllocateWorkersAnswer>(stop, [&](StopCheck check) { return stepcast::AllocateWorkers(query, check, executor); });
    if (answer.ok()) {
      answer->job_ids = std::move(ids);
      answer->profile_digests = std::move(digests);
    }
    return answer;
  };
}

absl::StatusOr<Computation<CompareModelsAnswer>> PredictionHandler::CompareModels(CompareModelsCall call) const {
  absl::StatusOr<Subject> subject = Find(std::move(call.source), call.faults);
  if (!subject.ok()) return subject.status();
  absl::StatusOr<ComparisonQuery> query = ResolveComparison(subject->profile, call.draft);
  const absl::Status checked = WithFaults(std::move(call.faults), query.status());
  if (!checked.ok()) return checked;
  EngineRun run({.clock = clock_, .observer = observer_, .method = "CompareModels"},
                {.options = query->options, .profile_digest = std::move(subject->digest)});
  return [run = std::move(run), profile = subject->profile, query = *std::move(query), &executor = executor_](StopCheck stop) mutable {
    return run.Do<CompareModelsAnswer>(stop, [&](StopCheck check) { return stepcast::CompareModels(profile, query, check, executor); });
  };
}

absl::StatusOr<TraceComputation> PredictionHandler::GenerateTrace(GenerateTraceCall call) const {
  absl::StatusOr<Subject> subject = Find(std::move(call.source), call.faults);
  if (!subject.ok()) return subject.status();
  absl::StatusOr<TraceQuery> query = ResolveTrace(subject->profile, call.draft);
  const absl::Status checked = WithFaults(std::move(call.faults), query.status());
  if (!checked.ok()) return checked;
  EngineRun run({.clock = clock_, .observer = observer_, .method = "GenerateTrace"},
                {.options = query->options, .profile_digest = std::move(subject->digest)});
  return [run = std::move(run), profile = subject->profile, query = *std::move(query)](TextSink sink, StopCheck stop) mutable {
    return run.Do<GenerateTraceAnswer>(stop, [&](StopCheck check) { return WriteTrace(profile, query, sink, check); });
  };
}

}  // namespace stepcast::server
