// The time of a job's steps beyond the few that were recorded: how they vary, and how long
// computations take with another batch.
//
// Threads: pure functions, values.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

#include "core/base/error.h"
#include "core/model/job_change.h"
#include "core/model/profile.h"

namespace stepcast {

// The variation of a job's steps, from the few that were recorded.
//
// A step's computations are those of a recorded step times one factor, whose logarithm is normally
// distributed: its spread is what the recorded steps show, pooled with a prior of kPriorSteps step
// that varies by kPriorDeviation. The mean is the recorded one.
// Source: input uncertainty in simulation (Barton, Nelson and Xie, "Quantifying input uncertainty
// via simulation confidence intervals", INFORMS Journal on Computing, 2014). The prior: single
// steps of jobs recorded with this project vary by 2 to 8 %, MLPerf's published ones by 0.8 to 1.5
// %.
struct StepModel {
  static constexpr int32_t kPriorSteps = 1;
  static constexpr double kPriorDeviation = 0.03;

  // By recorded worker and step: the logarithm of what it computes over the worker's mean.
  std::vector<std::vector<double>> logarithms;
  // Standard deviations of a step's factor: its own on every worker, and common to all workers,
  // which only a recording of several shows.
  double own_deviation = 0;
  double common_deviation = 0;
  int32_t degrees = 0;  // of freedom of their estimate, those of the prior included
  int32_t steps = 0;    // recorded
  DrawnMean mean;       // of workers whose batch is another than the recorded one

  double deviation() const;
  // The standard error of the logarithm of the mean of so many recorded steps, and of what another
  // recording adds.
  double MeanError(int32_t of_steps) const;
};

// The computations of workers, or of parameter servers. A step that computes nothing has logarithm
// 0; deviations are 0 where no step computes.
enum class StepPart : uint8_t { kWorkers, kServers };
StepModel StepModelOf(const Profile& profile, StepPart part);

// The time that computations take with another batch, told by two recordings, and the steps of
// computations that take another time than recorded.

// By operation: its time with another batch over the recorded one.
struct BatchGrowth {
  std::vector<double> factors;  // not below 0; of what no worker computes 1
  double all = 1;               // of all computations together
  DrawnMean mean;               // of the time of all computations
  std::string told;             // a sentence on both recordings, with the interval of `all`
};

// Faults of another recording of the same job, under that path: its batch must be another, and of
// the computation of each at least half must have names that the other has, too.
void CheckSecondRecording(const Profile& profile, const Profile& second, const char* path,
                          FaultList& faults);

// An operation of either name takes c0 + c1 x batch by the means of both (not below 0), one that
// only the first has as much longer as all others together. REQUIRES: CheckSecondRecording found
// nothing. Cost: linear in the recorded times.
BatchGrowth GrowthByTwoRecordings(const Profile& profile, const Profile& second, double batch_size);

// A recorded step whose computations take their factor times as long. A computation begins when
// what came before it has ended: while one runs, time passes by its factor (of several at once by
// their mean), else as recorded; what others do takes its own time.
RecordedStep WarpedStep(const Profile& profile, const RecordedStep& step,
                        const std::vector<double>& factors);

// Each recorded step of the draft, of every worker, as `rewrite` makes it of what it was.
template <typename Rewrite>
void RewriteSteps(ProfileDraft& draft, const Rewrite& rewrite) {
  for (RecordedStep& step : draft.steps) step = rewrite(step);
  if (!draft.recording.has_value()) return;
  for (WorkerRecording& worker : draft.recording->workers) {
    for (RecordedStep& step : worker.steps) step = rewrite(step);
  }
}

}  // namespace stepcast
