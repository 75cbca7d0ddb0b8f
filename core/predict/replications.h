// The replications of one scenario: independent runs, and what they say together.
//
// Replications differ only in the random choices: the recorded steps sampled, random orders,
// staggered starts. Where nothing is random, one run is all there is. Where their number was not
// asked for it grows, at 5 and at 10 of them, to twice as many while a single run is known to no
// better than 5 %: what scatters needs more of them to say how much.
// Runs of workers that meet in collectives may be shorter (OptionsOfRuns), and three of them do
// where the mean is known to 0.5 % by then.
// Threads: const members may be called at once. Cost: one run of the engine per Run.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

#include "core/base/stop_check.h"
#include "core/base/student_t.h"
#include "core/communication/job.h"
#include "core/engine/job_graph.h"
#include "core/engine/simulation.h"
#include "core/model/profile.h"
#include "core/model/scenario.h"
#include "core/model/simulation_options.h"
#include "core/predict/run_summary.h"
#include "core/predict/throughput.h"

namespace stepcast {

// The run that the engine makes for a scenario.
// Of the replication with that index, from 0, on the fastest path there is.
//
// REQUIRES: scenario and options were resolved for this profile.
RunOptions RunOptionsOf(const Profile& profile, const Scenario& scenario,
                        const SimulationOptions& options, int32_t replication);

// The program and ranking that runs of several scenarios may share: they do not depend on the
// workers, their starts or their synchronization.
struct RankedGraph {
  JobProgram job;
  std::shared_ptr<const Ranking> ranking;  // null where workers meet in collectives

  // REQUIRES: scenario was resolved for this profile. Failure: as BuildJobProgram.
  static absl::StatusOr<std::shared_ptr<const RankedGraph>> Make(const Profile& profile,
                                                                 const Scenario& scenario,
                                                                 StopCheck stop);
  JobGraph JobOf(const Scenario& scenario) const { return stepcast::JobOf(job, ranking, scenario); }
  // True if both scenarios have the same one.
  static bool SharedBy(const Scenario& a, const Scenario& b);
};

class Replications {
 public:
  // REQUIRES: scenario and options were resolved for this profile, which must outlive the result;
  // `graph` is this scenario's.
  Replications(const Profile& profile, const Scenario& scenario, const SimulationOptions& options,
               std::shared_ptr<const RankedGraph> graph);

  const Scenario& scenario() const { return scenario_; }
  const SimulationOptions& options() const { return options_; }
  const std::shared_ptr<const RankedGraph>& graph() const { return graph_; }
  int32_t done() const { return static_cast<int32_t>(estimates_.size()); }
  // As many are made as these options ask for; never fewer than before.
  void Allow(const SimulationOptions& options);
  // The number of runs that are still wanted, whatever they will say; 0 where their number or the
  // precision is reached.
  int32_t Wanted() const;
  // The run of that index, from 0. Any number may be made at once. FAILED_PRECONDITION, reason
  // SIMULATION_TOO_SHORT, where there is no throughput to report: a worker does not complete two
  // steps in the counted time, or none completes one in the first seconds asked for.
  absl::StatusOr<RunSummary> Run(int32_t index, StopCheck stop) const;
  // REQUIRES: it is the run of index done().
  void Add(const RunSummary& run);

  // Of the runs done so far. REQUIRES, here and below: done() > 0.
  MeanInterval StepsPerSecond() const;
  // Each run's, in steps per second.
  std::vector<double> Runs() const;
  // speedup and scaling_efficiency are left to the caller, and so is what another start would say.
  Prediction Summarize() const;
  int64_t simulated_operations() const { return simulated_operations_; }
  // Of the last run.
  EnginePath path() const { return path_; }
  // Largest over the runs; see RunResult.
  double straggler_fraction() const { return straggler_fraction_; }
  // Of the engine's job.
  const JobGraph& job() const { return job_; }
  // True if a run may differ from the next.
  bool IsRandom() const;

 private:
  bool StartMatters() const;
  // True if the runs so far say enough, where replications were not asked for.
  bool SaysEnough(int32_t milestone) const;
  // As Wanted, where replications were not asked for and something is random.
  int32_t WantedUnasked() const;
  absl::Status CheckMeasured(const RunResult& result) const;
  void AddUtilization(const RunSummary& run);
  void DescribeResources(Prediction& prediction) const;
  void DescribeCollectives(Prediction& prediction) const;
  double SlowestSpeed() const;
  void JudgeConvergence(Prediction& prediction) const;

  const Profile* profile_;
  Scenario scenario_;
  SimulationOptions options_;
  std::shared_ptr<const RankedGraph> graph_;
  JobGraph job_;
  // By run.
  std::vector<RunEstimate> estimates_;
  std::vector<double> drift_;
  // Over all runs.
  StepTimeHistogram step_times_;
  std::vector<double> utilization_;      // sums, by lane
  double exposed_ = 0;                   // sum
  double waiting_ = 0;                   // sum
  std::vector<JointTimes> joint_times_;  // sums, by collective
  double straggler_fraction_ = 0;
  int64_t simulated_operations_ = 0;
  EnginePath path_ = EnginePath::kPlain;
};

}  // namespace stepcast
