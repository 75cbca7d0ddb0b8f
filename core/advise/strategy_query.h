// A request for a strategy: as asked for, and checked.
//
// Threads: pure functions of their arguments.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

#include "core/advise/communication_query.h"
#include "core/advise/memory.h"
#include "core/advise/strategy.h"
#include "core/model/profile.h"
#include "core/model/scenario.h"
#include "core/model/simulation_options.h"

namespace stepcast {

// dPRO's ways to search less.
struct SearchShortcuts {
  bool coarsened_view = true;  // computations without gradients go with those that have some
  bool partial_replay = true;  // a tensor's time from its own collective, not from the whole job
  bool symmetry = true;        // what is decided of a block is decided of all that are equal

  friend bool operator==(const SearchShortcuts&, const SearchShortcuts&) = default;
};

struct StrategyDraft {
  struct Cost {
    std::vector<std::string> operations;
    double seconds = 0;
  };
  struct KeptOutput {
    std::string operation;
    int64_t bytes = 0;
  };
  struct Memory {
    std::optional<int64_t> budget_bytes;
    std::vector<KeptOutput> kept_outputs;
    std::optional<double> parameter_copies;
    std::optional<double> half_batch_share;
  };

  ScenarioDraft scenario;
  SimulationOptionsDraft options;
  std::vector<Cost> fused_costs;
  std::optional<double> fused_share;
  std::optional<int32_t> max_partitions;
  SearchShortcuts shortcuts;
  std::optional<Memory> memory;
};

struct StrategyQuery {
  // The job and its scenario, where the one asked for makes one with parameter servers of a profile
  // with all-reduces; none: the profile itself.
  std::optional<Profile> job;
  Scenario scenario;
  std::optional<Scenario> asked;  // with `job`: for the profile, as it was asked for
  SimulationOptions options;
  std::vector<FusedCost> fused_costs;
  std::optional<double> fused_share;
  int32_t max_partitions = 1;
  SearchShortcuts shortcuts;
  std::optional<MemoryModel> memory;  // none: it is not known what is kept
  bool memory_is_requests = false;    // of the request's kept_outputs, else of the profile
  std::optional<int64_t> memory_budget_bytes;
  // By operation, the time of its half of the batch over that of the whole; and why, a sentence.
  std::vector<double> half_batch_shares;
  std::string half_batch_told;
  // Recorded, DDP's default buckets, Horovod's cycles, MG-WFBP; none of parameter servers.
  std::optional<TuningQuery> baselines;
  bool bounds_partitions = false;  // max_partitions was asked for
};

inline constexpr int32_t kMaxPartitions = 16;

// A strategy is applied by writing a profile, so these are narrower than a profile's own.
struct StrategyLimits {
  int64_t max_operations = 20'000;
  int64_t max_recorded_times = 1'000'000;  // operations x steps
  size_t max_fused_costs = 10'000;
  size_t max_fused_operations = 1'000;  // of one entry
};

// Fails as ResolveTuning does of one scenario, or as ResolveThroughput of one with parameter
// servers, whose profile CheckParameters takes; all faults at once, reason REQUEST_INVALID, paths
// relative to the request (`fused_costs[3].operations[0]`); FAILED_PRECONDITION, reason
// MEMORY_UNKNOWN, where there is a budget and nothing says what operations keep.
//
// `second`: another recording of the same job with another batch, which tells what half a batch
// takes; null: none.
absl::StatusOr<StrategyQuery> ResolveStrategies(const Profile& profile, const StrategyDraft& draft,
                                                const Profile* second = nullptr,
                                                const StrategyLimits& limits = {});

}  // namespace stepcast
