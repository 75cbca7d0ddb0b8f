// How many workers a job should get.
//
// Threads: pure functions of their arguments; any number at once.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

#include "core/base/stop_check.h"
#include "core/model/profile.h"
#include "core/model/scenario.h"
#include "core/model/simulation_options.h"
#include "core/predict/throughput.h"

namespace stepcast {

enum class Objective : uint8_t { kKnee, kMaxThroughput, kMinCost, kMinTime };

// What is asked for, unchecked.
struct RecommendationDraft {
  ScenarioDraft scenario;  // everything but the number of workers
  SimulationOptionsDraft options;
  Objective objective = Objective::kKnee;
  std::optional<int32_t> min_workers;
  std::optional<int32_t> max_workers;
  std::optional<int32_t> max_parameter_servers;
  std::optional<double> deadline_seconds;
  std::optional<int64_t> examples;
  std::optional<double> budget;
  std::optional<double> min_scaling_efficiency;
  struct Prices {
    double worker_hour = 0;
    double parameter_server_hour = 0;
    std::string currency_code;
  };
  std::optional<Prices> prices;
  struct Current {
    int32_t workers = 0;
    double rescale_seconds = 0;
  };
  std::optional<Current> current;
};

// A checked request.
struct RecommendationQuery {
  std::vector<Scenario> scenarios;  // the counts to try, each one worker more than the one before
  SimulationOptions options;
  Objective objective = Objective::kKnee;
  double min_scaling_efficiency = 0;
};

struct Recommendation {
  int32_t workers = 0;  // 0: nothing keeps the constraints
  int32_t parameter_servers = 0;
  std::optional<Prediction> prediction;
  std::string reason;
  std::vector<Prediction> frontier;
  std::string infeasible_reason;
  SimulationStatistics simulation;
};

// Fails as ResolveScenario and ResolveOptions do, paths relative to the request (`scenario.workers`, `constraints.max_workers`), reason
// RECOMMENDATION_INVALID, all faults at once; what fixes the number of workers (`scenario.workers`, start_offsets_ns, worker_groups) is a fault.
// UNIMPLEMENTED, reason RECOMMENDATION_UNSUPPORTED, names every field that cannot be answered yet.
absl::StatusOr<RecommendationQuery> ResolveRecommendation(const Profile& profile, const RecommendationDraft& draft);

// The chosen count and the whole curve.
//
// Among the counts that keep the constraints, kMaxThroughput: the fewest workers whose interval reaches the highest throughput's. kKnee: the most
// throughput^2 / workers, the fewest workers of several, which is throughput times efficiency (Kleinrock's power, "Power and deterministic rules of
// thumb", ICC 1979).
// Cost: as PredictThroughput, for all counts together.
// Failure: as PredictThroughput. Constraints that nothing keeps are no failure: see infeasible_reason.
absl::StatusOr<Recommendation> RecommendWorkers(const Profile& profile, const RecommendationQuery& query, StopCheck stop,
                                                const Executor& executor = InOrder());

}  // namespace stepcast
