// Formulas for the step of a pipeline that know less than the simulation.
//
// Threads: pure functions.
#pragma once

#include <optional>

#include "core/model/scenario.h"
#include "core/predict/pipeline_job.h"

namespace stepcast {

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
