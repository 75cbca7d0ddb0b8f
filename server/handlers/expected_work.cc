#include "server/handlers/expected_work.h"

#include <algorithm>
#include <optional>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

#include "core/base/error.h"
#include "core/base/stop_check.h"
#include "core/predict/pipeline_prediction.h"

namespace stepcast::server {

namespace {

// Operations of so many workers in all their runs; where no length was asked for, in the longest
// there may be. Of a pipeline those of an answer, which does not grow with its replicas.
double OfWorkers(double workers, const Profile& profile, const SimulationOptions& options,
                 const Scenario& scenario) {
  if (scenario.pipeline.has_value()) return ExpectedEvents(scenario.pipeline->layout, options);
  const SimulationOptions of_runs = OptionsOfRuns(options, scenario, kAutomaticLengths - 1);
  double steps = of_runs.steps_per_worker;
  if (of_runs.horizon == Horizon::kFirstSteps) steps = of_runs.horizon_steps;
  // No worker is faster than it was alone, but for links and devices that are.
  if (of_runs.horizon == Horizon::kFirstSeconds)
    steps = of_runs.horizon_seconds * 1e9 / std::max(1.0, profile.mean_step_ns());
  return workers * static_cast<double>(profile.operations().size()) * steps *
         std::max(of_runs.replications, 1);
}

}  // namespace

double OperationsOf(const Profile& profile, const ThroughputQuery& query) {
  double operations = 0;
  for (const Scenario& scenario : query.scenarios) {
    // The first one's, of one worker, is what the speed-up is over.
    const int32_t workers = scenario.workers + (operations == 0 ? 1 : 0);
    // The change that would help workers most that remember their start is run in full, with as
    // many or fewer.
    const double changed = scenario.RemembersStart() ? 1.5 : 1;
    operations += changed * OfWorkers(workers, profile, query.options, scenario);
  }
  return operations;
}

double OperationsOf(const Profile& profile, const RecommendationQuery& query) {
  double operations = 0;
  for (const int32_t count : query.FirstCounts())
    operations += OfWorkers(count, profile, query.options, query.server_choices.front());
  return operations * static_cast<double>(query.server_choices.size());
}

double OperationsOf(const Profile&, const LayoutQuery& query) {
  double operations = 0;
  for (const TriedLayout& tried : query.tried)
    operations += static_cast<double>(tried.reductions.size()) *
                  ExpectedEvents(tried.layout(), query.options);
  return operations;
}

double OperationsOf(const Profile& profile, const OrderQuery& query) {
  return static_cast<double>(query.methods.size()) *
         OfWorkers(query.scenario.workers, profile, query.options, query.scenario);
}

double OperationsOf(const Profile& profile, const TuningQuery& query) {
  // A short simulation a cap, some hundred of a search.
  constexpr double kTriesOfASearch = 300;
  double operations = 0;
  for (const Scenario& scenario : query.scenarios)
    operations += OfWorkers(scenario.workers, profile, query.options, scenario);
  return operations * (static_cast<double>(query.bucket_caps_bytes.size()) + kTriesOfASearch) / 2;
}

double OperationsOf(const Profile& profile, const ComparisonQuery& query) {
  return OperationsOf(profile, query.throughput);
}

double OperationsOf(const Profile& profile, const DiagnosisQuery& query) {
  // One worker's runs, those of the job with and without each change, short ones of what is tried
  // in search of the best, and the steps of the path.
  constexpr double kShortRuns = 5;
  if (query.scenario.pipeline.has_value())
    return static_cast<double>(1 + kWhatIfCount) *
           OfWorkers(1, profile, query.options, query.scenario);
  const double workers = query.scenario.workers;
  const double of_path = std::min(static_cast<double>(profile.operations().size()) * workers *
                                      static_cast<double>(kPathSteps + kPathWarmup),
                                  static_cast<double>(kMaxFollowedOperations));
  return (1 + workers * (static_cast<double>(1 + kWhatIfCount) + kShortRuns)) *
             OfWorkers(1, profile, query.options, query.scenario) +
         of_path;
}

double OperationsOf(const Profile& profile, const StrategyQuery& query) {
  // Comparisons in full, and some replays, of about as many operations each.
  constexpr double kReplays = 60;
  return OfWorkers(query.scenario.workers, profile, query.options, query.scenario) * kReplays;
}

double OperationsOf(const Profile& profile, const TraceQuery& query) {
  return OfWorkers(query.scenario.workers, profile, query.options, query.scenario);
}

double OperationsOf(const AllocationQuery& query) {
  double operations = 0;
  for (const absl::StatusOr<AllocationJob>& job : query.jobs) {
    if (!job.ok()) continue;
    for (const int32_t count : job->worker_counts) {
      operations += static_cast<double>(job->server_choices.size()) *
                    OfWorkers(count, job->profile, query.options, job->server_choices.front());
    }
  }
  return operations;
}

namespace {

Communication CommunicationOf(const Scenario& scenario) {
  constexpr Communication kByKind[] = {Communication::kParameterServers, Communication::kAllReduce,
                                       Communication::kPipeline};
  return kByKind[static_cast<size_t>(scenario.kind())];
}

Communication Both(Communication one, Communication other) {
  return one == other ? one : Communication::kBoth;
}

}  // namespace

Communication CommunicationOf(const ThroughputQuery& query) {
  Communication communication = CommunicationOf(query.scenarios.front());
  for (const Scenario& scenario : query.scenarios)
    communication = Both(communication, CommunicationOf(scenario));
  return communication;
}

Communication CommunicationOf(const RecommendationQuery& query) {
  return CommunicationOf(query.server_choices.front());
}

Communication CommunicationOf(const LayoutQuery&) { return Communication::kPipeline; }

Communication CommunicationOf(const OrderQuery& query) { return CommunicationOf(query.scenario); }

Communication CommunicationOf(const TuningQuery& query) {
  return CommunicationOf(query.scenarios.front());
}

Communication CommunicationOf(const ComparisonQuery& query) {
  return CommunicationOf(query.throughput);
}

Communication CommunicationOf(const DiagnosisQuery& query) {
  return CommunicationOf(query.scenario);
}

Communication CommunicationOf(const StrategyQuery& query) {
  return CommunicationOf(query.scenario);
}

Communication CommunicationOf(const TraceQuery& query) { return CommunicationOf(query.scenario); }

Communication CommunicationOf(const AllocationQuery& query) {
  std::optional<Communication> communication;
  for (const absl::StatusOr<AllocationJob>& job : query.jobs) {
    if (!job.ok()) continue;
    const Communication of_job = CommunicationOf(job->server_choices.front());
    communication = Both(communication.value_or(of_job), of_job);
  }
  return communication.value_or(Communication::kParameterServers);
}

namespace {

// 8.2 thousand, 340 million, 12 billion; two digits, for it is rough.
std::string CountText(double count) {
  constexpr double kThousand = 1e3;
  constexpr double kMillion = 1e6;
  constexpr double kBillion = 1e9;
  if (count < kThousand) return absl::StrFormat("%.0f", count);
  if (count < kMillion) return absl::StrFormat("%.3g thousand", count / kThousand);
  return count < kBillion ? absl::StrFormat("%.3g million", count / kMillion)
                          : absl::StrFormat("%.3g billion", count / kBillion);
}

const char* Advice(Remedy remedy) {
  return remedy == Remedy::kStartAJob
             ? "; allow more time, ask for fewer numbers of workers, fewer steps or a coarser "
               "options.relative_precision "
               "(--precision), or have it computed as a job (StartJob, stepcast job start)"
             : "; ask for fewer numbers of workers, fewer steps or a coarser "
               "options.relative_precision (--precision)";
}

bool IsOfASimulation(const absl::Status& status, const ExpectedWork& work) {
  return absl::IsDeadlineExceeded(status) && work.operations > 0;
}

absl::Status With(const absl::Status& status, const std::string& more, ErrorDetails details) {
  if (details.reason.empty()) details.reason = "DEADLINE_EXCEEDED";
  return MakeError(status.code(), absl::StrCat(status.message(), more), std::move(details));
}

}  // namespace

absl::Status SayWhatWasAsked(const absl::Status& status, const ExpectedWork& work, Remedy remedy) {
  if (!IsOfASimulation(status, work)) return status;
  ErrorDetails details = DetailsOf(status);
  details.metadata.insert_or_assign("expected_operations",
                                    absl::StrFormat("%.0f", work.operations));
  return With(status,
              absl::StrCat("; some ", CountText(work.operations),
                           " simulated operations were asked for", Advice(remedy)),
              std::move(details));
}

WorkProgress::WorkProgress(ExpectedWork work, const Clock& clock, Remedy remedy)
    : work_(std::move(work)), clock_(clock), remedy_(remedy), start_ns_(clock.MonotonicNs()) {}

void WorkProgress::Count() { pieces_.fetch_add(1, std::memory_order_relaxed); }

int64_t WorkProgress::done() const {
  const int64_t of_pieces = pieces_.load(std::memory_order_relaxed) * kStopCheckInterval;
  return std::max(of_pieces, work_.simulated->count());
}

absl::Status WorkProgress::Explain(const absl::Status& status) const {
  if (!IsOfASimulation(status, work_)) return status;
  const auto done = static_cast<double>(this->done());
  if (done <= 0) return SayWhatWasAsked(status, work_, remedy_);
  const double asked = work_.operations;
  const double elapsed = static_cast<double>(clock_.MonotonicNs() - start_ns_) * 1e-9;
  ErrorDetails details = DetailsOf(status);
  details.metadata.insert_or_assign("expected_operations", absl::StrFormat("%.0f", asked));
  details.metadata.insert_or_assign("simulated_operations", absl::StrFormat("%.0f", done));
  details.metadata.insert_or_assign("elapsed_seconds", absl::StrFormat("%.3g", elapsed));
  if (done >= asked) {
    const std::string more = absl::StrFormat(
        "; some %s simulated operations were expected, and %s were done in %.3g s, so nothing "
        "tells how many are left",
        CountText(asked), CountText(done), elapsed);
    return With(status, more + Advice(remedy_), std::move(details));
  }
  const double expected = elapsed * asked / done;
  details.metadata.insert_or_assign("expected_seconds", absl::StrFormat("%.3g", expected));
  const std::string more = absl::StrFormat(
      "; some %s simulated operations were asked for, of which %s were done in %.3g s, so all "
      "would take about %.3g s here",
      CountText(asked), CountText(done), elapsed, expected);
  return With(status, more + Advice(remedy_), std::move(details));
}

}  // namespace stepcast::server
