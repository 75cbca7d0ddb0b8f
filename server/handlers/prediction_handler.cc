#include "server/handlers/prediction_handler.h"

#include <algorithm>
#include <optional>
#include <utility>
#include <variant>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

#include "core/advise/contention_fit.h"
#include "core/advise/optimize_job.h"
#include "core/advise/overlap_model.h"
#include "core/allocate/allocation.h"
#include "core/base/error.h"
#include "core/calibrate/parsing_overhead_fit.h"
#include "core/compare/comparison.h"
#include "core/diagnose/diagnosis.h"
#include "core/layouts/layout_search.h"
#include "core/layouts/run_fit.h"
#include "core/model/job_change.h"
#include "core/predict/order.h"
#include "core/predict/request_faults.h"
#include "core/predict/shared_batch.h"
#include "core/predict/throughput.h"
#include "core/recommend/recommendation.h"
#include "core/trace/trace.h"
#include "server/convert/profile_codec.h"
#include "server/handlers/engine_run.h"
#include "server/handlers/request_checks.h"

namespace stepcast::server {

// The profile a request is about.
struct PredictionHandler::Subject {
  Profile profile;
  std::string digest;
};

namespace {

// Fields of second recordings, without what their two kinds end in.
constexpr char kSecondOfChange[] = "scenario.change.second_";
constexpr char kSecondOfMemory[] = "memory.second_";

// The content of an answer that depends on its request alone.
constexpr char kNoProfile[] = "-";

// Jobs of one request whose profiles are not there; each look for others costs a page of the store.
constexpr int kMaxJobsWithSimilar = 4;

// The request's own budget is one of its options under another name; the shorter one counts.
template <typename Call>
void MergeTimeBudget(Call& call) {
  if (!call.time_budget_seconds) return;
  const double seconds = *call.time_budget_seconds;
  if (seconds <= 0) {
    call.faults.push_back(
        {.field = "time_budget",
         .description = absl::StrCat(seconds, " seconds: a budget must be above 0")});
    return;
  }
  std::optional<double>& budget = call.draft.options.time_budget_seconds;
  budget = std::min(budget.value_or(seconds), seconds);
}

}  // namespace

PredictionHandler::PredictionHandler(const Environment& environment, const ProfileLimits& limits)
    : environment_(environment),
      limits_(limits),
      decoded_(environment.max_decoded_bytes, environment.decoded_cache) {}

EngineRun PredictionHandler::RunOf(const SimulatedWork& work, const SimulationOptions& options,
                                   const std::string& digest) const {
  return EngineRun({.clock = environment_.clock, .observer = environment_.observer, .work = work},
                   {.options = options, .profile_digest = digest});
}

absl::StatusOr<PredictionHandler::Subject> PredictionHandler::Find(ProfileSource source,
                                                                   const std::vector<Fault>& faults,
                                                                   Names names) const {
  absl::StatusOr<Subject> recorded = FindRecorded(std::move(source.recorded), faults, "", names);
  if (!recorded.ok()) return recorded;
  const absl::StatusOr<std::optional<Subject>> second =
      FindSecond(std::move(source.second), faults, kSecondOfChange, names);
  if (!second.ok()) return second.status();
  if (!source.change.any() && !second->has_value()) return recorded;
  absl::StatusOr<Profile> changed =
      ChangedProfile(recorded->profile, source.change,
                     second->has_value() ? &(*second)->profile : nullptr, limits_);
  if (!changed.ok()) return WithFaults(faults, UnderPath("scenario.change", changed.status()));
  std::string digest = DigestOf(*changed);
  return Subject{.profile = *std::move(changed), .digest = std::move(digest)};
}

absl::StatusOr<std::optional<PredictionHandler::Subject>> PredictionHandler::FindSecond(
    ProfileOrigin second, const std::vector<Fault>& faults, const char* prefix, Names names) const {
  if (std::holds_alternative<std::monostate>(second)) return std::nullopt;
  absl::StatusOr<Subject> found = FindRecorded(std::move(second), faults, prefix, names);
  if (!found.ok()) return found.status();
  return *std::move(found);
}

absl::StatusOr<PredictionHandler::Subject> PredictionHandler::FindRecorded(
    ProfileOrigin source, const std::vector<Fault>& faults, const std::string& prefix,
    Names names) const {
  if (std::holds_alternative<std::monostate>(source)) {
    return WithFaults(
        faults, FaultsError("REQUEST_INVALID",
                            {{.field = "profile",
                              .description = "one of profile and inline_profile is required"}}));
  }
  if (auto* input = std::get_if<ProfileInput>(&source)) {
    const std::string inline_profile = prefix + "inline_profile";
    std::vector<Fault> all = FaultsUnder(inline_profile, std::move(input->faults));
    absl::StatusOr<Profile> profile = Profile::Create(std::move(input->draft), limits_);
    // The request's own faults are found again, and reported with others, once the profile is
    // sound.
    if (profile.ok() && all.empty())
      return Subject{.profile = *profile, .digest = DigestOf(*profile)};
    all.insert(all.end(), faults.begin(), faults.end());
    return WithFaults(std::move(all), UnderPath(inline_profile, profile.status()));
  }
  const absl::StatusOr<std::string> id =
      ProfileIdOf(std::get<std::string>(source), prefix + "profile");
  if (!id.ok()) return WithFaults(faults, id.status());
  absl::StatusOr<StoredProfile> stored = environment_.store.Get(*id);
  if (!stored.ok())
    return WithFaults(faults, names == Names::kSimilar
                                  ? NameSimilar(stored.status(), *id, environment_.store)
                                  : stored.status());
  std::string digest = stored->summary.digest;
  absl::StatusOr<Profile> profile = decoded_.Decode(*std::move(stored));
  if (!profile.ok()) return profile.status();
  return Subject{.profile = *std::move(profile), .digest = std::move(digest)};
}

template <typename Answer, typename Call, typename Resolve, typename Compute>
absl::StatusOr<Computation<Answer>> PredictionHandler::Prepare(std::string_view method, Call call,
                                                               Resolve resolve, Compute compute,
                                                               const std::string& beside) const {
  MergeTimeBudget(call);
  absl::StatusOr<Subject> subject = Find(std::move(call.source), call.faults);
  if (!subject.ok()) return subject.status();
  auto query = resolve(subject->profile, call.draft);
  const absl::Status checked = WithFaults(std::move(call.faults), query.status());
  if (!checked.ok()) return checked;
  std::string content =
      beside.empty() ? subject->digest : absl::StrCat(subject->digest, " ", beside);
  EngineRun run = RunOf({method, CommunicationOf(*query)}, query->options, subject->digest);
  ExpectedWork work{.method = std::string(method),
                    .profile = subject->digest,
                    .operations = OperationsOf(subject->profile, *query),
                    .most_seconds = query->options.time_budget_seconds};
  KnownRuns known{.profile_digest = subject->digest, .counter = work.simulated.get()};
  return Computation<Answer>(std::move(content), work,
                             [run = std::move(run), profile = std::move(subject->profile),
                              query = *std::move(query), known, compute, counter = work.simulated,
                              own = means()](StopCheck stop, const ComputingMeans* other) mutable {
                               const ComputingMeans& with = other == nullptr ? own : *other;
                               known.memory = with.runs;
                               if (with.helps) run.CountNothing();
                               return run.template Do<Answer>(stop, [&](StopCheck check) {
                                 return compute(profile, query, check, with.executor, known);
                               });
                             });
}

template <typename Answer, typename Call, typename Resolve, typename Compute>
absl::StatusOr<Computation<Answer>> PredictionHandler::PrepareShared(std::string_view method,
                                                                     Call call, Resolve resolve,
                                                                     Compute compute) const {
  if (!call.source.change.global_batch_size.has_value()) {
    return Prepare<Answer>(
        method, std::move(call),
        [&](const Profile& profile, const auto& draft) {
          return resolve(profile, draft, std::optional<SharedBatch>());
        },
        compute);
  }
  const JobChange change = std::exchange(call.source.change, {});
  const absl::StatusOr<std::optional<Subject>> second = FindSecond(
      std::exchange(call.source.second, {}), call.faults, kSecondOfChange, Names::kSimilar);
  if (!second.ok()) return second.status();
  return Prepare<Answer>(
      method, std::move(call),
      [&](const Profile& profile,
          const auto& draft) -> decltype(resolve(profile, draft, std::optional<SharedBatch>())) {
        absl::StatusOr<SharedBatch> shared = SharedBatch::Of(
            profile, change, second->has_value() ? &(*second)->profile : nullptr, limits_);
        if (!shared.ok()) return shared.status();
        return resolve(profile, draft, std::optional<SharedBatch>(*std::move(shared)));
      },
      compute, second->has_value() ? (*second)->digest : "");
}

absl::StatusOr<Computation<PredictThroughputAnswer>> PredictionHandler::PredictThroughput(
    PredictThroughputCall call) const {
  return PrepareShared<PredictThroughputAnswer>(
      "PredictThroughput", std::move(call),
      [](const Profile& profile, const ThroughputDraft& draft, std::optional<SharedBatch> shared) {
        return shared.has_value() ? ResolveSharedThroughput(profile, draft, *std::move(shared))
                                  : ResolveThroughput(profile, draft);
      },
      stepcast::PredictThroughput);
}

absl::StatusOr<Computation<RecommendWorkersAnswer>> PredictionHandler::RecommendWorkers(
    RecommendWorkersCall call) const {
  return PrepareShared<RecommendWorkersAnswer>("RecommendWorkers", std::move(call),
                                               ResolveRecommendation, stepcast::RecommendWorkers);
}

absl::StatusOr<Computation<OptimizeOrderAnswer>> PredictionHandler::OptimizeOrder(
    OptimizeOrderCall call) const {
  return Prepare<OptimizeOrderAnswer>(
      "OptimizeOrder", std::move(call), ResolveOrder,
      [](const Profile& profile, const OrderQuery& query, StopCheck stop, const Executor& executor,
         const KnownRuns& known) {
        return stepcast::OptimizeOrder(profile, query, stop, executor, known);
      });
}

absl::StatusOr<Computation<OptimizeCommunicationAnswer>> PredictionHandler::OptimizeCommunication(
    OptimizeCommunicationCall call) const {
  return Prepare<OptimizeCommunicationAnswer>(
      "OptimizeCommunication", std::move(call),
      [](const Profile& profile, const TuningDraft& draft) {
        return ResolveTuning(profile, draft);
      },
      stepcast::OptimizeCommunication);
}

absl::StatusOr<Computation<CompareModelsAnswer>> PredictionHandler::CompareModels(
    CompareModelsCall call) const {
  return Prepare<CompareModelsAnswer>("CompareModels", std::move(call), ResolveComparison,
                                      stepcast::CompareModels);
}

absl::StatusOr<Computation<DiagnoseJobAnswer>> PredictionHandler::DiagnoseJob(
    DiagnoseJobCall call) const {
  return Prepare<DiagnoseJobAnswer>("DiagnoseJob", std::move(call), ResolveDiagnosis,
                                    stepcast::DiagnoseJob);
}

absl::StatusOr<Computation<OptimizeJobAnswer>> PredictionHandler::OptimizeJob(
    OptimizeJobCall call) const {
  const absl::StatusOr<std::optional<Subject>> second =
      FindSecond(std::exchange(call.second, {}), call.faults, kSecondOfMemory, Names::kSimilar);
  if (!second.ok()) return second.status();
  const Subject* const told = second->has_value() ? &**second : nullptr;
  return Prepare<OptimizeJobAnswer>(
      "OptimizeJob", std::move(call),
      [&](const Profile& profile, const StrategyDraft& draft) {
        return ResolveStrategies(profile, draft, told == nullptr ? nullptr : &told->profile);
      },
      stepcast::OptimizeJob, told == nullptr ? "" : told->digest);
}

absl::StatusOr<AllocationJob> PredictionHandler::ResolveJob(AllocationJobCall call,
                                                            const AllocationQuery& query,
                                                            const Names names,
                                                            JobDigests& digests) const {
  std::optional<SharedBatch> shared;
  std::optional<Subject> second;
  JobChange change;
  if (call.source.change.global_batch_size.has_value()) {
    change = std::exchange(call.source.change, {});
    absl::StatusOr<std::optional<Subject>> found =
        FindSecond(std::exchange(call.source.second, {}), call.faults, kSecondOfChange, names);
    if (!found.ok()) return found.status();
    second = *std::move(found);
  }
  absl::StatusOr<Subject> subject = Find(std::move(call.source), call.faults, names);
  if (!subject.ok()) return subject.status();
  if (change.global_batch_size.has_value()) {
    absl::StatusOr<SharedBatch> batch = SharedBatch::Of(
        subject->profile, change, second.has_value() ? &second->profile : nullptr, limits_);
    if (!batch.ok()) return WithFaults(std::move(call.faults), batch.status());
    shared = *std::move(batch);
    if (second.has_value()) digests.second = std::move(second->digest);
  }
  digests.profile = std::move(subject->digest);
  absl::StatusOr<AllocationJob> job = ResolveAllocationJob(
      subject->profile, call.draft, query.capacity, query.objective, std::move(shared));
  const absl::Status checked = WithFaults(std::move(call.faults), job.status());
  if (!checked.ok()) return checked;
  job->known.profile_digest = digests.profile;
  return job;
}

absl::StatusOr<Computation<AllocateWorkersAnswer>> PredictionHandler::AllocateWorkers(
    AllocateWorkersCall call) const {
  absl::StatusOr<AllocationQuery> query = ResolveAllocation(call.draft);
  const absl::Status checked = WithFaults(std::move(call.faults), query.status());
  if (!checked.ok()) return checked;
  std::vector<JobDigests> digests(call.jobs.size());
  int without_profile = 0;
  for (size_t i = 0; i < call.jobs.size(); ++i) {
    const Names names = without_profile < kMaxJobsWithSimilar ? Names::kSimilar : Names::kNone;
    query->jobs.push_back(ResolveJob(std::move(call.jobs[i]), *query, names, digests[i]));
    without_profile += absl::IsNotFound(query->jobs.back().status()) ? 1 : 0;
  }
  EngineRun run = RunOf({"AllocateWorkers", CommunicationOf(*query)}, query->options, "");
  const bool all_found = std::none_of(digests.begin(), digests.end(),
                                      [](const JobDigests& job) { return job.profile.empty(); });
  std::string content = all_found
                            ? absl::StrJoin(digests, " ",
                                            [](std::string* text, const JobDigests& job) {
                                              absl::StrAppend(text, job.profile, "+", job.second);
                                            })
                            : "";
  ExpectedWork work{.method = "AllocateWorkers",
                    .operations = OperationsOf(*query),
                    .most_seconds = query->options.time_budget_seconds};
  for (absl::StatusOr<AllocationJob>& job : query->jobs) {
    if (job.ok()) job->known.counter = work.simulated.get();
  }
  return Computation<AllocateWorkersAnswer>(
      std::move(content), work,
      [run = std::move(run), query = *std::move(query), counter = work.simulated,
       ids = std::move(call.draft.job_ids), digests = std::move(digests),
       own = means()](StopCheck stop, const ComputingMeans* other) mutable {
        const ComputingMeans& with = other == nullptr ? own : *other;
        if (with.helps) run.CountNothing();
        for (absl::StatusOr<AllocationJob>& job : query.jobs)
          if (job.ok()) job->known.memory = with.runs;
        auto answer = run.Do<AllocateWorkersAnswer>(stop, [&](StopCheck check) {
          return stepcast::AllocateWorkers(query, check, with.executor);
        });
        if (answer.ok()) {
          answer->job_ids = std::move(ids);
          for (JobDigests& job : digests) answer->profile_digests.push_back(std::move(job.profile));
        }
        return answer;
      });
}

absl::StatusOr<Computation<FitParsingOverheadAnswer>> PredictionHandler::FitParsingOverhead(
    const FitParsingOverheadCall& call) const {
  absl::StatusOr<ParsingOverheadQuery> query = ResolveParsingOverhead(call.draft);
  if (!query.ok()) return query.status();
  return Computation<FitParsingOverheadAnswer>(
      kNoProfile, {.method = "FitParsingOverhead"},
      [query = *std::move(query)](
          StopCheck stop, const ComputingMeans*) -> absl::StatusOr<FitParsingOverheadAnswer> {
        absl::StatusOr<ParsingOverheadFit> fit = stepcast::FitParsingOverhead(query, stop);
        if (!fit.ok()) return fit.status();
        return FitParsingOverheadAnswer{.answer = *fit, .context = {}};
      });
}

absl::StatusOr<Computation<FitCollectivesAnswer>> PredictionHandler::FitCollectives(
    FitCollectivesCall call) const {
  absl::StatusOr<CollectiveFitQuery> query = ResolveCollectiveFit(call.draft);
  const absl::Status checked = WithFaults(std::move(call.faults), query.status());
  if (!checked.ok()) return checked;
  return Computation<FitCollectivesAnswer>(
      kNoProfile, {.method = "FitCollectives"},
      [query = *std::move(query)](StopCheck stop,
                                  const ComputingMeans*) -> absl::StatusOr<FitCollectivesAnswer> {
        absl::StatusOr<CollectiveFit> fit = stepcast::FitCollectives(query, stop);
        if (!fit.ok()) return fit.status();
        return FitCollectivesAnswer{.answer = *std::move(fit), .context = {}};
      });
}

absl::StatusOr<Computation<FitContentionAnswer>> PredictionHandler::FitContention(
    FitContentionCall call) const {
  if (absl::Status status = CheckMeasurements(call.draft); !status.ok()) return status;
  return Computation<FitContentionAnswer>(
      kNoProfile, {.method = "FitContention"},
      [measured = std::move(call.draft)](
          StopCheck stop, const ComputingMeans*) -> absl::StatusOr<FitContentionAnswer> {
        absl::StatusOr<ContentionFit> fit = stepcast::FitContention(measured, stop);
        if (!fit.ok()) return fit.status();
        FitContentionAnswer answer{.answer = *std::move(fit),
                                   .confidence_level = measured.confidence_level,
                                   .assumptions = {},
                                   .unusable_because = {},
                                   .context = {}};
        const std::vector<int32_t> threads = ThreadsOf(measured);
        FaultList faults;
        CheckContention(answer.answer.contention, threads, faults);
        if (faults.empty()) {
          answer.assumptions = CheckAssumptions(answer.answer.contention, threads);
        } else {
          const Fault fault = std::move(faults).Take().front();
          answer.unusable_because = absl::StrCat(fault.field, ": ", fault.description);
        }
        return answer;
      });
}

absl::StatusOr<Computation<RecommendLayoutAnswer>> PredictionHandler::RecommendLayout(
    RecommendLayoutCall call) const {
  return Prepare<RecommendLayoutAnswer>("RecommendLayout", std::move(call), ResolveLayouts,
                                        stepcast::RecommendLayout);
}

absl::StatusOr<Computation<FitRunsAnswer>> PredictionHandler::FitRuns(FitRunsCall call) const {
  absl::StatusOr<RunFit> fit = FitMeasuredRuns(call.draft);
  const absl::Status checked = WithFaults(std::move(call.faults), fit.status());
  if (!checked.ok()) return checked;
  return Computation<FitRunsAnswer>(
      kNoProfile, {.method = "FitRuns"},
      [fit = *std::move(fit)](StopCheck,
                              const ComputingMeans*) mutable -> absl::StatusOr<FitRunsAnswer> {
        return FitRunsAnswer{.answer = std::move(fit), .context = {}};
      });
}

absl::StatusOr<TraceComputation> PredictionHandler::GenerateTrace(GenerateTraceCall call) const {
  absl::StatusOr<Subject> subject = Find(std::move(call.source), call.faults);
  if (!subject.ok()) return subject.status();
  absl::StatusOr<TraceQuery> query = ResolveTrace(subject->profile, call.draft);
  const absl::Status checked = WithFaults(std::move(call.faults), query.status());
  if (!checked.ok()) return checked;
  EngineRun run =
      RunOf({"GenerateTrace", CommunicationOf(*query)}, query->options, subject->digest);
  ExpectedWork work{.method = "GenerateTrace",
                    .profile = subject->digest,
                    .operations = OperationsOf(subject->profile, *query)};
  return TraceComputation{
      .work = std::move(work),
      .run = [run = std::move(run), profile = subject->profile, query = *std::move(query)](
                 TextSink sink, StopCheck stop) mutable {
        return run.Do<GenerateTraceAnswer>(
            stop, [&](StopCheck check) { return WriteTrace(profile, query, sink, check); });
      }};
}

}  // namespace stepcast::server
