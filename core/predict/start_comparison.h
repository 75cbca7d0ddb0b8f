// A comparison of the ways in which workers start, and the regimes that runs fall into.
//
// Workers that start together may stay in step for thousands of steps, at another throughput than
// workers that do not: then a run of ordinary length has not reached the steady state, however well
// its replications agree.
// So a simultaneous and a staggered start are compared, and runs of either are looked at for two
// groups.
// Threads: pure functions.
#pragma once

#include <vector>

#include "core/base/distributions.h"
#include "core/model/simulation_options.h"
#include "core/predict/throughput.h"

namespace stepcast {

// True if workers start at random instants in a run: unless together or at instants that the
// scenario gives was asked for.
bool StartsAtRandom(const Scenario& scenario, const SimulationOptions& options);

// The same job, started the other way, run a few times: at random where it was not, else together.
Scenario WithOtherStart(Scenario scenario);
SimulationOptions WithOtherStart(const Scenario& scenario, SimulationOptions options);

// Runs of one start, in steps per second.
struct RunsOfAStart {
  MeanInterval mean;
  std::vector<double> runs;
};

// True if what began together goes the way of what began at random: what is left of the difference
// in the second half of its counted time (`late`) is at most 2 %, or half of what there was in the
// first (`early`). What stays in lockstep keeps all of it. All in steps per second.
bool ForgotItsStart(double at_random, double early, double late);

struct Starts {
  bool at_random = false;  // the start asked for, and so not the other
  RunsOfAStart own;
  RunsOfAStart other;  // none, where it was not run
};

// True if the means differ by more than both intervals explain, and by a share that matters.
bool Disagree(const RunsOfAStart& own, const RunsOfAStart& other);

// The two regimes that runs fall into, the faster first; empty where there is one. Two: where
// SplitInTwo parts all runs, or where the starts disagree.
std::vector<Regime> RegimesOf(const Starts& starts, double batch_size);

// Adds the regimes to the prediction, and where there are two takes its steady state back, with a
// warning.
void JudgeStarts(const Starts& starts, double batch_size, Prediction& prediction);

}  // namespace stepcast
