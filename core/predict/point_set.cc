#include "core/predict/point_set.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "absl/strings/str_cat.h"

#include "core/predict/run_memory.h"
#include "core/predict/start_comparison.h"

namespace stepcast {

namespace {

// The most parts that are run between two looks at the results: enough for any number of threads,
// and not too much to be held.
constexpr size_t kMaxParts = 512;
// The half-width of the interval of a gain's ratio, as a share, of pairs of runs that agree.
constexpr double kAgreeingPairs = 0.1;
// Difference between the halves of a run that is none, as a share of the throughput.
constexpr double kStandingStill = 0.005;

SimulationOptions AsATry(SimulationOptions options, const Scenario& scenario) {
  if (options.automatic_steps && RunRulesOf(scenario).lengths > 1) return options;
  options.replications = std::min(options.replications, PointSet::kRunsOfATry);
  options.automatic_replications = false;
  return options;
}

SimulationStatistics StatisticsOf(const Replications& runs) {
  if (runs.done() == 0) return {};
  return {.simulated_operations = runs.simulated_operations(),
          .engine_path = NameOf(runs.path()),
          .runs = runs.made()};
}

}  // namespace

PointSet::PointSet(const Profile& profile, const SimulationOptions& options, KnownRuns known,
                   const SharedBatch* shared)
    : profile_(profile),
      options_(options),
      known_(std::move(known)),
      worlds_(options.step_variation == StepSource::kModelled
                  ? std::make_shared<const Worlds>(profile)
                  : nullptr),
      whole_(profile, options_, known_, shared) {}

absl::StatusOr<size_t> PointSet::Add(const Scenario& scenario, StopCheck stop) {
  if (whole_.Takes(scenario)) return kFirstWhole + whole_.FindOrAppend(scenario);
  absl::StatusOr<size_t> index = Try(scenario, stop);
  if (!index.ok()) return index;
  RunInFull(entries_[*index]);
  return index;
}

absl::StatusOr<size_t> PointSet::Try(const Scenario& scenario, StopCheck stop) {
  if (whole_.Takes(scenario)) return kFirstWhole + whole_.FindOrAppend(scenario);
  absl::StatusOr<size_t> index = FindOrAppend(scenario, stop);
  if (!index.ok()) return index;
  std::vector<size_t> baselines;
  for (const Scenario& alone :
       scenario.workers == 1 ? std::vector{scenario} : LoneWorkersOf(scenario)) {
    absl::StatusOr<size_t> baseline = FindOrAppend(alone, stop);
    if (!baseline.ok()) return baseline;
    baselines.push_back(*baseline);
    // A baseline is part of many answers, and costs the least of all.
    RunInFull(entries_[*baseline]);
  }
  entries_[*index].baselines = std::move(baselines);
  return index;
}

absl::StatusOr<size_t> PointSet::AddAlone(const Scenario& scenario, StopCheck stop) {
  absl::StatusOr<size_t> index = TryAlone(scenario, stop);
  if (index.ok()) RunInFull(entries_[*index]);
  return index;
}

absl::StatusOr<size_t> PointSet::TryAlone(const Scenario& scenario, StopCheck stop) {
  const size_t before = entries_.size();
  absl::StatusOr<size_t> index = FindOrAppend(scenario, stop);
  if (index.ok() && *index == before) entries_[*index].baselines = {*index};
  return index;
}

absl::StatusOr<size_t> PointSet::FindOrAppend(const Scenario& scenario, StopCheck stop) {
  const auto found = std::find_if(entries_.begin(), entries_.end(), [&](const Entry& entry) {
    return entry.runs.scenario() == scenario;
  });
  if (found != entries_.end()) return static_cast<size_t>(found - entries_.begin());
  absl::StatusOr<std::shared_ptr<const RankedGraph>> graph = GraphOf(scenario, stop);
  if (!graph.ok()) return graph.status();
  entries_.push_back(
      Entry{.runs = Replications(profile_, scenario, AsATry(OptionsOf(scenario), scenario),
                                 *std::move(graph)),
            .other_start = std::nullopt});
  // Lockstep at every number of workers would make all of them look alike.
  if (!StartsAtRandom(scenario, options_)) CompareStarts(entries_.back());
  return entries_.size() - 1;
}

absl::StatusOr<std::shared_ptr<const RankedGraph>> PointSet::GraphOf(const Scenario& scenario,
                                                                     StopCheck stop) const {
  for (const Entry& entry : entries_) {
    if (RankedGraph::SharedBy(entry.runs.scenario(), scenario)) return entry.runs.graph();
  }
  return RankedGraph::Make(profile_, scenario, stop, worlds_);
}

void PointSet::RunInFull(Entry& entry) {
  if (entry.in_full) return;
  entry.in_full = true;
  entry.runs.Allow(options_);
  CompareStarts(entry);
}

SimulationOptions PointSet::OptionsOf(const Scenario& scenario) const {
  SimulationOptions options = options_;
  if (scenario.RemembersStart() && !StartsAtRandom(scenario, options_))
    options.automatic_steps = false;
  return options;
}

void PointSet::CompareStarts(Entry& entry) {
  const Scenario& scenario = entry.runs.scenario();
  if (entry.other_start.has_value()) return;
  if (options_.horizon == Horizon::kSteadyState && scenario.RemembersStart()) {
    entry.other_start.emplace(profile_, WithOtherStart(scenario),
                              WithOtherStart(scenario, OptionsOf(scenario)), entry.runs.graph(),
                              Replications::Purpose::kOtherStart);
  }
}

absl::Status PointSet::RunAll(StopCheck stop, const Executor& executor) {
  for (;;) {
    std::vector<Part> parts = NextParts();
    if (parts.empty() && Lengthen()) continue;
    if (parts.empty()) return whole_.RunAll(stop, executor);
    absl::Status status = RunParts(parts, stop, executor);
    if (IsTimeBudgetSpent(status) && EachHasRun()) return absl::OkStatus();
    if (!status.ok()) return status;
  }
}

bool PointSet::IsForgotten(const Entry& entry) {
  return entry.other_start.has_value() && entry.runs.options().automatic_steps &&
         entry.Known().done() > 0 && entry.other_start->done() > 0 &&
         ForgotItsStart(entry.Known().StepsPerSecond().mean,
                        entry.other_start->EarlyStepsPerSecond(),
                        entry.other_start->LateStepsPerSecond());
}

// Throughput that does not move any more at either start will not in longer runs either.
bool PointSet::IsStuck(const Entry& entry) {
  const double change =
      entry.other_start->LateStepsPerSecond() - entry.other_start->EarlyStepsPerSecond();
  return entry.runs.done() > 0 && entry.other_start->done() > 0 &&
         std::abs(change) <= kStandingStill * entry.runs.StepsPerSecond().mean;
}

bool PointSet::Lengthen() {
  bool lengthened = false;
  for (Entry& entry : entries_) lengthened = Lengthen(entry) || lengthened;
  return lengthened;
}

// The runs of the start asked for first: those of the other are held beside them, and take longer.
bool PointSet::Lengthen(Entry& entry) {
  const bool too_short = entry.runs.NeedsLength();
  const bool remembers = entry.other_start.has_value() && !IsForgotten(entry);
  if (!too_short && remembers && entry.other_start->CanLengthen()) {
    entry.other_start->Lengthen();
    return true;
  }
  if (!entry.runs.CanLengthen() || !(too_short || (remembers && !IsStuck(entry)))) return false;
  entry.shorter = entry.runs;
  entry.runs.Lengthen();
  return true;
}

// The runs that are wanted whatever the others say: one of each scenario, then one of each other
// start, then a second of each, and so on, so that a spent time budget leaves something of every
// scenario; of those the largest first, so that threads end together.
std::vector<PointSet::Part> PointSet::NextParts() {
  const auto has_more_workers = [](const Part& a, const Part& b) {
    return a.runs->scenario().workers > b.runs->scenario().workers;
  };
  std::vector<Part> parts;
  for (int32_t round = 0; parts.size() < kMaxParts; ++round) {
    const size_t before = parts.size();
    for (Entry& entry : entries_) AddPart(entry.runs, round, parts);
    std::stable_sort(parts.begin() + static_cast<std::ptrdiff_t>(before), parts.end(),
                     has_more_workers);
    const size_t other = parts.size();
    for (Entry& entry : entries_) {
      if (entry.other_start.has_value()) AddPart(*entry.other_start, round, parts);
    }
    std::stable_sort(parts.begin() + static_cast<std::ptrdiff_t>(other), parts.end(),
                     has_more_workers);
    if (parts.size() == before) break;
  }
  return parts;
}

void PointSet::AddPart(Replications& runs, int32_t round, std::vector<Part>& parts) const {
  if (round >= runs.Wanted()) return;
  Part part{.runs = &runs, .index = runs.done() + round, .key = {}};
  if (known_.memory != nullptr) {
    part.key =
        RunKeyOf(RunKeyPrefix(known_.profile_digest, runs.scenario(), runs.options()), part.index);
    // Such a run says less.
    if (runs.purpose() == Replications::Purpose::kOtherStart) part.key += '-';
  }
  parts.push_back(std::move(part));
}

std::string PointSet::KeyOfChange(const BottleneckSearch& search, size_t point, size_t change,
                                  int32_t index, std::string_view kind) const {
  if (known_.memory == nullptr) return "";
  const Replications& without = entries_[point].Known();
  const auto key = [&](const Scenario& scenario) {
    return RunKeyOf(RunKeyPrefix(known_.profile_digest, scenario, without.options()), index);
  };
  const char* const steps = search.profile(change) == nullptr ? "" : "other steps ";
  return RunKeyOfKind(key(without.scenario()) + key(search.scenario(change)),
                      absl::StrCat(steps, std::string(kind)));
}

absl::StatusOr<std::shared_ptr<const RankedGraph>> PointSet::GraphOfChange(
    const BottleneckSearch& search, size_t change, StopCheck stop) {
  const Scenario& scenario = search.scenario(change);
  const std::shared_ptr<const Profile>& profile = search.profile(change);
  if (profile == nullptr) return GraphOf(scenario, stop);
  if (other_worlds_ == nullptr && worlds_ != nullptr)
    other_worlds_ = std::make_shared<const Worlds>(*profile);
  return RankedGraph::Make(*profile, scenario, stop, other_worlds_);
}

// Parts are begun in their order, so the first that fails does so on any executor, and its status
// is the one returned.
absl::Status PointSet::RunParts(std::vector<Part>& parts, StopCheck stop,
                                const Executor& executor) {
  std::vector<std::shared_ptr<const RunSummary>> known(parts.size());
  std::vector<size_t> unknown;
  for (size_t i = 0; i < parts.size(); ++i) {
    if (known_.memory != nullptr) known[i] = known_.memory->Find(parts[i].key);
    if (known[i] == nullptr) unknown.push_back(i);
  }
  std::vector<absl::Status> failures(parts.size(), absl::CancelledError("not begun"));
  known_.ForEach(executor, unknown.size(), [&](size_t k) {
    const size_t i = unknown[k];
    auto run = known_.Once(
        parts[i].key, [&] { return parts[i].runs->Run(parts[i].index, stop); },
        /*was_asked=*/true);
    failures[i] = run.status();
    if (run.ok()) known[i] = *std::move(run);
    return failures[i].ok();
  });
  size_t next_unknown = 0;
  for (size_t i = 0; i < parts.size(); ++i) {
    if (known[i] == nullptr) return failures[i];
    parts[i].runs->Add(*known[i]);
    const bool was_unknown = next_unknown < unknown.size() && unknown[next_unknown] == i;
    next_unknown += was_unknown ? 1 : 0;
    recalled_runs_ += was_unknown ? 0 : 1;
  }
  for (Entry& entry : entries_) {
    if (entry.shorter.has_value() &&
        (entry.runs.Wanted() == 0 || entry.runs.done() >= entry.shorter->done()))
      entry.shorter.reset();
  }
  return absl::OkStatus();
}

bool PointSet::EachHasRun() const {
  return std::all_of(entries_.begin(), entries_.end(),
                     [](const Entry& entry) { return entry.Known().done() > 0; });
}

absl::Status PointSet::FindBottlenecks(const std::vector<size_t>& points, StopCheck stop,
                                       const Executor& executor) {
  absl::Status status = SearchBottlenecks(points, stop, executor);
  return IsTimeBudgetSpent(status) ? absl::OkStatus() : status;
}

absl::Status PointSet::SearchBottlenecks(const std::vector<size_t>& points, StopCheck stop,
                                         const Executor& executor) {
  if (std::all_of(points.begin(), points.end(), IsWhole)) return absl::OkStatus();
  if (!changes_.has_value()) {
    absl::StatusOr<JobChanges> changes = JobChanges::Of(profile_, stop);
    if (!changes.ok()) return changes.status();
    changes_ = *std::move(changes);
  }
  std::vector<Search> searches;
  for (const size_t point : points) {
    if (IsWhole(point)) continue;
    if (std::any_of(searches.begin(), searches.end(),
                    [&](const Search& search) { return search.point == point; }))
      continue;
    const Replications& runs = entries_[point].Known();
    searches.push_back({.point = point,
                        .bottleneck = BottleneckSearch(profile_, *changes_, runs.Summarize(),
                                                       runs.graph()->job.collectives,
                                                       options_.horizon == Horizon::kSteadyState)});
  }
  if (absl::Status status = RunShort(searches, stop, executor); !status.ok()) return status;
  if (absl::Status status = TellApart(searches, stop, executor); !status.ok()) return status;
  for (const Search& search : searches)
    entries_[search.point].bottleneck = search.bottleneck.Greatest();
  return absl::OkStatus();
}

// One change of each point at a time: what it brings may spare the next.
absl::Status PointSet::RunShort(std::vector<Search>& searches, StopCheck stop,
                                const Executor& executor) {
  struct ShortRun {
    Search* search;
    size_t change;
    std::shared_ptr<const RankedGraph> graph;
    absl::StatusOr<std::shared_ptr<const RunSummary>> made;
  };
  struct Made {
    const BottleneckSearch* search;
    size_t change;
    std::shared_ptr<const RankedGraph> graph;
  };
  std::vector<Made> graphs;
  const auto graph_of = [&](const BottleneckSearch& search,
                            size_t change) -> absl::StatusOr<std::shared_ptr<const RankedGraph>> {
    for (const Made& made : graphs) {
      if (made.search->profile(made.change) == search.profile(change) &&
          RankedGraph::SharedBy(made.search->scenario(made.change), search.scenario(change)))
        return made.graph;
    }
    absl::StatusOr<std::shared_ptr<const RankedGraph>> graph = GraphOfChange(search, change, stop);
    if (graph.ok()) graphs.push_back({.search = &search, .change = change, .graph = *graph});
    return graph;
  };
  for (;;) {
    std::vector<ShortRun> runs;
    for (Search& search : searches) {
      const std::optional<size_t> change = search.bottleneck.Next();
      if (!change.has_value()) continue;
      auto graph = graph_of(search.bottleneck, *change);
      if (!graph.ok()) return graph.status();
      runs.push_back({.search = &search,
                      .change = *change,
                      .graph = *std::move(graph),
                      .made = absl::CancelledError("not begun")});
    }
    if (runs.empty()) return absl::OkStatus();
    known_.ForEach(executor, runs.size(), [&](size_t i) {
      ShortRun& run = runs[i];
      const Replications& without = entries_[run.search->point].Known();
      const Scenario& changed = run.search->bottleneck.scenario(run.change);
      run.made = known_.Once(
          KeyOfChange(run.search->bottleneck, run.search->point, run.change, 0, "short"),
          [&] { return without.RunShort(changed, *run.graph, stop); });
      return run.made.ok();
    });
    for (ShortRun& run : runs) {
      if (!run.made.ok()) return run.made.status();
      const RunSummary& made = **run.made;
      const Replications& without = entries_[run.search->point].Known();
      run.search->bottleneck.AddShort(run.change, without.GainOf(made));
      if (made.estimate.steps_per_second > 0)
        run.search->first_pairs.emplace(run.change, made.estimate.steps_per_second);
      short_operations_ += made.simulated_operations;
    }
  }
}

absl::Status PointSet::RunChanges(const std::vector<ChangeInFull>& changes, StopCheck stop,
                                  const Executor& executor) {
  std::vector<Pairs> all;
  for (const ChangeInFull& change : changes) {
    auto graph = GraphOfChange(change.search->bottleneck, change.change, stop);
    if (!graph.ok()) return graph.status();
    all.push_back({.change = change, .graph = *std::move(graph)});
    const auto first = change.search->first_pairs.find(change.change);
    if (first != change.search->first_pairs.end()) all.back().with.push_back(first->second);
  }
  // A few, then as many as the point has where those do not agree.
  for (const int32_t most : {kRunsOfATry, std::numeric_limits<int32_t>::max()}) {
    if (absl::Status status = RunPairs(all, most, stop, executor); !status.ok()) return status;
  }
  for (const Pairs& pairs : all) {
    const PairedRatio paired = RatioOfPairs(pairs.with, RunsOf(pairs.change.search->point), 0.95);
    pairs.change.search->bottleneck.AddInFull(pairs.change.change, paired.ratio - 1);
  }
  return absl::OkStatus();
}

absl::Status PointSet::RunPairs(std::vector<Pairs>& all, int32_t most, StopCheck stop,
                                const Executor& executor) {
  struct Run {
    Pairs* pairs;
    int32_t index;
    absl::StatusOr<std::shared_ptr<const RunSummary>> made;
  };
  std::vector<Run> runs;
  for (Pairs& pairs : all) {
    const Replications& without = entries_[pairs.change.search->point].Known();
    const auto done = static_cast<int32_t>(pairs.with.size());
    if (done > 1) {
      if (RatioOfPairs(pairs.with, without.Runs(), 0.95).half_width <= kAgreeingPairs) continue;
    }
    for (int32_t i = done; i < std::min(most, without.done()); ++i)
      runs.push_back({.pairs = &pairs, .index = i, .made = absl::CancelledError("not begun")});
  }
  known_.ForEach(executor, runs.size(), [&](size_t i) {
    Run& run = runs[i];
    const auto& [search, change] = run.pairs->change;
    const Replications& without = entries_[search->point].Known();
    const Scenario& changed = search->bottleneck.scenario(change);
    run.made =
        known_.Once(KeyOfChange(search->bottleneck, search->point, change, run.index, "paired"),
                    [&] { return without.RunPaired(changed, *run.pairs->graph, run.index, stop); });
    return run.made.ok();
  });
  for (Run& run : runs) {
    if (!run.made.ok()) return run.made.status();
    run.pairs->with.push_back((*run.made)->estimate.steps_per_second);
    short_operations_ += (*run.made)->simulated_operations;
  }
  return absl::OkStatus();
}

absl::Status PointSet::TellApart(std::vector<Search>& searches, StopCheck stop,
                                 const Executor& executor) {
  std::vector<ChangeInFull> unclear;
  for (Search& search : searches) {
    const double error = entries_[search.point].Known().GainError();
    for (const size_t change : search.bottleneck.Unclear(error))
      unclear.push_back({.search = &search, .change = change});
  }
  if (absl::Status status = RunChanges(unclear, stop, executor); !status.ok()) return status;
  // Each round takes a change of every search, at most.
  for (size_t round = 0; round < kChangesOfOneResource.size(); ++round) {
    std::vector<ChangeInFull> greatest;
    for (Search& search : searches) {
      const Scenario& scenario = entries_[search.point].runs.scenario();
      if (RunRulesOf(scenario).lengths == 1 || scenario.workers == 1) continue;
      entries_[search.point].bottleneck = search.bottleneck.Greatest();
      if (const auto change = search.bottleneck.GreatestByShort(); change.has_value())
        greatest.push_back({.search = &search, .change = *change});
    }
    if (greatest.empty()) break;
    if (absl::Status status = RunChanges(greatest, stop, executor); !status.ok()) return status;
  }
  return absl::OkStatus();
}

bool PointSet::HasRun(size_t index) const {
  if (IsWhole(index)) return whole_.prediction(index - kFirstWhole).has_value();
  return entries_[index].Known().done() > 0 &&
         std::ranges::all_of(entries_[index].baselines, [this](size_t baseline) {
           return entries_[baseline].Known().done() > 0;
         });
}

Prediction PointSet::Summarize(size_t index) const {
  if (IsWhole(index)) return *whole_.prediction(index - kFirstWhole);
  const Entry& entry = entries_[index];
  const Replications& runs = entry.Known();
  Prediction prediction = runs.Summarize();
  double alone = 0;
  for (const size_t baseline : entry.baselines)
    alone = std::max(alone, entries_[baseline].Known().StepsPerSecond().mean);
  prediction.speedup = prediction.steps_per_second / alone;
  prediction.scaling_efficiency = prediction.speedup / prediction.scenario.workers;
  if (options_.horizon == Horizon::kSteadyState && runs.scenario().RemembersStart()) {
    Starts starts{.at_random = StartsAtRandom(runs.scenario(), options_),
                  .own = {runs.StepsPerSecond(), runs.Runs()},
                  .other = {}};
    if (entry.other_start.has_value() && entry.other_start->done() > 0 && !IsForgotten(entry)) {
      starts.other = {entry.other_start->StepsPerSecond(), entry.other_start->Runs()};
    }
    JudgeStarts(starts, profile_.batch_size(), prediction);
  }
  if (entry.bottleneck.has_value()) NameBottleneck(*entry.bottleneck, prediction);
  return prediction;
}

SimulationStatistics PointSet::Statistics() const {
  SimulationStatistics statistics = whole_.statistics();
  for (const Entry& entry : entries_) {
    statistics.Add(StatisticsOf(entry.runs));
    if (entry.other_start.has_value()) statistics.Add(StatisticsOf(*entry.other_start));
  }
  statistics.simulated_operations += short_operations_;
  statistics.recalled_runs = recalled_runs_;
  return statistics;
}

}  // namespace stepcast
