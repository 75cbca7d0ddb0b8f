// Scenarios of one job, run a few at a time: each once, whoever asks for it and however often.
//
// Threads: none.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

#include "core/base/distributions.h"
#include "core/base/executor.h"
#include "core/base/stop_check.h"
#include "core/model/profile.h"
#include "core/model/scenario.h"
#include "core/model/simulation_options.h"
#include "core/predict/bottleneck.h"
#include "core/predict/pipeline_prediction.h"
#include "core/predict/replications.h"
#include "core/predict/run_memory.h"
#include "core/predict/shared_batch.h"
#include "core/predict/throughput.h"
#include "core/predict/what_if.h"
#include "core/predict/worlds.h"

namespace stepcast {

// Points that are not made of runs of one graph, and so are answered as a whole (whole_points.cc):
// of pipelines, and of a batch that workers divide, where each number of workers has its own
// profile.

// The same job with one worker, the fastest of which speed-up is measured against: of unlike
// workers, each that no other equals or surpasses in both speed and bandwidth.
std::vector<Scenario> LoneWorkersOf(const Scenario& scenario);

class WholePoints {
 public:
  // Null `shared`: no batch is. REQUIRES: all that is given outlives this.
  WholePoints(const Profile& profile, const SimulationOptions& options, const KnownRuns& known,
              const SharedBatch* shared)
      : profile_(profile), options_(options), known_(known), shared_(shared) {}

  // True if the scenario is answered here.
  bool Takes(const Scenario& scenario) const {
    return scenario.pipeline.has_value() || shared_ != nullptr;
  }
  // Its index. REQUIRES: Takes(scenario).
  size_t FindOrAppend(const Scenario& scenario);
  // Predicts what has no prediction yet. Failure: as PredictThroughput.
  absl::Status RunAll(StopCheck stop, const Executor& executor);
  const std::optional<Prediction>& prediction(size_t index) const {
    return points_[index].prediction;
  }
  const SimulationStatistics& statistics() const { return statistics_; }

 private:
  struct Point {
    Scenario scenario;
    std::optional<Prediction> prediction;
  };

  absl::Status Run(size_t index, StopCheck stop, const Executor& executor);
  absl::StatusOr<Prediction> PredictPipeline(const Scenario& scenario, StopCheck stop,
                                             const Executor& executor);
  absl::StatusOr<Prediction> PredictShare(const Scenario& scenario, StopCheck stop,
                                          const Executor& executor);
  // Sets the speed-up over one worker with the whole batch, which becomes a point, too.
  absl::Status CompareWithOne(const Scenario& scenario, StopCheck stop, const Executor& executor,
                              Prediction& prediction);

  const Profile& profile_;
  const SimulationOptions& options_;
  const KnownRuns& known_;
  const SharedBatch* const shared_;
  std::deque<Point> points_;
  // Both are made where they are asked for first: they read all recorded steps.
  std::optional<PipelinePredictor> predictor_;
  std::optional<PipelinePlan> plan_;
  std::optional<Pipeline> planned_;  // of what the plan is
  SimulationStatistics statistics_;
};

// Meaning: as PredictThroughput, which is all of them in full at once. A point may first be tried
// with fewer runs and be run in full later; it then says what it would have said if it had been
// from the start; one of a pipeline, or of a shared batch, is always run in full. Where no length
// was asked for, runs that say too little are made anew, longer (Replications), and so are those of
// the other start that have not forgotten it. Cost: linear in the number of points per Add, with a
// small factor; a graph is built once for all that share it.
class PointSet {
 public:
  // Fewer runs than this say too little of their own spread.
  static constexpr int32_t kRunsOfATry = 3;

  // REQUIRES, here and below: options and scenarios were resolved for this profile; it and what
  // `known` names outlive the set.
  // `shared`: each scenario's profile is the one with its workers' share of the batch, and its
  // speed-up is over one worker with all of it; it outlives the set. Null: all are of `profile`.
  PointSet(const Profile& profile, const SimulationOptions& options, KnownRuns known = {},
           const SharedBatch* shared = nullptr);

  // The index of that scenario, which RunAll will run in full: all the replications that the
  // options ask for, the other start, and one worker for the speed-up. Failure, here and below:
  // only what `stop` returns.
  absl::StatusOr<size_t> Add(const Scenario& scenario, StopCheck stop);
  // Add, but of at most kRunsOfATry replications (of as many where no length was asked for: they
  // are short), and where workers start at random without the other start: whether it has reached
  // its steady state is then judged by itself alone.
  absl::StatusOr<size_t> Try(const Scenario& scenario, StopCheck stop);
  // Add and Try, of a scenario that is compared with others and not with one worker: its speed-up
  // is over itself, and nobody may ask for it.
  absl::StatusOr<size_t> AddAlone(const Scenario& scenario, StopCheck stop);
  absl::StatusOr<size_t> TryAlone(const Scenario& scenario, StopCheck stop);

  // Makes what is wanted and not done. Where `stop` says that the time budget is spent: OK if every
  // point has a run. The runs are the parts given to `executor`; `stop` is asked by all of them.
  // Results do not depend on how many run at once.
  absl::Status RunAll(StopCheck stop, const Executor& executor);

  // Finds the bottlenecks of points that have runs, for Summarize to name. Where short runs do not
  // tell changes apart kRunsOfATry as long as the point's own do. Where `stop` says that the time
  // budget is spent: OK, and the points that are left have none.
  absl::Status FindBottlenecks(const std::vector<size_t>& points, StopCheck stop,
                               const Executor& executor);

  // REQUIRES: it has no pipeline, and no batch is shared.
  const Scenario& scenario(size_t index) const { return entries_[index].runs.scenario(); }
  // True if it can be summarized: it and its one worker have a run.
  bool HasRun(size_t index) const;
  // True if it was asked for in full.
  bool InFull(size_t index) const { return IsWhole(index) || entries_[index].in_full; }
  // REQUIRES: HasRun(index).
  Prediction Summarize(size_t index) const;
  // Steps per second of each run so far, in the order of their random choices: the n-th runs of two
  // scenarios that differ in neither workers nor recorded steps repeat the same recorded steps.
  std::vector<double> RunsOf(size_t index) const { return entries_[index].Known().Runs(); }
  // Sums over all runs so far.
  SimulationStatistics Statistics() const;

 private:
  struct Entry {
    Replications runs;
    // Runs that said too little, until as many longer ones have been made.
    std::optional<Replications> shorter;
    std::optional<Replications> other_start;

    // The runs that know it best.
    const Replications& Known() const { return shorter.has_value() ? *shorter : runs; }
    std::vector<size_t> baselines;
    bool in_full = false;
    std::optional<ResourceGain> bottleneck;
  };
  // The search for one point's bottleneck.
  struct Search {
    size_t point = 0;
    BottleneckSearch bottleneck;
    std::map<size_t, double> first_pairs;  // steps per second, by change: see ShortRun
  };
  // One run.
  struct Part {
    Replications* runs = nullptr;
    int32_t index = 0;
    std::string key;  // empty without a memory
  };

  // Indices of points that are answered as a whole begin here.
  static constexpr size_t kFirstWhole = size_t{1} << 32;
  static bool IsWhole(size_t index) { return index >= kFirstWhole; }

  absl::StatusOr<size_t> FindOrAppend(const Scenario& scenario, StopCheck stop);
  absl::StatusOr<std::shared_ptr<const RankedGraph>> GraphOf(const Scenario& scenario,
                                                             StopCheck stop) const;
  void RunInFull(Entry& entry);
  // Options as asked for, but never of few steps where the start matters and is not random: what
  // begins in lockstep says nothing in those.
  SimulationOptions OptionsOf(const Scenario& scenario) const;
  // Wants the other start, where it can matter.
  void CompareStarts(Entry& entry);
  // True if what the other start says is no other throughput, but the way to this one.
  static bool IsForgotten(const Entry& entry);
  // True if the other start says another throughput, and goes on to. REQUIRES: it is compared.
  static bool IsStuck(const Entry& entry);
  // Wants longer runs where those that were wanted say too little. False where none do.
  bool Lengthen();
  static bool Lengthen(Entry& entry);
  std::vector<Part> NextParts();
  void AddPart(Replications& runs, int32_t round, std::vector<Part>& parts) const;
  // The key of a run of a change; empty without a memory.
  std::string KeyOfChange(const BottleneckSearch& search, size_t point, size_t change,
                          int32_t index, std::string_view kind) const;
  absl::StatusOr<std::shared_ptr<const RankedGraph>> GraphOfChange(const BottleneckSearch& search,
                                                                   size_t change, StopCheck stop);
  absl::Status RunParts(std::vector<Part>& parts, StopCheck stop, const Executor& executor);
  bool EachHasRun() const;
  absl::Status RunShort(std::vector<Search>& searches, StopCheck stop, const Executor& executor);
  // A change whose gain a full run tells.
  struct ChangeInFull {
    Search* search;
    size_t change;
  };
  // Runs of a change, each with the random choices of the run of its point without it.
  struct Pairs {
    ChangeInFull change;
    std::shared_ptr<const RankedGraph> graph;
    std::vector<double> with;  // steps per second
  };
  // Up to `most` of each that does not agree yet.
  absl::Status RunPairs(std::vector<Pairs>& all, int32_t most, StopCheck stop,
                        const Executor& executor);
  absl::Status RunChanges(const std::vector<ChangeInFull>& changes, StopCheck stop,
                          const Executor& executor);
  absl::Status TellApart(std::vector<Search>& searches, StopCheck stop, const Executor& executor);
  absl::Status SearchBottlenecks(const std::vector<size_t>& points, StopCheck stop,
                                 const Executor& executor);

  const Profile& profile_;
  const SimulationOptions options_;
  const KnownRuns known_;
  const std::shared_ptr<const Worlds> worlds_;  // null: steps are as recorded
  // The worlds of steps that a change repeats in place of the profile's; null: not asked for yet.
  std::shared_ptr<const Worlds> other_worlds_;
  std::deque<Entry> entries_;
  WholePoints whole_;
  int64_t recalled_runs_ = 0;
  std::optional<JobChanges> changes_;
  int64_t short_operations_ = 0;  // of runs of changes
};

}  // namespace stepcast
