// Models of synchronous training, whose workers meet in collectives or are pipelines, that know
// less than the simulation.
//
// Threads: pure functions.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "absl/status/statusor.h"

#include "core/base/stop_check.h"
#include "core/compare/coarse_models.h"
#include "core/model/profile.h"
#include "core/model/scenario.h"
#include "core/predict/pipeline_job.h"

namespace stepcast {

// Pollux's formula: T = (T_c^y + T_n^y)^(1/y), T_n = a + b max(W - 2, 0), with one worker T = T_c.
//
// Source: Qiao et al., "Pollux", OSDI 2021, section 3.2, and petuum/adaptdl, goodput.py. y, from 1
// (nothing overlaps) to 10 (nearly all does), is one number for all W.
struct PolluxFormula {
  double network_seconds = 0;             // a
  double network_seconds_per_worker = 0;  // b, of each worker beyond two
  double exponent = 1;                    // y

  double StepSeconds(double computation_seconds, int32_t workers) const;
};

// A job's step with so many workers, seconds.
struct CollectiveStep {
  int32_t workers = 1;
  double computation = 0;  // one worker's, alone
  double collectives = 0;  // one after the other
  double simulated = 0;    // what the formula is fitted to
};

// Pollux fits its formula to steps that it has measured. Here: a and b, neither below 0, by least
// squares to the collectives' time, y to the least sum of squared logarithms of step times over
// those simulated, to 0.01. So it is the best that the formula can say of these numbers of workers,
// not what it would have predicted. Cost: linear in the steps, some two hundred times.
PolluxFormula FitPollux(const std::vector<CollectiveStep>& steps);

// Seconds of a step in the manner of Paleo: computation, and after it what a ring moves of all
// buffers over the slowest link, without latency, fusing or overlap. Source: Qi et al., "Paleo",
// ICLR 2017, section 3. REQUIRES: the scenario was resolved for this profile, and is of
// collectives.
double PaleoStepSeconds(const Profile& profile, const Scenario& scenario,
                        double computation_seconds);

// A model in the manner of Daydream (see PredictByCoarseTensors): the graph of one worker, where
// each collective of the profile, unfused, takes its size over the bandwidth of the link, whatever
// the number of workers. REQUIRES: as above. Failure: as Simulate.
absl::StatusOr<CoarseTensorsAnswer> PredictByCoarseCollectives(const Profile& profile,
                                                               const Scenario& scenario,
                                                               StopCheck stop);

// Formulas for the step of a pipeline.

// The inputs of the formulas, of one replica; means over the recorded steps.
struct PipelineInputs {
  double slowest_seconds = 0;         // F + B, of a micro-batch on the device that computes most
  double slowest_weight_seconds = 0;  // of those the gradients of weights, where they stand apart
  double mean_seconds = 0;            // F + B, mean over the devices
  double transfer_seconds = 0;        // of the largest cut, alone; 0 with one device
  double rest_seconds = 0;            // at the end of a step, of the device that takes longest
};

PipelineInputs PipelineInputsOf(const PipelinePlan& plan, const Scenario& scenario);

// The bubble formula: (m + (p - 1) / v) (F + B) of the slowest device, transfers and reductions
// free; of ZERO_BUBBLE_1 m (F + B) + (p - 1) (F + B - 2 W). Source: Narayanan et al., SC 2021,
// section 2.2; Qi et al., ICLR 2024, table 1. None of ZERO_BUBBLE_V, whose bubble depends on which
// of F, B and W is longest.
std::optional<double> BubbleFormulaSeconds(const PipelineInputs& inputs,
                                           const PipelineLayout& layout);

// The sum that SimAI makes of a pipeline: what the mean device computes, longer by (p - 1) / (m v),
// 2 v m transfers one after the other, all reductions of the device that reduces longest, and the
// end of the step. Source: Wang et al., "SimAI", NSDI 2025, and its analytical back end.
double SimaiStepSeconds(const PipelineInputs& inputs, const PipelinePlan& plan,
                        const Scenario& scenario);

}  // namespace stepcast
