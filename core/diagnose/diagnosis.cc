#include "core/diagnose/diagnosis.h"

#include <algorithm>
#include <cstddef>
#include <deque>
#include <iterator>
#include <map>
#include <memory>
#include <optional>
#include <utility>
#include <variant>

#include "absl/strings/str_cat.h"

#include "core/advise/communication_query.h"
#include "core/advise/method_trials.h"
#include "core/base/distributions.h"
#include "core/base/error.h"
#include "core/communication/all_reduce.h"
#include "core/communication/job.h"
#include "core/model/all_reduce.h"
#include "core/model/multi_rank_recording.h"
#include "core/predict/bottleneck.h"
#include "core/predict/point_set.h"
#include "core/predict/replications.h"
#include "core/replay/execution.h"
#include "core/replay/recorded_job.h"

namespace stepcast {

namespace {

// The best that a search found.
struct Best {
  Changed changed;
  std::string setting;
  std::vector<TunedGroup> groups;
};

struct NamedOrder {
  TransferOrder order;
  const char* name;
};
constexpr NamedOrder kOrdersToTry[] = {{TransferOrder::kTac, "TAC"},
                                       {TransferOrder::kTic, "TIC"},
                                       {TransferOrder::kReverse, "REVERSE"}};

SecondsByKind SecondsOf(const TimeByKind& times, double steps) {
  SecondsByKind seconds{};
  for (size_t kind = 0; kind < kPathKinds; ++kind) seconds[kind] = ToSeconds(times[kind]) / steps;
  return seconds;
}

class Diagnostician {
 public:
  Diagnostician(const Profile& profile, const DiagnosisQuery& query, StopCheck stop)
      : profile_(profile), query_(query), stop_(stop) {}

  absl::StatusOr<Diagnosis> Diagnose(const Executor& executor, const KnownRuns& known) {
    PointSet points(profile_, query_.options, known);
    const absl::StatusOr<size_t> base = points.Add(query_.scenario, stop_);
    if (!base.ok()) return base.status();
    // The bottleneck as a prediction finds it: before there are changes that run in full.
    if (absl::Status status = points.RunAll(stop_, executor); !status.ok()) return status;
    if (absl::Status status = points.FindBottlenecks({*base}, stop_, executor); !status.ok())
      return status;
    const absl::StatusOr<JobChanges> changes = JobChanges::Of(profile_, stop_);
    if (!changes.ok()) return changes.status();
    struct Asked {
      WhatIf change;
      PointSet* points;
      size_t index;
    };
    std::vector<Asked> asked;
    std::deque<OtherJob> others;
    for (const WhatIf change :
         {WhatIf::kNoStragglers, WhatIf::kLinksTwiceAsFast, WhatIf::kNoLatency,
          WhatIf::kComputationTwiceAsFast, WhatIf::kOneWorkerFewer, WhatIf::kServersTwiceAsFast,
          WhatIf::kNoHostWait, WhatIf::kDataLoadingTwiceAsFast, WhatIf::kNoDataWait}) {
      const size_t before = others.size();
      Changed changed = ChangeBy(change, *changes, known, others);
      if (!changed.scenario.has_value()) {
        diagnosis_.left_out.push_back({.change = change, .reason = std::move(changed.why_not)});
        continue;
      }
      PointSet& where = others.size() > before ? others.back().points : points;
      const absl::StatusOr<size_t> index = where.AddAlone(*changed.scenario, stop_);
      if (!index.ok()) return index.status();
      asked.push_back({.change = change, .points = &where, .index = *index});
    }
    if (absl::Status status = FollowRecording(); !status.ok()) return status;
    if (absl::Status status = FollowPath(); !status.ok()) return status;
    if (absl::Status status = points.RunAll(stop_, executor); !status.ok()) return status;
    for (OtherJob& other : others) {
      if (absl::Status status = other.points.RunAll(stop_, executor); !status.ok()) return status;
    }
    diagnosis_.prediction = points.Summarize(*base);
    const std::vector<double> runs = points.RunsOf(*base);
    for (const Asked& each : asked) AddAnswer(runs, *each.points, each.change, each.index);
    NameTheBottleneck();
    if (absl::Status status = SearchAll(points, *base, executor, known); !status.ok())
      return status;
    std::stable_sort(
        diagnosis_.what_ifs.begin(), diagnosis_.what_ifs.end(),
        [](const WhatIfAnswer& a, const WhatIfAnswer& b) { return a.ratio > b.ratio; });
    diagnosis_.simulation.Add(points.Statistics());
    for (const OtherJob& other : others) diagnosis_.simulation.Add(other.points.Statistics());
    return std::move(diagnosis_);
  }

 private:
  // A job that repeats other steps. `named`: apart from all other profiles made of the same one.
  struct OtherJob {
    OtherJob(Profile made, const SimulationOptions& options, KnownRuns known,
             const std::string& named)
        : profile(std::move(made)), points(profile, options, [&] {
            known.profile_digest.append(named);
            return known;
          }()) {}

    const Profile profile;
    PointSet points;
  };

  // A scenario of another job than the profile's where that is appended to `others`.
  Changed ChangeBy(WhatIf change, const JobChanges& changes, const KnownRuns& known,
                   std::deque<OtherJob>& others) const {
    if (change == WhatIf::kDataLoadingTwiceAsFast || change == WhatIf::kNoDataWait) {
      const double factor = change == WhatIf::kNoDataWait ? 0 : 0.5;
      ChangedRecording made = WithDataLoading(profile_, factor);
      if (!made.profile.has_value()) return {.scenario = {}, .why_not = std::move(made.why_not)};
      others.emplace_back(*std::move(made.profile), query_.options, known,
                          absl::StrCat(" data loading x ", factor));
      return {.scenario = query_.scenario, .why_not = ""};
    }
    if (change != WhatIf::kOneWorkerFewer || profile_.recorded_workers() == 1) {
      Changed changed = changes.By(change, query_.scenario);
      if (changed.scenario.has_value() && changed.profile != nullptr)
        others.emplace_back(*changed.profile, query_.options, known, " data loading x 0");
      return changed;
    }
    JobChanges::WithoutOne without = changes.WithoutTheSlowest(query_.scenario);
    if (!without.changed.scenario.has_value()) return std::move(without.changed);
    std::string named = " of workers";
    for (const int32_t worker : without.recorded) absl::StrAppend(&named, " ", worker);
    others.emplace_back(profile_.OfWorkers(without.recorded), query_.options, known, named);
    return std::move(without.changed);
  }

  void AddAnswer(const std::vector<double>& before, const PointSet& points, WhatIf change,
                 size_t index) {
    const double level = query_.options.confidence_level;
    // Runs in pairs have the same random choices.
    const PairedRatio paired = RatioOfMeans(points.RunsOf(index), before, level);
    diagnosis_.what_ifs.push_back(
        {.change = change,
         .prediction = points.Summarize(index),
         .ratio = paired.ratio,
         .ratio_interval = {.lower = paired.lower(), .upper = paired.upper(), .level = level}});
  }

  // A prediction's bottleneck, unless the changes as they were simulated in full name another.
  void NameTheBottleneck() {
    std::vector<ResourceGain> gains;
    for (const WhatIfAnswer& answer : diagnosis_.what_ifs)
      gains.push_back({.change = answer.change, .gain = answer.ratio - 1});
    const std::optional<ResourceGain> greatest = GreatestGain(gains);
    const std::optional<ResourceGain>& named = diagnosis_.prediction.bottleneck_gain;
    if (greatest.has_value() && (!named.has_value() || named->change != greatest->change))
      NameBottleneck(*greatest, diagnosis_.prediction);
  }

  absl::Status SearchAll(PointSet& points, size_t base, const Executor& executor,
                         const KnownRuns& known) {
    for (const WhatIf change : {WhatIf::kBestBuckets, WhatIf::kBestTransferOrder}) {
      absl::Status status = Search(change, points, base, executor, known);
      if (!status.ok() && !IsTimeBudgetSpent(status)) return status;
      if (!status.ok())
        diagnosis_.left_out.push_back({.change = change, .reason = "the time budget was spent"});
    }
    return absl::OkStatus();
  }

  // Finds the best of a change, and answers it as any other; or leaves it out.
  absl::Status Search(WhatIf change, PointSet& points, size_t base, const Executor& executor,
                      const KnownRuns& known) {
    absl::StatusOr<Best> best = change == WhatIf::kBestBuckets ? BestBuckets(executor, known)
                                                               : BestOrder(points, base, executor);
    if (!best.ok()) return best.status();
    if (!best->changed.scenario.has_value()) {
      diagnosis_.left_out.push_back({.change = change, .reason = std::move(best->changed.why_not)});
      return absl::OkStatus();
    }
    const absl::StatusOr<size_t> index = points.AddAlone(*best->changed.scenario, stop_);
    if (!index.ok()) return index.status();
    if (absl::Status status = points.RunAll(stop_, executor); !status.ok()) return status;
    AddAnswer(points.RunsOf(base), points, change, *index);
    diagnosis_.what_ifs.back().setting = std::move(best->setting);
    diagnosis_.what_ifs.back().groups = std::move(best->groups);
    return absl::OkStatus();
  }

  absl::StatusOr<Best> BestBuckets(const Executor& executor, const KnownRuns& known) {
    BucketQuestion question = AskForBuckets(profile_, query_.scenario, query_.options);
    if (!question.query.has_value())
      return Best{.changed = {.why_not = std::move(question.why_not)}};
    if (CollectivesStartFree(query_.scenario))
      diagnosis_.prediction.warnings.push_back(StartFreeWarning());
    absl::StatusOr<TuningAnswer> answer =
        OptimizeCommunication(profile_, *question.query, stop_, executor, known);
    if (!answer.ok()) return answer.status();
    diagnosis_.simulation.Add(answer->simulation);
    Tuning& tuning = answer->tunings.front();
    TunedStrategy& best = tuning.strategies[tuning.chosen];
    if (best.gain.is_none) return Best{.changed = {.why_not = std::move(tuning.reason)}};
    return Best{.changed = {.scenario = std::move(best.scenario)},
                .setting = std::move(best.setting),
                .groups = std::move(best.groups)};
  }

  absl::StatusOr<Best> BestOrder(PointSet& points, size_t base, const Executor& executor) {
    if (query_.scenario.server_count() == 0)
      return Best{
          .changed = {.why_not = "there are no parameter servers: collectives have buckets"}};
    std::vector<std::pair<size_t, const char*>> tried;
    tried.reserve(std::size(kOrdersToTry));
    for (const NamedOrder& candidate : kOrdersToTry) {
      Scenario scenario = query_.scenario;
      scenario.servers().transfer_order = candidate.order;
      scenario.servers().transfer_priorities.clear();
      const absl::StatusOr<size_t> index = points.TryAlone(scenario, stop_);
      if (!index.ok()) return index.status();
      tried.emplace_back(*index, candidate.name);
    }
    if (absl::Status status = points.RunAll(stop_, executor); !status.ok()) return status;
    const auto best = std::max_element(tried.begin(), tried.end(), [&](auto& a, auto& b) {
      return StepsPerSecond(points, a.first) < StepsPerSecond(points, b.first);
    });
    if (StepsPerSecond(points, best->first) <= StepsPerSecond(points, base))
      return Best{
          .changed = {.why_not = "no order that was tried is faster than the one there is"}};
    return Best{.changed = {.scenario = points.scenario(best->first)},
                .setting = absl::StrCat("transfer_order=", best->second)};
  }

  absl::Status FollowPath() {
    // Steps vary as those of the prediction, so that waiting for the slowest worker is on the path.
    const absl::StatusOr<std::shared_ptr<const RankedGraph>> ranked =
        RankedGraph::Make(profile_, query_.scenario, stop_,
                          query_.options.step_variation == StepSource::kModelled
                              ? std::make_shared<const Worlds>(profile_)
                              : nullptr);
    if (!ranked.ok()) return ranked.status();
    const JobGraph job = (*ranked)->JobOf(query_.scenario);
    RunOptions options = RunOptionsOf(profile_, query_.scenario, query_.options, 0);
    options.scaling = (*ranked)->scaling();
    const int64_t of_step =
        std::max<int64_t>(1, job.programs.front()->chunk_count() * job.workers());
    const auto most = static_cast<int32_t>(
        std::clamp<int64_t>(kMaxFollowedOperations / of_step, 1, kPathSteps + kPathWarmup));
    options.steps_per_worker = most;
    options.warmup_steps = std::min(kPathWarmup, most / 4);
    options.until = kEndOfTime;
    const absl::StatusOr<Execution> execution = Execute(job, options, stop_);
    if (!execution.ok()) return UnderPath("scenario", execution.status());
    return Follow(*execution, (*ranked)->job, diagnosis_.path);
  }

  // Report of a recording of several workers, and the path of its replay.
  absl::Status FollowRecording() {
    if (profile_.recording() == nullptr) return absl::OkStatus();
    const absl::StatusOr<MultiRankRecording> recording = RecordingOf(profile_, stop_);
    if (!recording.ok()) return recording.status();
    absl::StatusOr<JobRecordingReport> report = ReportOnRecording(*recording, stop_);
    if (!report.ok()) return UnderPath("profile", report.status());
    std::vector<NodeClock> clocks;
    for (const WorkerReport& worker : report->workers) clocks.push_back(worker.clock);
    const absl::StatusOr<RecordedJob> made = RecordedJobOf(*recording, clocks, stop_);
    if (!made.ok()) return made.status();
    RecordingDiagnosis& found =
        diagnosis_.recording.emplace(RecordingDiagnosis{.report = *std::move(report)});
    const absl::StatusOr<Execution> execution = Execute(made->job, OptionsToFollow(*made), stop_);
    if (!execution.ok()) return UnderPath("profile.recording", execution.status());
    absl::StatusOr<std::optional<OverlapSlowdown>> slowdown =
        FindOverlapSlowdown(*execution, stop_);
    if (!slowdown.ok()) return slowdown.status();
    found.overlap_slowdown = *std::move(slowdown);
    // A worker that was not recorded may have computed beside a collective.
    if (!recording->collectives.empty() && !profile_.recording()->is_sample()) {
      absl::StatusOr<std::optional<CollectiveSlowdown>> contention =
          FindCollectiveSlowdown(profile_, made->program.collectives, *execution, stop_);
      if (!contention.ok()) return contention.status();
      found.collective_slowdown = *std::move(contention);
    }
    return Follow(*execution, made->program, found.path);
  }

  absl::Status Follow(const Execution& execution, const JobProgram& program, PathDiagnosis& found) {
    const absl::StatusOr<CriticalPath> path = FindCriticalPath(execution, stop_);
    if (!path.ok()) return path.status();
    Describe(execution, *path, program, found);
    return absl::OkStatus();
  }

  void Describe(const Execution& execution, const CriticalPath& path, const JobProgram& program,
                PathDiagnosis& found) const {
    found.steps = execution.steps - execution.warmup;
    const auto steps = static_cast<double>(found.steps);
    found.seconds = ToSeconds(path.length()) / steps;
    found.by_kind = SecondsOf(path.by_kind, steps);
    found.straggler = path.straggler;
    for (const WorkerShare& share : path.workers) {
      found.workers.push_back({.own = SecondsOf(share.own, steps),
                               .on_path_seconds = ToSeconds(share.on_path) / steps,
                               .waited_for_seconds = ToSeconds(share.waited_for) / steps});
    }
    std::map<std::pair<OpIndex, PathKind>, Span> by_operation;
    for (const PathSegment& segment : path.segments) {
      if (segment.operation < 0) continue;
      by_operation[{execution.operations[Index(segment.operation)].op, segment.kind}] +=
          segment.length();
    }
    for (const auto& [which, length] : by_operation) {
      found.operations.push_back({.operations = NamesOf(which.first, program),
                                  .kind = which.second,
                                  .seconds = ToSeconds(length) / steps});
    }
    std::vector<PathOperation>& operations = found.operations;
    std::stable_sort(
        operations.begin(), operations.end(),
        [](const PathOperation& a, const PathOperation& b) { return a.seconds > b.seconds; });
    if (operations.size() > kMaxPathOperations) operations.resize(kMaxPathOperations);
  }

  std::vector<std::string> NamesOf(OpIndex op, const JobProgram& job) const {
    std::vector<std::string> names;
    const auto collective =
        std::find_if(job.collectives.begin(), job.collectives.end(),
                     [op](const PlannedCollective& each) { return each.op == op; });
    if (collective == job.collectives.end())
      return {profile_.operations()[Index(job.program->source(op))].name};
    for (const int32_t member : collective->members)
      names.push_back(profile_.operations()[Index(member)].name);
    return names;
  }

  const Profile& profile_;
  const DiagnosisQuery& query_;
  const StopCheck stop_;
  Diagnosis diagnosis_;
};

}  // namespace

absl::StatusOr<DiagnosisQuery> ResolveDiagnosis(const Profile& profile,
                                                const DiagnosisDraft& draft) {
  ScenarioDraft scenario = draft.scenario;
  if (!scenario.workers.has_value() && scenario.worker_groups.empty() &&
      profile.recorded_workers() > 1) {
    const JobRecording* const recording = profile.recording();
    scenario.workers = recording != nullptr ? recording->size() : profile.recorded_workers();
  }
  absl::StatusOr<ThroughputQuery> query =
      ResolveThroughput(profile, {.scenario = scenario, .options = draft.options});
  if (!query.ok()) return query.status();
  return DiagnosisQuery{.scenario = std::move(query->scenarios.front()), .options = query->options};
}

absl::StatusOr<Diagnosis> DiagnoseJob(const Profile& profile, const DiagnosisQuery& query,
                                      StopCheck stop, const Executor& executor,
                                      const KnownRuns& known) {
  if (query.scenario.pipeline.has_value())
    return DiagnosePipeline(profile, query, stop, executor, known);
  return Diagnostician(profile, query, stop).Diagnose(executor, known);
}

}  // namespace stepcast
