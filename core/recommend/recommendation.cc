#include "core/recommend/recommendation.h"

#include <algorithm>
#include <cstddef>
#include <utility>

#include "absl/strings/str_cat.h"

#include "core/base/error.h"
#include "core/predict/request_faults.h"
#include "core/recommend/recommendation_reason.h"

namespace stepcast {

namespace {

constexpr int32_t kDefaultMaxWorkers = 16;
constexpr int32_t kMaxSpread = 256;  // more counts than that would be a job for a search, not for trying them all

struct Counts {
  int32_t min = 1;
  int32_t max = kDefaultMaxWorkers;
};

Counts ResolveCounts(const RecommendationDraft& draft, RequestFaults& faults) {
  const int32_t limit = ScenarioLimits{}.max_workers;
  Counts counts;
  counts.min = draft.min_workers.value_or(1);
  if (counts.min < 1 || counts.min > limit) {
    faults.Add("constraints.min_workers", absl::StrCat(counts.min, " is not from 1 to ", limit));
    counts.min = std::clamp(counts.min, 1, limit);  // so that max_workers can still be judged
  }
  counts.max = draft.max_workers.value_or(std::min(std::max(kDefaultMaxWorkers, counts.min + kDefaultMaxWorkers - 1), limit));
  if (counts.max < 1 || counts.max > limit) {
    faults.Add("constraints.max_workers", absl::StrCat(counts.max, " is not from 1 to ", limit));
  } else if (counts.max < counts.min) {
    faults.Add("constraints.max_workers", absl::StrCat(counts.max, " is less than min_workers ", counts.min));
  } else if (counts.max - counts.min > kMaxSpread) {
    faults.Add("constraints.max_workers", absl::StrCat(counts.max, " is more than ", kMaxSpread, " above min_workers ", counts.min));
  }
  return counts;
}

// A count of workers is what is asked for, so nothing may fix it. The scenario without what does.
ScenarioDraft WithoutWorkers(const ScenarioDraft& draft, RequestFaults& faults) {
  ScenarioDraft free = draft;
  if (free.workers.has_value()) faults.Add("scenario.workers", absl::StrCat(*free.workers, " given, must be unset: constraints say what to try"));
  if (!free.start_offsets_ns.empty()) {
    faults.Add("scenario.start_offsets_ns", absl::StrCat(free.start_offsets_ns.size(), " given, must be empty: the number of workers varies"));
  }
  if (!free.worker_groups.empty()) {
    faults.Add("scenario.worker_groups", absl::StrCat(free.worker_groups.size(), " given, must be empty: the number of workers varies"));
  }
  free.workers.reset();
  free.start_offsets_ns.clear();
  free.worker_groups.clear();
  return free;
}

// Every field that asks for what cannot be answered yet.
absl::Status CheckSupported(const RecommendationDraft& draft) {
  std::vector<Fault> faults;
  const auto refuse = [&faults](bool asked, const char* field) {
    if (asked) faults.push_back({.field = field, .description = "cannot be taken into account yet"});
  };
  const bool supported = draft.objective == Objective::kKnee || draft.objective == Objective::kMaxThroughput;
  if (!supported) {
    const char* name = draft.objective == Objective::kMinCost ? "MIN_COST" : "MIN_TIME";
    faults.push_back({.field = "objective", .description = absl::StrCat(name, " cannot be answered yet")});
  }
  refuse(draft.max_parameter_servers.has_value(), "constraints.max_parameter_servers");
  refuse(draft.deadline_seconds.has_value(), "constraints.deadline");
  refuse(draft.examples.has_value(), "constraints.examples");
  refuse(draft.budget.has_value(), "constraints.budget");
  refuse(draft.prices.has_value(), "prices");
  refuse(draft.current.has_value(), "current");
  if (faults.empty()) return absl::OkStatus();
  std::string message = absl::StrCat(faults.front().field, ": ", faults.front().description);
  if (faults.size() > 1) absl::StrAppend(&message, " (and ", faults.size() - 1, " more)");
  return MakeError(absl::StatusCode::kUnimplemented, message, {.reason = "RECOMMENDATION_UNSUPPORTED", .faults = std::move(faults)});
}

double Power(const Prediction& prediction) { return prediction.examples_per_second * prediction.examples_per_second / prediction.scenario.workers; }

// The index of the recommended count; frontier.size() where no count keeps the constraints.
size_t Choose(const std::vector<Prediction>& frontier, const RecommendationQuery& query) {
  std::vector<size_t> allowed;
  for (size_t i = 0; i < frontier.size(); ++i) {
    if (frontier[i].scaling_efficiency >= query.min_scaling_efficiency) allowed.push_back(i);
  }
  if (allowed.empty()) return frontier.size();
  const auto most = [&](auto value_of) {
    return *std::max_element(allowed.begin(), allowed.end(), [&](size_t a, size_t b) { return value_of(frontier[a]) < value_of(frontier[b]); });
  };
  if (query.objective == Objective::kKnee) return most(Power);
  const Prediction& highest = frontier[most([](const Prediction& prediction) { return prediction.examples_per_second; })];
  const auto reaches = [&](size_t i) { return frontier[i].confidence_interval.upper >= highest.confidence_interval.lower; };
  return *std::find_if(allowed.begin(), allowed.end(), reaches);
}

}  // namespace

absl::StatusOr<RecommendationQuery> ResolveRecommendation(const Profile& profile, const RecommendationDraft& draft) {
  RequestFaults faults;
  absl::StatusOr<Scenario> scenario = ResolveScenario(profile, WithoutWorkers(draft.scenario, faults));
  faults.AddPart("scenario", scenario.status());
  absl::StatusOr<SimulationOptions> options = ResolveOptions(draft.options);
  faults.AddPart("options", options.status());
  const Counts counts = ResolveCounts(draft, faults);
  const double efficiency = draft.min_scaling_efficiency.value_or(0);
  if (!(efficiency >= 0 && efficiency <= 1)) faults.Add("constraints.min_scaling_efficiency", absl::StrCat(efficiency, " is not from 0 to 1"));
  if (absl::Status status = std::move(faults).ToStatus("RECOMMENDATION_INVALID"); !status.ok()) return status;
  if (absl::Status status = CheckSupported(draft); !status.ok()) return status;
  RecommendationQuery query{.options = *options, .objective = draft.objective, .min_scaling_efficiency = efficiency};
  for (int32_t workers = counts.min; workers <= counts.max; ++workers) {
    query.scenarios.push_back(*scenario);
    query.scenarios.back().workers = workers;
  }
  return query;
}

absl::StatusOr<Recommendation> RecommendWorkers(const Profile& profile, const RecommendationQuery& query, StopCheck stop, const Executor& executor) {
  absl::StatusOr<ThroughputAnswer> curve = PredictThroughput(profile, {.scenarios = query.scenarios, .options = query.options}, stop, executor);
  if (!curve.ok()) return curve.status();
  Recommendation recommendation;
  recommendation.frontier = std::move(curve->predictions);
  recommendation.simulation = curve->simulation;
  const size_t chosen = Choose(recommendation.frontier, query);
  if (chosen == recommendation.frontier.size()) {
    recommendation.infeasible_reason = InfeasibleReasonFor(recommendation.frontier, query);
    return recommendation;
  }
  recommendation.prediction = recommendation.frontier[chosen];
  recommendation.workers = recommendation.prediction->scenario.workers;
  recommendation.parameter_servers = recommendation.prediction->scenario.parameter_servers;
  recommendation.reason = ReasonFor(recommendation.frontier, chosen, query);
  return recommendation;
}

}  // namespace stepcast
