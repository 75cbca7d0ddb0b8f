// Strategies of other people: those that the one which is found is compared with, and those that a
// search begins with.
//
// Sources: Horovod's documentation of its defaults; BytePS's parts (BYTEPS_PARTITION_BYTES); XLA's
// fusing (dPRO, MLSys 2022, section 7.1). Threads: pure functions.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

#include "core/advise/communication_query.h"
#include "core/advise/communication_tuning.h"
#include "core/advise/fusion_costs.h"
#include "core/advise/strategy.h"
#include "core/advise/strategy_query.h"
#include "core/base/executor.h"
#include "core/base/stop_check.h"
#include "core/model/profile.h"
#include "core/predict/run_memory.h"

namespace stepcast {

struct NamedBaseline {
  std::string name;  // "HOROVOD_64MB_5MS"
  TunedStrategy strategy;
};

// Horovod's fusion buffer up to version 0.20, in dPRO's words 64 MB.
inline constexpr int64_t kFormerHorovodBytes = 67'108'864;

// Horovod's own settings: 64 MB every 5 ms, of up to 0.20, and what it has since. Their gains
// are of nothing. A spent time budget leaves out what was not
// reached. REQUIRES: the query is of one scenario, which Horovod can carry out. Adds to
// `statistics`. Failure: as OptimizeCommunication.
absl::StatusOr<std::vector<NamedBaseline>> HorovodDefaults(const Profile& job,
                                                           const TuningQuery& query, StopCheck stop,
                                                           const Executor& executor,
                                                           const KnownRuns& known,
                                                           SimulationStatistics& statistics);

// The computations that a compiler makes one which fuses as many as possible, as XLA does by
// default (dPRO, section 2.2 and 7.1): of each stream all that follow each other, but for what
// waits, through an exchange or through another stream, for something before it in its group.
// Cost: linear, but for sorting each stream.
std::vector<std::vector<int32_t>> AllFused(const Profile& profile);

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
