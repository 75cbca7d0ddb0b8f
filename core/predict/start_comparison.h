// Whether a throughput depends on how the workers started.
//
// Workers that start together may stay in step for thousands of steps, at another throughput than workers that do not: then a run of ordinary length
// has not reached the steady state, however well its replications agree. So a simultaneous and a staggered start are compared. Threads: pure
// functions.
#pragma once

#include <string>

#include "core/model/simulation_options.h"
#include "core/predict/student_t.h"
#include "core/predict/throughput.h"

namespace stepcast {

// The same job, started the other way, run a few times.
Scenario WithOtherStart(Scenario scenario);
SimulationOptions WithOtherStart(SimulationOptions options);

// Both in steps per second, each over its own runs.
struct Starts {
  Start asked = Start::kSimultaneous;
  MeanInterval own;
  MeanInterval other;
};

// Whether they differ by more than both intervals explain, and by a share that matters.
bool Disagree(const Starts& starts);

// Takes the prediction's steady state back, with a warning, where they disagree.
void JudgeStarts(const Starts& starts, double batch_size, Prediction& prediction);

}  // namespace stepcast
