// The ranks that orders give to the transfers of a graph: a method of ordering to the downloads of
// a step, a scenario's order to all.
//
// Threads: pure functions of their arguments; any number at once.
#pragma once

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"

#include "core/base/stop_check.h"
#include "core/engine/job_graph.h"
#include "core/engine/program.h"
#include "core/model/profile.h"
#include "core/model/scenario.h"
#include "core/orders/transfer_graph.h"

namespace stepcast {

enum class OrderMethod : uint8_t { kTic, kTac, kSearch, kReverse, kRandom, kRecorded, kGraph };

// By OpIndex, kUnranked for all but downloads. Ranks go from 0 without gaps; equal ones (kTic,
// kRecorded) go in order of arrival.
//
// kRecorded: by the end of the transfers in the first recorded step. kRandom: a permutation drawn
// with `seed`. Failure: as TransferRanks. REQUIRES: graph was built from this profile and scenario;
// method is not kSearch.
absl::StatusOr<std::vector<int32_t>> DownloadRanks(OrderMethod method, const Profile& profile,
                                                   const Scenario& scenario, const Program& graph,
                                                   uint64_t seed, StopCheck stop);

// The kind of an operation, to an order of transfers.
OperationKind OrderingKindOf(const Program& graph, OpIndex op);

// The fixed ranks of scenario.transfer_order: by OpIndex, lowest first, kUnranked for what the
// order does not name. Empty for kGraph, kRecorded and kRandom, which have none.
//
// kReverse ranks transfers in both directions; kTic and kTac (TicTac, section 4) rank downloads,
// with the least time of each computation over the graph's steps; kExplicit ranks the transfers
// named in scenario.transfer_priorities, in either direction. Cost: kTac as TacOrder, kTic as
// TicRanks; else linear. Failure: only what `stop` returns. REQUIRES: graph was built from this
// profile and scenario.
absl::StatusOr<std::vector<int32_t>> TransferRanks(const Profile& profile, const Scenario& scenario,
                                                   const Program& graph, StopCheck stop);

// The same as the engine takes it, for every order. REQUIRES: as TransferRanks, with recorded
// times.
absl::StatusOr<Ranking> RankingOf(const Profile& profile, const Scenario& scenario,
                                  const Program& program, StopCheck stop);

}  // namespace stepcast
