#include "core/predict/throughput.h"

#include <algorithm>
#include <cstddef>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

#include "core/base/error.h"
#include "core/predict/replications.h"
#include "core/predict/request_faults.h"
#include "core/predict/start_comparison.h"

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

// Every scenario to be run, each once, and where it matters with the other start too.
class RunSet {
 public:
  RunSet(const Profile& profile, const SimulationOptions& options) : profile_(profile), options_(options) {}

  // Its index.
  absl::StatusOr<size_t> Add(const Scenario& scenario, StopCheck stop) {
    const auto found = std::find_if(entries_.begin(), entries_.end(), [&](const Entry& entry) { return entry.runs.scenario() == scenario; });
    if (found != entries_.end()) return static_cast<size_t>(found - entries_.begin());
    absl::StatusOr<std::shared_ptr<const RankedGraph>> graph = GraphOf(scenario, stop);
    if (!graph.ok()) return graph.status();
    Entry& entry = entries_.emplace_back(Entry{.runs = Replications(profile_, scenario, options_, *graph), .other_start = std::nullopt});
    if (options_.horizon == Horizon::kSteadyState && scenario.workers > 1) {
      entry.other_start.emplace(profile_, WithOtherStart(scenario), WithOtherStart(options_), *graph);
    }
    return entries_.size() - 1;
  }

  absl::Status RunAll(StopCheck stop, const Executor& executor) {
    for (std::vector<Part> parts = NextParts(); !parts.empty(); parts = NextParts()) {
      absl::Status status = RunParts(parts, stop, executor);
      if (IsTimeBudgetSpent(status) && EachHasRun()) return absl::OkStatus();
      if (!status.ok()) return status;
    }
    return absl::OkStatus();
  }

  Prediction Summarize(size_t index, size_t baseline) const {
    const Entry& entry = entries_[index];
    Prediction prediction = entry.runs.Summarize();
    prediction.speedup = prediction.steps_per_second / entries_[baseline].runs.StepsPerSecond().mean;
    prediction.scaling_efficiency = prediction.speedup / prediction.scenario.workers;
    if (entry.other_start.has_value() && entry.other_start->done() > 0) {
      const Starts starts{.asked = options_.start, .own = entry.runs.StepsPerSecond(), .other = entry.other_start->StepsPerSecond()};
      JudgeStarts(starts, profile_.batch_size(), prediction);
    }
    return prediction;
  }

  SimulationStatistics Statistics() const {
    SimulationStatistics statistics;
    for (const Entry& entry : entries_) {
      statistics.Add(StatisticsOf(entry.runs));
      if (entry.other_start.has_value()) statistics.Add(StatisticsOf(*entry.other_start));
    }
    return statistics;
  }

 private:
  // What is run between two looks at the results: enough for any number of threads, and not too much to be held.
  static constexpr size_t kMostParts = 512;

  struct Entry {
    Replications runs;
    std::optional<Replications> other_start;
  };
  // One run.
  struct Part {
    Replications* runs = nullptr;
    int32_t index = 0;
  };

  // The runs that are wanted whatever the others say: one of each scenario, then one of each other start, then a second of each, and so on, so that a
  // spent time budget leaves something of every scenario; of those the largest first, so that threads end together.
  std::vector<Part> NextParts() {
    std::vector<Part> parts;
    for (int32_t round = 0; parts.size() < kMostParts; ++round) {
      const size_t before = parts.size();
      for (Entry& entry : entries_) AddPart(entry.runs, round, parts);
      std::stable_sort(parts.begin() + static_cast<std::ptrdiff_t>(before), parts.end(), HasMoreWorkers);
      const size_t other = parts.size();
      for (Entry& entry : entries_) {
        if (entry.other_start.has_value()) AddPart(*entry.other_start, round, parts);
      }
      std::stable_sort(parts.begin() + static_cast<std::ptrdiff_t>(other), parts.end(), HasMoreWorkers);
      if (parts.size() == before) break;
    }
    return parts;
  }

  static void AddPart(Replications& runs, int32_t round, std::vector<Part>& parts) {
    if (round < runs.Wanted()) parts.push_back({.runs = &runs, .index = runs.done() + round});
  }
  static bool HasMoreWorkers(const Part& a, const Part& b) { return a.runs->scenario().workers > b.runs->scenario().workers; }

  // Parts are begun in their order, so the first that fails does so on any executor, and its status is the one returned.
  static absl::Status RunParts(const std::vector<Part>& parts, StopCheck stop, const Executor& executor) {
    std::vector<absl::StatusOr<RunResult>> results(parts.size(), absl::CancelledError("not begun"));
    executor.ForEach(parts.size(), [&](size_t i) {
      results[i] = parts[i].runs->Run(parts[i].index, stop);
      return results[i].ok();
    });
    for (size_t i = 0; i < parts.size(); ++i) {
      if (!results[i].ok()) return results[i].status();
      parts[i].runs->Add(*results[i]);
    }
    return absl::OkStatus();
  }

  bool EachHasRun() const {
    return std::all_of(entries_.begin(), entries_.end(), [](const Entry& entry) { return entry.runs.done() > 0; });
  }

  static SimulationStatistics StatisticsOf(const Replications& runs) {
    if (runs.done() == 0) return {};
    return {.simulated_operations = runs.simulated_operations(), .engine_path = NameOf(runs.path())};
  }

  absl::StatusOr<std::shared_ptr<const RankedGraph>> GraphOf(const Scenario& scenario, StopCheck stop) const {
    for (const Entry& entry : entries_) {
      if (RankedGraph::SharedBy(entry.runs.scenario(), scenario)) return entry.runs.graph();
    }
    return RankedGraph::Make(profile_, scenario, stop);
  }

  const Profile& profile_;
  const SimulationOptions& options_;
  std::deque<Entry> entries_;
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

void SimulationStatistics::Add(const SimulationStatistics& other) {
  simulated_operations += other.simulated_operations;
  if (engine_path.empty()) {
    engine_path = other.engine_path;
  } else if (!absl::StrContains(engine_path, other.engine_path)) {
    absl::StrAppend(&engine_path, ", ", other.engine_path);
  }
}

absl::StatusOr<ThroughputAnswer> PredictThroughput(const Profile& profile, const ThroughputQuery& query, StopCheck stop, const Executor& executor) {
  RunSet runs(profile, query.options);
  std::vector<std::pair<size_t, size_t>> wanted;  // a scenario's run, and its baseline's
  for (const Scenario& scenario : query.scenarios) {
    const absl::StatusOr<size_t> index = runs.Add(scenario, stop);
    if (!index.ok()) return index.status();
    const absl::StatusOr<size_t> baseline = scenario.workers == 1 ? *index : runs.Add(OneWorkerOf(scenario), stop);
    if (!baseline.ok()) return baseline.status();
    wanted.emplace_back(*index, *baseline);
  }
  if (absl::Status status = runs.RunAll(stop, executor); !status.ok()) return status;
  ThroughputAnswer answer;
  for (const auto& [index, baseline] : wanted) answer.predictions.push_back(runs.Summarize(index, baseline));
  answer.simulation = runs.Statistics();
  return answer;
}

}  // namespace stepcast
