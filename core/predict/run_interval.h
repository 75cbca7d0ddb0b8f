// The prediction interval of a single further run of a job, from a few runs of it.
//
// Source: the prediction interval of a normal sample (Geisser, Predictive Inference, 1993, 2.2).
// Where the runs fall into two regimes each of them is a sample by itself, with one spread, and the
// interval goes from the lower end of the slower one's to the upper end of the faster one's.
// Threads: pure functions.
#pragma once

#include <vector>

#include "core/predict/run_summary.h"
#include "core/predict/throughput.h"

namespace stepcast {

// The least value of the upper one of two groups that the values fall into; infinite where they are
// one group, or fewer than four. Two: where the best split (least squares) leaves groups whose
// means lie eight times as far apart as the values in them spread, and by 5 % of the mean of all.
// Of eight normally distributed values fewer than 1 in 100 lie so far apart by chance, even without
// the 5 %.
double SplitInTwo(std::vector<double> values);

// Of one further run's steps per second, with that probability: by the spread between the runs, or,
// where that is wider, by what each one's own batches say of it. No width where nothing is random.
// REQUIRES: !runs.empty(), 0 < level < 1.
Interval SingleRunInterval(const std::vector<RunEstimate>& runs, double level);

}  // namespace stepcast
