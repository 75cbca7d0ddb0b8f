// The orders of transfers that let computation wait least: TIC and TAC.
//
// Source: TicTac (SysML 2019), sections 4.2 and 4.3, with two corrections. Algorithm 3 swaps the
// sides of Eq. 6, which is right: A goes before B if min(P_B, M_A) < min(P_A, M_B). And that
// relation is not transitive where there are ties, so it cannot sort: the first in graph order is
// the best so far, and is replaced by each later one that goes before it, or that ties with it and
// has the smaller M+. Threads: pure functions of their arguments; any number at once. Failure: what
// `stop` returns.
#pragma once

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"

#include "core/base/stop_check.h"
#include "core/orders/transfer_graph.h"

namespace stepcast {

// The rank of each of graph.downloads() by TIC, from 0: ascending M+ where every transfer takes one
// unit. Equal M+ are equal ranks, infinite ones the last. Cost: as DependencyGroups::Build.
absl::StatusOr<std::vector<int32_t>> TicRanks(const TransferGraph& graph, StopCheck stop);

// The downloads (operations of the graph) by TAC, first to last.
// Cost: as DependencyGroups::Build, and O(downloads x (groups and dependencies between them)).
absl::StatusOr<std::vector<int32_t>> TacOrder(const TransferGraph& graph, StopCheck stop);

}  // namespace stepcast
