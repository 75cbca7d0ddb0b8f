// Cuts of a chain of operations into the stages of a pipeline.
//
// Threads: pure functions of their arguments.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace stepcast {

// An operation of the forward pass, and what belongs to it.
struct ChainLink {
  int64_t cost_ns = 0;       // of its forward and its backward, of one micro-batch; at least 0
  int64_t output_bytes = 0;  // what a cut behind it sends
};

// The first link of each stage, ascending; the first is 0. No cut into so many stages of one link
// at least has a faster slowest stage; of those the one that sends the fewest bytes at its cuts,
// and of those the one whose cuts are earliest, from the last one on. Exact, by dynamic programming
// over the prefixes. Cost: O(stages x links^2). REQUIRES: 1 <= stages <= chain.size().
std::vector<size_t> CutIntoStages(const std::vector<ChainLink>& chain, size_t stages);

}  // namespace stepcast
