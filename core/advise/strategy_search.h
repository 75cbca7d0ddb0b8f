// dPRO's search for a strategy: decisions along the critical path by the chain's theorems, each
// round of them judged by a replay of the whole job, and none accepted that is no faster.
//
// Source: dPRO (MLSys 2022), sections 5.2 and 5.3. Threads: none; the runs of a replay are the
// parts given to the executor.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

#include "core/advise/step_chain.h"
#include "core/advise/strategy.h"
#include "core/advise/strategy_query.h"
#include "core/base/executor.h"
#include "core/base/stop_check.h"
#include "core/model/profile.h"
#include "core/predict/throughput.h"

namespace stepcast {

// The cost of a search. Counters of simulated operations are of all runs.
struct SearchStatistics {
  int32_t rounds = 0;
  int32_t accepted = 0;             // replays that were faster than what there was
  int32_t replays = 0;              // of the whole job, each strategy once
  int64_t partial_replays = 0;      // of one tensor alone
  int64_t partial_operations = 0;   // of those of them that are simulated, not computed
  int64_t replayed_operations = 0;  // of replays
  int64_t decisions = 0;  // places at which operations or tensors could be fused or parted
};

// A strategy as judged by a short simulation of the whole job.
struct Replay {
  double steps_per_second = 0;  // mean over the runs; 0: operations would wait for each other
  std::vector<double> runs;     // with the same random choices as those of any other replay
  std::vector<CollectiveTiming> collectives;  // none with parameter servers
};

// Replays of one job, each strategy simulated once. What it is made of must outlive it.
class Replays {
 public:
  Replays(const Profile& profile, const StrategyQuery& query, const FusionCosts& costs,
          StopCheck stop, const Executor& executor, RunCounter* counter)
      : profile_(profile),
        query_(query),
        costs_(costs),
        stop_(stop),
        executor_(executor),
        counter_(counter) {}

  // Failure: what `stop` returns.
  absl::StatusOr<Replay> Of(const Strategy& strategy);
  // The same in full, as predictions are made. Failure: also FAILED_PRECONDITION as
  // PredictThroughput.
  struct Full {
    Prediction prediction;
    std::vector<double> runs;
  };
  absl::StatusOr<Full> InFull(const Strategy& strategy);

  const SearchStatistics& statistics() const { return statistics_; }
  SearchStatistics& statistics() { return statistics_; }
  const SimulationStatistics& simulation() const { return simulation_; }

 private:
  const Profile& profile_;
  const StrategyQuery& query_;
  const FusionCosts& costs_;
  const StopCheck stop_;
  const Executor& executor_;
  RunCounter* const counter_;
  std::map<Strategy, Replay> known_;
  SearchStatistics statistics_;
  SimulationStatistics simulation_;
};

struct FoundStrategy {
  Strategy strategy;
  double steps_per_second = 0;
  // It is one of the least makespan on the chain, of groups made of the coarsened view's where
  // that is on; never said with a table of costs, nor where a collective takes another time beside
  // computation, nor of parameter servers, whose downloads are not on the chain.
  bool is_chains_best = false;
  // The best of the chain is known: no budget ended the search before.
  bool chain_is_solved = false;
};

// The best strategy found from the given ones, at least as good in replays as each of them. A spent
// time budget leaves the best so far; it is an error only where nothing was replayed. Failure: what
// `stop` returns.
absl::StatusOr<FoundStrategy> SearchStrategies(const Profile& profile, const StrategyQuery& query,
                                               const FusionCosts& costs,
                                               const std::vector<Strategy>& starts,
                                               Replays& replays, StopCheck stop);

}  // namespace stepcast
