// TicTac's definitions, evaluated word for word with sets, everything anew after each removal: what
// the incremental evaluation must agree with.
#pragma once

#include <cstdint>
#include <set>
#include <vector>

#include "core/orders/transfer_graph.h"

namespace stepcast::testing {

// op.dep of every operation: the downloads (operations) it depends on, itself among them if it is
// one.
std::vector<std::set<int32_t>> NaiveDependencies(const TransferGraph& graph);

struct NaiveProperties {
  Span transfer_time;
  Span freed_computation;
  Span impending_load{INT64_MAX};
};

// Algorithm 1, by operation; only the entries of `outstanding` downloads mean anything.
// `unit_times`: Eq. 5.
std::vector<NaiveProperties> NaiveUpdate(const TransferGraph& graph,
                                         const std::set<int32_t>& outstanding, bool unit_times);

std::vector<int32_t> NaiveTacOrder(const TransferGraph& graph);

}  // namespace stepcast::testing
