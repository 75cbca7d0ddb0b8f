// The length of a step with transfers one at a time in a given order and serial computation: first
// ready first served, ties by index.
#pragma once

#include <cstdint>
#include <vector>

#include "core/orders/transfer_graph.h"

namespace stepcast::testing {

// REQUIRES: `order` holds every download once, and no download waits for anything; nothing but
// downloads and computations.
Span SerialMakespan(const TransferGraph& graph, const std::vector<int32_t>& order);

// The least over every order. Cost: the factorial of the downloads.
Span BestSerialMakespan(const TransferGraph& graph);

}  // namespace stepcast::testing
