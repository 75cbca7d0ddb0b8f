// A recommendation of the number of workers, and of servers, for a job, and what each choice comes
// to.
//
// Threads: pure functions of their arguments; any number at once.
#pragma once

#include <compare>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

#include "core/base/executor.h"
#include "core/base/stop_check.h"
#include "core/model/profile.h"
#include "core/predict/certainty.h"
#include "core/predict/run_memory.h"
#include "core/predict/throughput.h"
#include "core/recommend/recommendation_query.h"

namespace stepcast {

// The outcome of a choice of workers and servers for a request: its duration, its cost, the
// constraints it breaks, and its score against others.

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

// Time and cost of the remaining examples, where they are known.
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

// The choice that comes nearest to constraints that nothing keeps.
struct NearestChoice {
  Prediction prediction;
  Outcome outcome;
};

struct Recommendation {
  int32_t workers = 0;  // 0: nothing keeps the constraints
  int32_t parameter_servers = 0;
  std::optional<Prediction> prediction;
  Outcome outcome;  // of the recommended choice
  ChoiceEdge workers_edge = ChoiceEdge::kNone;
  ChoiceEdge servers_edge = ChoiceEdge::kNone;
  std::string reason;
  std::vector<Prediction>
      frontier;  // all that was simulated, in ascending order of servers, then of workers
  std::vector<Outcome> outcomes;  // parallel to frontier
  std::vector<Choice> ties;       // as good as the recommended one
  std::vector<Warning> warnings;  // of the frontier, WarningsByWorkers
  std::optional<NearestChoice> nearest;
  std::string infeasible_reason;
  std::string currency_code;
  int32_t choices = 0;            // that the query allows
  double untried_gain_bound = 0;  // see ChoiceSearch, here and below
  double probability_best = 1;
  double expected_loss = 0;
  SimulationStatistics simulation;
};

// The choice of workers and servers that is best for the objective among those that keep the
// constraints.
//
// A running job's change takes its rescale_seconds without progress, and they are paid for; without
// the remaining examples they cannot be weighed, and the reason says so. Choices whose values are
// below the best estimate by no more than both intervals explain, or by 0.05 %, and by 2 % at most,
// are as good: the running job's own is taken, else the fewest
// workers, then the cheapest. kKnee: the most throughput^2 / workers, which is throughput times
// efficiency (Kleinrock's power, "Power and deterministic rules of thumb", ICC 1979); with a choice
// of servers, throughput^2 / machines. Cost: as PredictThroughput for the choices that are tried,
// see ChoiceSearch. Runs that are known already are not made again. Failure: as PredictThroughput.
// Constraints that nothing keeps are no failure: see infeasible_reason.
absl::StatusOr<Recommendation> RecommendWorkers(const Profile& profile,
                                                const RecommendationQuery& query, StopCheck stop,
                                                const Executor& executor = InOrder(),
                                                const KnownRuns& known = {});

}  // namespace stepcast
