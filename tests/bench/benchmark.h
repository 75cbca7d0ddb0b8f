// One comparison by name, and what it is to show.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "tests/bench/rounds.h"

namespace stepcast::bench {

struct Goal {
  enum class Direction { kAtLeast, kAtMost };

  Direction direction = Direction::kAtLeast;
  double minimum = 0;  // what must hold
  double aim = 0;      // what is hoped for

  bool Holds(double value) const {
    return direction == Direction::kAtLeast ? value >= minimum : value <= minimum;
  }
};

constexpr Goal AtLeast(double minimum, double aim) {
  return {.direction = Goal::Direction::kAtLeast, .minimum = minimum, .aim = aim};
}
constexpr Goal AtMost(double minimum, double aim) {
  return {.direction = Goal::Direction::kAtMost, .minimum = minimum, .aim = aim};
}

struct Outcome {
  std::vector<Round> rounds;
  std::string note;  // what else was found; may be empty
};

struct Benchmark {
  std::string name;
  std::string sides;  // what is compared: ours, then theirs
  Goal goal;
  int rounds = 7;
  // Checks that both sides compute the same where they do, then measures. Throws std::runtime_error
  // where they do not, or anything else fails.
  std::function<Outcome(int rounds)> run;
};

// A benchmark that has run.
struct Row {
  std::string name;
  std::string sides;
  Goal goal;
  double ours = 0;    // median CPU nanoseconds an operation
  double theirs = 0;  // the same
  Spread ratio;       // of the rounds' values
  bool holds = false;
  std::string note;
};

Row RowOf(const Benchmark& benchmark, const Outcome& outcome);

}  // namespace stepcast::bench
