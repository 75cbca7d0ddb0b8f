#include "core/predict/throughput.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

#include "core/base/error.h"
#include "core/predict/point_set.h"
#include "core/predict/request_faults.h"

namespace stepcast {

namespace {

// One scenario of the request.
struct Asked {
  std::string path;
  std::string workers_path;  // of its number of workers
  ScenarioDraft draft;
};

// In the order of the answer.
std::vector<Asked> ListScenarios(const ThroughputDraft& draft, RequestFaults& faults) {
  std::vector<Asked> list;
  if (!draft.scenarios.empty()) {
    if (!draft.worker_counts.empty())
      faults.Add("worker_counts", "must be empty where scenarios are given");
    faults.AddIf(draft.scenario.has_value(), "scenario", "must be unset where scenarios are given");
    for (size_t i = 0; i < draft.scenarios.size(); ++i) {
      const std::string path = absl::StrCat("scenarios[", i, "]");
      list.push_back(
          {.path = path, .workers_path = path + ".workers", .draft = draft.scenarios[i]});
      list.back().draft.workers = draft.scenarios[i].workers.value_or(1);
    }
    return list;
  }
  ScenarioDraft base = draft.scenario.value_or(ScenarioDraft{});
  if (draft.worker_counts.empty()) {
    base.workers = base.workers.value_or(1);
    list.push_back({.path = "scenario", .workers_path = "scenario.workers", .draft = base});
    return list;
  }
  faults.AddIf(base.workers.has_value(), "scenario.workers", "is ", base.workers,
               ", but must be unset where worker_counts are given");
  for (size_t i = 0; i < draft.worker_counts.size(); ++i) {
    list.push_back({.path = "scenario",
                    .workers_path = absl::StrCat("worker_counts[", i, "]"),
                    .draft = base});
    list.back().draft.workers = draft.worker_counts[i];
  }
  return list;
}

// Cuts that were found for a number of workers are those of all others. False: there are none to
// take, or the scenario has its own.
bool FindCuts(const ThroughputDraft& draft, const std::vector<Scenario>& known,
              ScenarioDraft& scenario) {
  if (draft.worker_counts.empty() || known.empty() || !scenario.pipeline.has_value() ||
      !scenario.pipeline->cuts.empty())
    return false;
  scenario.pipeline->cuts = known.front().pipeline->cuts;
  return true;
}

void CheckSeries(int32_t points, size_t scenarios, RequestFaults& faults) {
  const int64_t all = points * static_cast<int64_t>(scenarios);
  if (points < 0 || points > kMaxSeriesPoints) {
    faults.Add("series_points", absl::StrCat(points, " is not from 0 to ", kMaxSeriesPoints));
  } else if (all > kMaxSeriesPointsOfAll) {
    faults.Add("series_points",
               absl::StrCat(points, " for each of ", scenarios, " predictions are ", all,
                            ", more than ", kMaxSeriesPointsOfAll));
  }
}

}  // namespace

absl::StatusOr<ThroughputQuery> ResolveThroughput(const Profile& profile,
                                                  const ThroughputDraft& draft,
                                                  const ScenarioLimits& limits,
                                                  const SharedBatch* shared) {
  RequestFaults faults;
  ThroughputQuery query;
  absl::StatusOr<SimulationOptions> options = ResolveOptions(draft.options);
  faults.AddPart("options", options.status());
  for (const auto& [list, size] : {std::pair("scenarios", draft.scenarios.size()),
                                   std::pair("worker_counts", draft.worker_counts.size())}) {
    if (size <= kMaxScenarios) continue;
    faults.Add(list,
               absl::StrCat("has ", size, " entries, more than max_scenarios ", kMaxScenarios));
    return std::move(faults).ToStatus("REQUEST_INVALID");
  }
  for (Asked& asked : ListScenarios(draft, faults)) {
    if (shared != nullptr) shared->Share(asked.draft, asked.path, asked.workers_path, faults);
    const bool finds_cuts = FindCuts(draft, query.scenarios, asked.draft);
    absl::StatusOr<Scenario> scenario = ResolveRunnable(
        profile, asked.draft, query.scenarios.empty() ? nullptr : &query.scenarios.back(), limits);
    faults.AddPart(asked.path, scenario.status(), {{asked.path + ".workers", asked.workers_path}});
    if (!scenario.ok()) continue;
    faults.AddIf(draft.options.start == Start::kStaggered && !scenario->start_offsets_ns.empty(),
                 asked.path + ".start_offsets_ns",
                 "must be empty with start STAGGERED, which draws them");
    if (finds_cuts) scenario->assumed.Add(Assumed::kPipelineCuts);
    if (scenario->pipeline.has_value() && options.ok())
      CheckHorizonOfPipelines(options->horizon, faults);
    query.scenarios.push_back(*std::move(scenario));
  }
  if (draft.plan.has_value()) CheckPlan("plan", *draft.plan, query.scenarios, faults);
  CheckSeries(draft.series_points, query.scenarios.size(), faults);
  if (absl::Status status = std::move(faults).ToStatus("REQUEST_INVALID"); !status.ok())
    return status;
  query.options = *std::move(options);
  query.plan = draft.plan;
  query.series_points = draft.series_points;
  return query;
}

absl::StatusOr<ThroughputQuery> ResolveSharedThroughput(const Profile& recorded,
                                                        const ThroughputDraft& draft,
                                                        SharedBatch shared) {
  absl::StatusOr<ThroughputQuery> query =
      ResolveThroughput(recorded, draft, {.pipelines = true}, &shared);
  if (!query.ok()) return query;
  query->shared = std::move(shared);
  return query;
}

StepTime StepTimeOf(const StepTimeHistogram& steps) {
  return {.mean = steps.MeanSeconds(),
          .p50 = steps.PercentileSeconds(0.50),
          .p95 = steps.PercentileSeconds(0.95),
          .p99 = steps.PercentileSeconds(0.99)};
}

void SimulationStatistics::Add(const SimulationStatistics& other) {
  simulated_operations += other.simulated_operations;
  runs += other.runs;
  recalled_runs += other.recalled_runs;
  if (engine_path.empty()) {
    engine_path = other.engine_path;
  } else if (!absl::StrContains(engine_path, other.engine_path)) {
    absl::StrAppend(&engine_path, ", ", other.engine_path);
  }
}

absl::StatusOr<ThroughputAnswer> PredictThroughput(const Profile& profile,
                                                   const ThroughputQuery& query, StopCheck stop,
                                                   const Executor& executor,
                                                   const KnownRuns& known) {
  PointSet points(profile, query.options, known, query.shared ? &*query.shared : nullptr);
  std::vector<size_t> wanted;
  for (const Scenario& scenario : query.scenarios) {
    const absl::StatusOr<size_t> index = points.Add(scenario, stop);
    if (!index.ok()) return index.status();
    wanted.push_back(*index);
  }
  if (absl::Status status = points.RunAll(stop, executor); !status.ok()) return status;
  if (absl::Status status = points.FindBottlenecks(wanted, stop, executor); !status.ok())
    return status;
  ThroughputAnswer answer;
  answer.simulation = points.Statistics();
  for (size_t i = 0; i < wanted.size(); ++i) {
    answer.predictions.push_back(points.Summarize(wanted[i]));
    // An equal scenario's may have been assumed where this one's were asked for.
    answer.predictions.back().scenario.assumed = query.scenarios[i].assumed;
    Prediction& told = answer.predictions.back();
    told.series = SeriesOf(told.completions, told.examples_per_second / told.steps_per_second,
                           query.series_points);
    if (!query.plan.has_value()) continue;
    told.forecast =
        ForecastOf(*query.plan, told.scenario, told.examples_per_second, told.run_interval.lower,
                   told.run_interval.upper, told.scenario.DevicesPerWorker(profile));
  }
  return answer;
}

namespace {

// The same for warnings that differ only in their numbers.
std::string Shape(const std::string& warning) {
  std::string shape;
  for (const char c : warning) {
    if (absl::ascii_isdigit(static_cast<unsigned char>(c)) == 0 && c != '.') shape.push_back(c);
  }
  return shape;
}

// 1, 2, 3, 5 as `1-3, 5`. REQUIRES: ascending.
std::string CountsText(const std::vector<int32_t>& counts) {
  std::string text;
  for (size_t i = 0; i < counts.size();) {
    size_t last = i;
    while (last + 1 < counts.size() && counts[last + 1] == counts[last] + 1) ++last;
    absl::StrAppend(&text, text.empty() ? "" : ", ", counts[i]);
    if (last > i) absl::StrAppend(&text, "-", counts[last]);
    i = last + 1;
  }
  return text;
}

Warning Line(const std::string& about, const WarningGroup& group, const std::string& first) {
  const std::string numbers =
      group.alike ? "" : absl::StrCat(", the numbers are those for ", first);
  return {.reason = group.warning.reason,
          .message = absl::StrCat(about, numbers, ": ", group.warning.message)};
}

}  // namespace

std::vector<WarningGroup> GroupWarnings(const std::vector<std::vector<Warning>>& by_item) {
  std::vector<WarningGroup> groups;
  std::vector<std::string> shapes;  // parallel to groups
  for (size_t i = 0; i < by_item.size(); ++i) {
    for (const Warning& warning : by_item[i]) {
      const std::string shape = Shape(warning.message);
      size_t at = 0;
      while (at < groups.size() &&
             (groups[at].warning.reason != warning.reason || shapes[at] != shape))
        ++at;
      if (at == groups.size()) {
        groups.push_back({.warning = warning, .items = {}});
        shapes.push_back(shape);
      }
      groups[at].alike = groups[at].alike && groups[at].warning == warning;
      groups[at].items.push_back(i);
    }
  }
  return groups;
}

std::vector<Warning> WarningsByWorkers(const std::vector<Prediction>& predictions) {
  std::vector<std::vector<Warning>> by_item;
  by_item.reserve(predictions.size());
  for (const Prediction& prediction : predictions) by_item.push_back(prediction.warnings);
  std::vector<Warning> lines;
  for (const WarningGroup& group : GroupWarnings(by_item)) {
    std::vector<int32_t> counts;
    counts.reserve(group.items.size());
    for (const size_t item : group.items) counts.push_back(predictions[item].scenario.workers);
    const std::string first = absl::StrCat(counts.front());
    // With several numbers of servers a number of workers comes several times.
    std::sort(counts.begin(), counts.end());
    counts.erase(std::unique(counts.begin(), counts.end()), counts.end());
    lines.push_back(
        Line(absl::StrCat(CountsText(counts), counts.back() == 1 ? " worker" : " workers"), group,
             first));
  }
  return lines;
}

std::vector<Warning> WarningsByName(const std::vector<std::string>& names,
                                    const std::vector<std::vector<Warning>>& by_item) {
  std::vector<Warning> lines;
  for (const WarningGroup& group : GroupWarnings(by_item)) {
    std::string about;
    for (const size_t item : group.items)
      absl::StrAppend(&about, about.empty() ? "" : ", ", names[item]);
    lines.push_back(Line(about, group, names[group.items.front()]));
  }
  return lines;
}

}  // namespace stepcast
