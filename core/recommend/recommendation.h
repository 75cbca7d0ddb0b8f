// A recommendation of the number of workers, and of servers, for a job.
//
// Threads: pure functions of their arguments; any number at once.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

#include "core/base/executor.h"
#include "core/base/stop_check.h"
#include "core/model/profile.h"
#include "core/predict/run_memory.h"
#include "core/predict/settled_choice.h"
#include "core/predict/throughput.h"
#include "core/recommend/outcome.h"
#include "core/recommend/recommendation_query.h"

namespace stepcast {

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
