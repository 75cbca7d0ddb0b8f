#include "core/predict/throughput.h"

#include <algorithm>
#include <memory>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"

#include "core/base/error.h"
#include "core/predict/replications.h"
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
    if (!draft.worker_counts.empty()) faults.Add("worker_counts", "must be empty where scenarios are given");
    if (draft.scenario.has_value()) faults.Add("scenario", "must be unset where scenarios are given");
    for (size_t i = 0; i < draft.scenarios.size(); ++i) {
      const std::string path = absl::StrCat("scenarios[", i, "]");
      list.push_back({.path = path, .workers_path = path + ".workers", .draft = draft.scenarios[i]});
    }
    return list;
  }
  const ScenarioDraft base = draft.scenario.value_or(ScenarioDraft{});
  if (draft.worker_counts.empty()) {
    list.push_back({.path = "scenario", .workers_path = "scenario.workers", .draft = base});
    return list;
  }
  if (base.workers.has_value())
    faults.Add("scenario.workers", absl::StrCat("is ", *base.workers, ", but must be unset where worker_counts are given"));
  for (size_t i = 0; i < draft.worker_counts.size(); ++i) {
    list.push_back({.path = "scenario", .workers_path = absl::StrCat("worker_counts[", i, "]"), .draft = base});
    list.back().draft.workers = draft.worker_counts[i];
  }
  return list;
}

// The same job with one worker: what speed-up is measured against.
Scenario OneWorkerOf(Scenario scenario) {
  scenario.workers = 1;
  scenario.start_offsets_ns.clear();
  if (!scenario.worker_groups.empty()) {
    scenario.worker_groups.resize(1);
    scenario.worker_groups.front().count = 1;
  }
  return scenario;
}

// Every scenario to be run, each once.
class RunSet {
 public:
  RunSet(const Profile& profile, const SimulationOptions& options) : profile_(profile), options_(options) {}

  // Its index.
  absl::StatusOr<size_t> Add(const Scenario& scenario, StopCheck stop) {
    const auto found = std::find_if(runs_.begin(), runs_.end(), [&](const Replications& runs) { return runs.scenario() == scenario; });
    if (found != runs_.end()) return static_cast<size_t>(found - runs_.begin());
    absl::StatusOr<std::shared_ptr<const RankedGraph>> graph = GraphOf(scenario, stop);
    if (!graph.ok()) return graph.status();
    runs_.emplace_back(profile_, scenario, options_, *std::move(graph));
    return runs_.size() - 1;
  }

  // One run of each, then a second of each, and so on, so that a spent time budget leaves something of every scenario.
  absl::Status RunAll(StopCheck stop) {
    for (bool more = true; more;) {
      more = false;
      for (Replications& runs : runs_) {
        if (runs.Enough()) continue;
        absl::Status status = runs.Run(stop);
        if (IsTimeBudgetSpent(status) && runs_.back().done() > 0) return absl::OkStatus();
        if (!status.ok()) return status;
        more = true;
      }
    }
    return absl::OkStatus();
  }

  Prediction Summarize(size_t index, size_t baseline) const {
    Prediction prediction = runs_[index].Summarize();
    prediction.speedup = prediction.steps_per_second / runs_[baseline].StepsPerSecond();
    prediction.scaling_efficiency = prediction.speedup / prediction.scenario.workers;
    return prediction;
  }

  SimulationStatistics Statistics() const {
    SimulationStatistics statistics;
    for (const Replications& runs : runs_) statistics.simulated_operations += runs.simulated_operations();
    return statistics;
  }

 private:
  absl::StatusOr<std::shared_ptr<const RankedGraph>> GraphOf(const Scenario& scenario, StopCheck stop) const {
    for (const Replications& runs : runs_) {
      if (RankedGraph::SharedBy(runs.scenario(), scenario)) return runs.graph();
    }
    return RankedGraph::Make(profile_, scenario, stop);
  }

  const Profile& profile_;
  const SimulationOptions& options_;
  std::vector<Replications> runs_;
};

}  // namespace

absl::StatusOr<ThroughputQuery> ResolveThroughput(const Profile& profile, const ThroughputDraft& draft) {
  RequestFaults faults;
  ThroughputQuery query;
  absl::StatusOr<SimulationOptions> options = ResolveOptions(draft.options);
  faults.AddPart("options", options.status());
  for (const auto& [list, size] : {std::pair("scenarios", draft.scenarios.size()), std::pair("worker_counts", draft.worker_counts.size())}) {
    if (size <= kMaxScenarios) continue;
    faults.Add(list, absl::StrCat("has ", size, " entries, more than max_scenarios ", kMaxScenarios));
    return std::move(faults).ToStatus("REQUEST_INVALID");
  }
  for (const Asked& asked : ListScenarios(draft, faults)) {
    absl::StatusOr<Scenario> scenario = ResolveScenario(profile, asked.draft);
    faults.AddPart(asked.path, scenario.status(), {{asked.path + ".workers", asked.workers_path}});
    if (!scenario.ok()) continue;
    if (options.ok() && options->start == Start::kStaggered && !scenario->start_offsets_ns.empty()) {
      faults.Add(asked.path + ".start_offsets_ns", "must be empty with start STAGGERED, which draws them");
    }
    query.scenarios.push_back(*std::move(scenario));
  }
  if (absl::Status status = std::move(faults).ToStatus("REQUEST_INVALID"); !status.ok()) return status;
  query.options = *std::move(options);
  return query;
}

absl::StatusOr<ThroughputAnswer> PredictThroughput(const Profile& profile, const ThroughputQuery& query, StopCheck stop) {
  RunSet runs(profile, query.options);
  std::vector<std::pair<size_t, size_t>> wanted;  // a scenario's run, and its baseline's
  for (const Scenario& scenario : query.scenarios) {
    const absl::StatusOr<size_t> index = runs.Add(scenario, stop);
    if (!index.ok()) return index.status();
    const absl::StatusOr<size_t> baseline = scenario.workers == 1 ? *index : runs.Add(OneWorkerOf(scenario), stop);
    if (!baseline.ok()) return baseline.status();
    wanted.emplace_back(*index, *baseline);
  }
  if (absl::Status status = runs.RunAll(stop); !status.ok()) return status;
  ThroughputAnswer answer;
  for (const auto& [index, baseline] : wanted) answer.predictions.push_back(runs.Summarize(index, baseline));
  answer.simulation = runs.Statistics();
  return answer;
}

}  // namespace stepcast
