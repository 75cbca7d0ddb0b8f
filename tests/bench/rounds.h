// Measurements of two contenders taken in turns, and what they say together.
//
// A machine that is slow for a while is slow for both sides of a round, so a ratio is taken in each
// round and never between rounds.
#pragma once

#include <functional>
#include <vector>

#include "tests/bench/cost.h"

namespace stepcast::bench {

struct Round {
  double ours = 0;    // CPU nanoseconds an operation
  double theirs = 0;  // the same
  double value = 0;   // what the row reports of it
};

struct Spread {
  double median = 0;
  double low = 0;  // 10th percentile; with fewer than ten values the least
  double high = 0;
};

// REQUIRES: values is not empty.
Spread SpreadOf(std::vector<double> values);

// Both in turns, `ours` first, after one turn each that does not count. `value_of` makes a round's
// value of both costs an operation.
std::vector<Round> TakeTurns(int rounds, const std::function<Cost()>& ours,
                             const std::function<Cost()>& theirs,
                             const std::function<double(double ours, double theirs)>& value_of);

// Values of a round.
double TheirsOverOurs(double ours, double theirs);
double OursOverTheirs(double ours, double theirs);
double OursMinusTheirs(double ours, double theirs);

}  // namespace stepcast::bench
