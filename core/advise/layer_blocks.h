// Runs of layers whose gradients are never parted, as the dynamic programming takes them.
//
// Threads: pure functions.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "core/advise/overlap_model.h"

namespace stepcast {

struct LayerBlock {
  int32_t first = 0;  // layer
  int32_t count = 0;
  double ready = 0;  // seconds of computation up to the last layer that has parameters
  double seconds = 0;
  double bytes = 0;
};

// The blocks of groups of so many layers. A group without parameters makes none: its layers go with
// the next block, and the last ones with the last. Linear. REQUIRES: counts of all layers.
std::vector<LayerBlock> BlocksOf(std::span<const BackwardLayer> layers,
                                 std::span<const int32_t> layers_by_group);

// Merges the lightest neighbours, by their share of all bytes and of all computation, until so many
// are left. O(n log n). REQUIRES: most > 0.
std::vector<LayerBlock> MergedLightest(std::vector<LayerBlock> blocks, size_t most);

}  // namespace stepcast
