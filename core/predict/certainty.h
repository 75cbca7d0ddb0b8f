// The certainty of a prediction: the interval of a single further run, by a few runs, and what a
// short recording, the chance of a run and the model's measured error leave open. And of a choice
// among simulated alternatives: is it the best, what may it cost, and do better ones lie beyond
// those that were asked about?
//
// Threads: pure functions.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "core/base/distributions.h"
#include "core/model/profile.h"
#include "core/model/simulation_options.h"
#include "core/model/step_model.h"
#include "core/predict/run_summary.h"
#include "core/predict/throughput.h"

namespace stepcast {

// The prediction interval of a single further run of a job, from a few runs of it.
//
// Source: the prediction interval of a normal sample (Geisser, Predictive Inference, 1993, 2.2).
// Runs that fall into two regimes are two samples, with one spread, and the interval goes from the
// lower end of the slower one's to the upper end of the faster one's.

// The least value of the upper one of two groups that the values fall into; infinite where they are
// one group, or fewer than four. Two: where the best split (least squares) leaves groups whose
// means lie eight times as far apart as the values in them spread, and by 5 % of the mean of all.
// Fewer than 1 in 100 samples of eight normally distributed values lie so far apart by chance, even
// without the 5 %.
double SplitInTwo(std::vector<double> values);

// The interval of one further run's steps per second, with that probability: by the spread between
// the runs, or, where that is wider, by what each one's own batches say of it. No width where
// nothing is random. REQUIRES: !runs.empty(), 0 < level < 1.
Interval SingleRunInterval(const std::vector<RunEstimate>& runs, double level);

// The interval of a prediction.
//
// Throughput answers to the mean of what steps compute, and where workers wait for each other to
// its deviation (Sensitivity, by short runs in Worlds). The error of both, from the recorded steps
// and the prior, gives the error of the logarithm of throughput by the delta method; its interval
// is Student's with the degrees of freedom of the deviation. Source: Barton, Nelson and Xie,
// "Quantifying input uncertainty via simulation confidence intervals", INFORMS Journal on
// Computing, 2014; Cheng and Holland, "Sensitivity of computer simulation experiments to errors in
// input data", Journal of Statistical Computation and Simulation, 1997.

// More steps that a reader is told the worth of.
inline constexpr int32_t kMoreSteps = 20;

// Half-widths of the interval of the logarithm of throughput that the recording leaves open.
struct InputError {
  double half_width = 0;
  double with_more_steps = 0;  // had kMoreSteps more been recorded
};
InputError InputErrorOf(const Profile& profile, const StepModel& model,
                        const Sensitivity& sensitivity, double level);

// The last measured error of predictions of jobs of the scenario's kind. `recorded_ranks`: of the
// pipeline whose ranks the profile was read from; 0: it was recorded in one piece.
ModelError MeasuredModelError(const Scenario& scenario, int32_t recorded_ranks = 0);

// The parts of a prediction's intervals, as shares of throughput.
struct Uncertainty {
  double simulation = 0;  // half-width of the mean's interval over the simulated runs
  InputError input;
  ModelError model;
};

// Fills in all intervals of the prediction. `runs`: the interval of a single simulated run, in
// examples per second. REQUIRES: examples_per_second is set.
void TellCertainty(const Uncertainty& uncertainty, const Interval& runs, Prediction& prediction);

// Warns where the mean of so many runs, all that were allowed, is less precise than was asked for.
void WarnOfPrecision(const SimulationOptions& options, const MeanInterval& mean, int32_t runs,
                     Prediction& prediction);

// The place of an answered number of workers, or of servers, among those that were asked about.

// One of kOnlyFeasible, of which no other that was tried keeps the constraints, may be the largest
// or smallest, too.
enum class ChoiceEdge : uint8_t {
  kNone,
  kLargestAsked,
  kSmallestAsked,
  kOnlyChoice,
  kOnlyFeasible
};

// The certainty of a choice.
//
// Method: means of runs differ from the true ones by a normal error. Alternatives whose n-th runs
// repeat the same random choices are compared run by run (common random numbers), others by both
// errors together; those whose runs are the same count once. Source: Chick and Inoue, "New
// two-stage and sequential procedures for selecting the best simulated system", Operations
// Research, 2001: pairs as if they were independent, losses added up.

struct Alternative {
  double value = 0;               // of what is sought, mean of the runs; more is better
  double deviation = 0;           // of that mean, by the chance of the runs
  std::vector<double> runs = {};  // one by one; empty: not known
};

struct Settled {
  double probability_best = 1;  // that no other is better by more than what makes no difference
  // The sum of what the others are expected to be better by, as a share of the chosen value.
  double expected_loss = 0;
};

// The deviation of a mean that lies in that interval.
double DeviationOf(const Interval& interval);
// The alternative of a prediction, by its steps per second. `runs`: as of Alternative.
Alternative AlternativeOf(const Prediction& prediction, std::vector<double> runs = {});

// `no_difference`: the share of its value by which another may be better and the chosen one is as
// good, for it was chosen by another rule. REQUIRES: chosen < alternatives.size().
Settled HowSettled(const std::vector<Alternative>& alternatives, size_t chosen,
                   double no_difference = 0);

// The probability that each is the best, by drawing all. Their sum is 1; empty for none.
std::vector<double> ProbabilitiesOfBest(const std::vector<Alternative>& alternatives,
                                        uint64_t seed);

}  // namespace stepcast
