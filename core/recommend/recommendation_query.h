// A request for a recommendation: the numbers of workers and servers to choose from, the objective,
// and the constraints.
//
// Threads: pure functions of their arguments; any number at once.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

#include "core/model/profile.h"
#include "core/model/scenario.h"
#include "core/model/simulation_options.h"
#include "core/predict/shared_batch.h"
#include "core/predict/training_plan.h"

namespace stepcast {

enum class Objective : uint8_t { kKnee, kMaxThroughput, kMinCost, kMinTime };

// The allocation of a running job, and the cost of changing it.
struct CurrentAllocation {
  int32_t workers = 0;
  std::optional<int32_t> parameter_servers;  // resolved: always set
  double rescale_seconds = 0;                // without progress
};

// A request as it is asked for, unchecked.
struct RecommendationDraft {
  ScenarioDraft scenario;  // everything but the number of workers
  SimulationOptionsDraft options;
  Objective objective = Objective::kKnee;
  std::optional<int32_t> min_workers;
  std::optional<int32_t> max_workers;
  std::vector<int32_t> worker_counts;  // only these, in place of the two bounds
  std::optional<int32_t> max_parameter_servers;
  std::optional<double> deadline_seconds;
  std::optional<int64_t> examples;
  std::optional<double> budget;
  std::optional<double> min_scaling_efficiency;
  std::optional<MachinePrices> prices;
  std::optional<Failures> failures;
  std::optional<CurrentAllocation> current;
};

// A checked request.
struct RecommendationQuery {
  std::vector<Scenario> server_choices;  // with one worker; each more servers than the one before
  int32_t min_workers = 1;
  int32_t max_workers = 1;
  std::vector<int32_t> worker_counts;  // ascending, the bounds first and last; empty: all between
  SimulationOptions options;
  Objective objective = Objective::kKnee;
  std::optional<double> deadline_seconds;
  std::optional<int64_t> examples;
  std::optional<double> budget;
  double min_scaling_efficiency = 0;
  std::optional<MachinePrices> prices;
  std::optional<Failures> failures;
  std::optional<CurrentAllocation> current;
  int64_t devices_per_worker = 1;     // which prices.device_hour counts
  std::optional<SharedBatch> shared;  // numbers of workers that do not divide it are not looked at

  // True if so many workers may be chosen: they are within the bounds or the list and, where they
  // meet in collectives, fill nodes; and they divide a batch that is shared.
  bool IsCandidate(int32_t workers) const;
  // The nearest below or above that may; 0: none.
  int32_t CandidateBelow(int32_t workers) const;
  int32_t CandidateAbove(int32_t workers) const;
  size_t choices() const;

  // The numbers that a search looks at before it knows where the best is, ascending: all of at most
  // kMaxCounts. Of more, those in strides, first and last, and the running job's.
  std::vector<int32_t> FirstCounts() const;
  // The largest stride between them, in workers; 1: there are none.
  int32_t LargestStride() const;
  // The workers up to which there are no strides: 64, or 64 full nodes.
  int32_t StridesBegin() const;
};

inline constexpr int32_t kDefaultMaxWorkers = 16;
// Most counts of workers that are looked at first, of a list too, and most choices of those and of
// servers: a search has an end.
inline constexpr int32_t kMaxCounts = 256;
inline constexpr int64_t kMaxChoices = 4096;

// Fails as ResolveScenario and ResolveOptions do, paths relative to the request
// (`scenario.workers`, `constraints.max_workers`), reason RECOMMENDATION_INVALID, all faults at
// once. What fixes the number of workers (`scenario.workers`, start_offsets_ns, worker_groups) is a
// fault, and so is a number of servers that the profile cannot be placed on, and what needs another
// field that is missing. Of a batch that workers divide, `profile` is the recorded one.
absl::StatusOr<RecommendationQuery> ResolveRecommendation(
    const Profile& profile, const RecommendationDraft& draft,
    std::optional<SharedBatch> shared = std::nullopt);

}  // namespace stepcast
