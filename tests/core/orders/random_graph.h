// Random graphs for orders: branches, chains, operations that wait for nothing, downloads that
// wait, and times that tie often.
#pragma once

#include <cstdint>

#include "core/orders/transfer_graph.h"

namespace stepcast::testing {

// Downloads are a share of the operations, anywhere in graph order; dependencies run against graph
// order too.
TransferGraph RandomGraph(uint64_t seed, int32_t operations_max);

// A network of layers like a ResNet's: a download for each `per_download` operations, forward
// operations in order with shortcuts over two layers, as many backward operations, an upload for
// each download.
TransferGraph LayeredGraph(uint64_t seed, int32_t downloads, int32_t per_download);

}  // namespace stepcast::testing
