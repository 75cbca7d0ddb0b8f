// The replications of one scenario: independent runs, and what they say together.
//
// Replications differ only in the random choices: the recorded steps sampled, random orders,
// staggered starts. Where nothing is random, one run is all there is. Where their number was not
// asked for it grows, at 5 and at 10 of them, to twice as many while a single run is known to no
// better than 5 %: what scatters needs more of them to say how much.
// Runs are as short as the answer allows where their length was not asked for either
// (OptionsOfRuns). Of workers that meet in collectives three do where the mean is known to 0.5 % by
// then. With parameter servers five of the least length do where the mean is known well enough and
// does not drift, ten where five come close; else all are made anew, longer, and are 20 where ten
// leave the mean open by more than an eighth. Well enough is 1 %, or a share of the error that
// recording and model leave anyway; or relative_precision. Such workers start within a step as it
// is when links are shared, not as it was recorded: a run begins as crowded as it goes on, and has
// little to forget. Threads: const members may be called at once. Cost: a run of the engine a Run.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

#include "core/base/distributions.h"
#include "core/base/stop_check.h"
#include "core/communication/job.h"
#include "core/engine/job_graph.h"
#include "core/engine/simulation.h"
#include "core/model/profile.h"
#include "core/model/scenario.h"
#include "core/model/simulation_options.h"
#include "core/predict/certainty.h"
#include "core/predict/run_summary.h"
#include "core/predict/throughput.h"
#include "core/predict/worlds.h"

namespace stepcast {

// The run that the engine makes for a scenario: the replication with that index, from 0, on the
// fastest path there is.
//
// REQUIRES: scenario and options were resolved for this profile.
RunOptions RunOptionsOf(const Profile& profile, const Scenario& scenario,
                        const SimulationOptions& options, int32_t replication);

// The program and ranking that runs of several scenarios may share: they do not depend on the
// workers, their starts or their synchronization.
struct RankedGraph {
  JobProgram job;
  std::shared_ptr<const Ranking> ranking;  // null where workers meet in collectives
  std::shared_ptr<const Worlds> worlds;    // null: steps are as recorded
  std::optional<PassTimes> passes;         // at the recorded speed
  MemoryNeeds memory;
  // By world; empty but for parameter servers whose steps vary. Without barriers none is kWider.
  std::vector<Worlds::ListedJob> listed;

  // REQUIRES: scenario was resolved for this profile. Failure: as BuildJobProgram.
  static absl::StatusOr<std::shared_ptr<const RankedGraph>> Make(
      const Profile& profile, const Scenario& scenario, StopCheck stop,
      std::shared_ptr<const Worlds> worlds = nullptr);
  JobGraph JobOf(const Scenario& scenario, World world = World::kExpected) const {
    if (listed.empty()) return stepcast::JobOf(job, ranking, scenario);
    const Worlds::ListedJob& in_world = listed[static_cast<size_t>(world)];
    return stepcast::JobOf(in_world.job, in_world.ranking, scenario);
  }
  // Null where steps are as recorded or as listed.
  std::shared_ptr<const StepScaling> scaling(World world = World::kExpected) const {
    return worlds == nullptr || !listed.empty() ? nullptr : worlds->scaling(world);
  }
  // True if both scenarios have the same one.
  static bool SharedBy(const Scenario& a, const Scenario& b);
};

class Replications {
 public:
  // The question that runs answer.
  enum class Purpose : uint8_t {
    kPrediction,
    // Throughput at another start, compared with the asked one: nothing of what the recording
    // leaves open. Runs are as short as can be, although nothing may be random in them.
    kOtherStart,
  };

  // REQUIRES: scenario and options were resolved for this profile, which must outlive the result;
  // `graph` is this scenario's.
  Replications(const Profile& profile, const Scenario& scenario, const SimulationOptions& options,
               std::shared_ptr<const RankedGraph> graph, Purpose purpose = Purpose::kPrediction);

  const Scenario& scenario() const { return scenario_; }
  const SimulationOptions& options() const { return options_; }
  const std::shared_ptr<const RankedGraph>& graph() const { return graph_; }
  Purpose purpose() const { return purpose_; }
  int32_t done() const { return static_cast<int32_t>(estimates_.size()); }
  // Raises the number of runs to what these options ask for; never fewer than before.
  void Allow(const SimulationOptions& options);
  // True if longer runs may be made in place of these.
  bool CanLengthen() const { return length_ + 1 < lengths_; }
  // True if the runs so far say too little, and no more of their length will be wanted.
  // REQUIRES: Wanted() is 0.
  bool NeedsLength() const { return CanLengthen() && !IsPrecise(done()); }
  // Forgets the runs so far: those wanted from now on are longer, and of the same random choices.
  // REQUIRES: CanLengthen().
  void Lengthen();
  // The number of runs that are still wanted, whatever they will say; 0 where their number or the
  // precision is reached.
  int32_t Wanted() const;
  // The run of that index, from 0. Any number may be made at once. FAILED_PRECONDITION, reason
  // SIMULATION_TOO_SHORT, where there is no throughput to report: a worker does not complete two
  // steps in the counted time, or none completes one in the first seconds asked for.
  absl::StatusOr<RunSummary> Run(int32_t index, StopCheck stop) const;
  // A short run of a change: opening_steps_per_second, 0 where it is too short to tell them, and
  // the estimate of RunPaired for index 0 where that run is no longer, else 0; nothing else.
  // REQUIRES: done() > 0; it is the changed scenario's graph.
  absl::StatusOr<RunSummary> RunShort(const Scenario& changed, const RankedGraph& graph,
                                      StopCheck stop) const;
  // The share by which steps per second grow with a change, of its short run: over the begin of the
  // first run made, which has the same random choices. Empty where runs so short do not tell it.
  std::optional<double> GainOf(const RunSummary& short_run) const;
  // A run of a change as long as the runs of this, with the random choices of the one of that
  // index: its estimate, and nothing else. REQUIRES: as RunShort. Failure: as Run.
  absl::StatusOr<RunSummary> RunPaired(const Scenario& changed, const RankedGraph& graph,
                                       int32_t index, StopCheck stop) const;
  // Error of the mean's logarithm that the recording leaves open. None as recorded.
  std::optional<InputError> OfInput() const;
  // The share of steps per second to which that is known.
  double GainError() const;
  // REQUIRES: it is the run of index done().
  void Add(const RunSummary& run);

  // Mean of the runs done so far. REQUIRES, here and below: done() > 0.
  MeanInterval StepsPerSecond() const;
  // Each run's, in steps per second.
  std::vector<double> Runs() const;
  // speedup and scaling_efficiency are left to the caller, and so is what another start would say.
  Prediction Summarize() const;
  // Rates of the counted time's halves, in steps per second, mean over the runs.
  double EarlyStepsPerSecond() const;
  double LateStepsPerSecond() const;
  // Counts of all runs ever made, those that were too short included.
  int64_t simulated_operations() const { return simulated_operations_; }
  int64_t made() const { return made_; }
  // The engine's path in the last run.
  EnginePath path() const { return path_; }
  // Largest over the runs; see RunResult.
  double straggler_fraction() const { return straggler_fraction_; }
  // The engine's job.
  const JobGraph& job() const { return job_; }
  // True if a run may differ from the next.
  bool IsRandom() const;

 private:
  // Steps of each worker: from the end of the first to that of the last. No last: the whole run.
  struct Opening {
    int32_t first = 0;
    int32_t last = 0;
  };
  Opening OpeningOf() const;
  bool IsWholeRun(const Opening& opening) const;
  double OpeningRate(const RunResult& result) const;
  bool StartMatters() const;
  // True if the rate of links was neither measured nor said to be, and workers' data takes longer
  // at half of it.
  bool LinkRateMatters() const;
  // True if links of several servers are in equal shares for want of anything that says so.
  bool SharingMatters() const;
  // True if the runs so far say enough, where replications were not asked for.
  bool SaysEnough(int32_t milestone) const;
  // Wanted(), where replications were not asked for and something is random.
  int32_t WantedUnasked() const;
  // Wanted(), where the runs' length was not asked for and may grow.
  int32_t WantedOfLength() const;
  void SkipEqualLengths();
  // The precision that is asked of the mean, as a share of it.
  double Precision() const;
  // Half the width of the interval of the mean of the first `runs`, as a share of it.
  double HalfWidth(int32_t runs) const;
  // True if their mean is as precise as it should be, and does not drift.
  bool IsPrecise(int32_t runs) const;
  // Steps per second that the halves of the counted time may differ by.
  double DriftThatMatters(double ends) const;
  // A short run of the changed scenario in a world: its steps per second, 0 where it is too short.
  absl::StatusOr<RunResult> RunOpening(const Scenario& scenario, const RankedGraph& graph,
                                       World world, StopCheck stop) const;
  RunSummary Summary(const RunResult& result) const;
  // Adds to the first run's summary how its begin answers to the worlds apart.
  absl::Status RunWorldsApart(RunSummary& summary, StopCheck stop) const;
  // Adds to it how its begin compares with a change of the scenario.
  absl::Status RunChanged(const Scenario& changed, double RunSummary::*ratio, RunSummary& summary,
                          StopCheck stop) const;
  // The half-width of the mean's interval by chance of the simulation that is enough, as a share.
  double EnoughOfMean(double asked) const;
  absl::Status CheckMeasured(const RunResult& result) const;
  void AddUtilization(const RunSummary& run);
  // None as recorded: such runs are compared with other simulations.
  ModelError ModelErrorOf() const;
  void WarnOfLinkRate(Prediction& prediction) const;
  void WarnOfLinkSharing(Prediction& prediction) const;
  void DescribeResources(Prediction& prediction) const;
  void DescribeCollectives(Prediction& prediction) const;
  double SlowestSpeed() const;
  void JudgeConvergence(Prediction& prediction) const;

  const Profile* profile_;
  Scenario scenario_;
  Purpose purpose_;
  SimulationOptions options_;
  std::shared_ptr<const RankedGraph> graph_;
  JobGraph job_;
  SimulationOptions unasked_;  // of runs of any length, where lengths_ is more than one
  RunRules rules_;
  int32_t lengths_ = 1;
  int32_t length_ = 0;  // of lengths_
  // By run.
  std::vector<RunEstimate> estimates_;
  std::vector<double> drift_;
  std::vector<double> late_;
  // Over all runs.
  double opening_ = 0;            // steps per second of the first run's begin
  CompletionSeries completions_;  // of the first run, thinned
  Sensitivity sensitivity_;
  double half_rate_ratio_ = 0;
  double first_come_ratio_ = 0;
  StepTimeHistogram step_times_;
  std::vector<double> utilization_;      // sums, by lane
  double exposed_ = 0;                   // sum
  double waiting_ = 0;                   // sum
  std::vector<JointTimes> joint_times_;  // sums, by collective
  double straggler_fraction_ = 0;
  int64_t simulated_operations_ = 0;
  int64_t made_ = 0;
  EnginePath path_ = EnginePath::kPlain;
};

}  // namespace stepcast
