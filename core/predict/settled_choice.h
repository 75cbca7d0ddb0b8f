// The place of a choice among simulated alternatives: at an edge of what was asked about, where
// better ones may lie beyond, and how sure it is. Is it the best, and what may it cost?
//
// Threads: pure functions.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "core/predict/throughput.h"

namespace stepcast {

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
