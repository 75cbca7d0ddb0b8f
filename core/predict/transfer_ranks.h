// The rank that a scenario's order gives to each transfer of a graph.
//
// Threads: a pure function of its arguments; any number at once.
#pragma once

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"

#include "core/base/stop_check.h"
#include "core/engine/step_graph.h"
#include "core/model/profile.h"
#include "core/model/scenario.h"
#include "core/ordering/transfer_graph.h"

namespace stepcast {

// What an operation is to an order of transfers.
OperationKind OrderingKindOf(const StepGraph& graph, OpIndex op);

// What RunOptions::ranks is for scenario.transfer_order: by OpIndex, lowest first, kUnranked for
// what the order does not name. Empty for kGraph, kRecorded and kRandom, which need no ranks: the
// engine applies them itself.
//
// kReverse ranks transfers in both directions; kTic and kTac (TicTac, section 4) rank downloads,
// with the least time of each computation over the graph's steps; kExplicit ranks the transfers
// named in scenario.transfer_priorities, in either direction. Cost: kTac as TacOrder, kTic as
// TicRanks; else linear. Failure: only what `stop` returns. REQUIRES: graph was built from this
// profile and scenario.
absl::StatusOr<std::vector<int32_t>> TransferRanks(const Profile& profile, const Scenario& scenario,
                                                   const StepGraph& graph, StopCheck stop);

}  // namespace stepcast
