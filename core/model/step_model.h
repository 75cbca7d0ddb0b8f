// The variation of a job's steps, from the few that were recorded.
//
// A step's computations are those of a recorded step times one factor, whose logarithm is normally
// distributed: its spread is what the recorded steps show, pooled with a prior of kPriorSteps step
// that varies by kPriorDeviation. The mean is the recorded one.
// Source: input uncertainty in simulation (Barton, Nelson and Xie, "Quantifying input uncertainty
// via simulation confidence intervals", INFORMS Journal on Computing, 2014). The prior: single
// steps of jobs recorded with this project vary by 2 to 8 %, MLPerf's published ones by 0.8 to 1.5
// %. Threads: pure functions, values.
#pragma once

#include <cstdint>
#include <vector>

#include "core/model/job_change.h"
#include "core/model/profile.h"

namespace stepcast {

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

}  // namespace stepcast
