// The outcome of a choice of workers and servers for a request: its duration, its cost, the
// constraints it breaks, and its score against others.
//
// Threads: immutable.
#pragma once

#include <compare>
#include <cstdint>
#include <optional>
#include <vector>

#include "core/predict/throughput.h"
#include "core/recommend/recommendation_query.h"

namespace stepcast {

struct Choice {
  int32_t workers = 0;
  int32_t parameter_servers = 0;

  friend bool operator==(const Choice&, const Choice&) = default;
};

enum class ConstraintKind : uint8_t { kDeadline, kBudget, kMinScalingEfficiency };

struct BrokenConstraint {
  ConstraintKind kind = ConstraintKind::kDeadline;
  double missed_by = 0;  // share of the limit, above 0

  friend bool operator==(const BrokenConstraint&, const BrokenConstraint&) = default;
};

// Of the remaining examples, where they are known.
struct Outcome {
  std::optional<double> duration_seconds;
  std::optional<double> cost;
  std::vector<BrokenConstraint> broken;
  bool in_full = false;  // simulated with all that the options ask for

  double largest_miss() const;
};

// The speed that a choice is assumed to have.
struct Pace {
  double examples_per_second = 0;
  double one_worker_examples_per_second = 0;  // with as many servers
};

// The score of a choice: what misses the constraints by less is better, then what has the greater
// value.
struct Score {
  double miss = 0;   // 0: keeps them all
  double value = 0;  // of the objective

  // True if it is better by more than what would read as equal numbers.
  bool ClearlyAbove(const Score& other) const;
  friend std::partial_ordering operator<=>(const Score& a, const Score& b) {
    return a.miss != b.miss ? b.miss <=> a.miss : a.value <=> b.value;
  }
  friend bool operator==(const Score&, const Score&) = default;
};

class Weighing {
 public:
  // REQUIRES: the query outlives it.
  explicit Weighing(const RecommendationQuery& query) : query_(query) {}

  // A choice's outcome and score get no worse where examples_per_second is higher.
  Outcome OutcomeOf(const Choice& choice, const Pace& pace) const;
  // Its value: examples per second of the objective's own clock, in which a change of the running
  // job takes its time (MAX_THROUGHPUT, MIN_TIME), that squared per machine (KNEE), or examples per
  // unit of money (MIN_COST). Of known examples MIN_TIME and MIN_COST count what failures take.
  Score ScoreOf(const Choice& choice, const Pace& pace) const;
  // True if the running job would have to be changed.
  bool Moves(const Choice& choice) const;

 private:
  double EffectivePace(const Choice& choice, double examples_per_second) const;
  double ObjectivePace(const Choice& choice, double examples_per_second) const;
  double MoneyPerSecond(const Choice& choice) const;

  const RecommendationQuery& query_;
};

}  // namespace stepcast
