// Strategies that a search begins with: those of other people, and what groups make of them.
//
// Sources: BytePS's parts (BYTEPS_PARTITION_BYTES); XLA's fusing (dPRO, MLSys 2022, section 7.1).
// Threads: pure functions.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/advise/communication_tuning.h"
#include "core/advise/fusion_costs.h"
#include "core/advise/strategy.h"
#include "core/advise/strategy_query.h"
#include "core/model/profile.h"

namespace stepcast {

// A strategy to begin with.
struct BeginStrategy {
  Strategy strategy;
  bool is_default = false;   // somebody's: what is found must be as fast in full, too
  std::string name = {};     // in the comparison; empty: it is in none
  std::string setting = {};  // as a user writes it
};

// The groups of a tuned strategy, as a strategy of the job. None: they are out of order or cut.
std::optional<Strategy> FromGroups(const Profile& job, const std::vector<TunedGroup>& groups);

// BytePS's schedule, its parts in the scenario's order, and neighbours together. REQUIRES: the
// query is of parameter servers.
std::vector<BeginStrategy> StartsOfServers(const Profile& job, const StrategyQuery& query);

// Computations as XLA fuses them, and gradients in Horovod's buffers of its own size, since most
// are ready at once; to parameter servers as BytePS cuts them. None: nothing can be fused, or the
// cost of it is not known.
std::optional<Strategy> FuseAll(const Profile& job, const StrategyQuery& query,
                                const FusionCosts& costs);

}  // namespace stepcast
