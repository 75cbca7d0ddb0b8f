// The operations of a recorded step as the chain of layers that a pipeline is cut from: which
// forward computation each belongs to, and what it is of it.
//
// Meaning: the chain are the profile's FORWARD computations, in graph order. A backward operation
// belongs to the forward one that its name says (`backward/X`, `backward_input/X` or
// `backward_weight/X` of `forward/X`), else to the last one that it waits for, else to the one with
// its parameter, else to that of the backward operation before it. A gradient belongs where its
// backward operation does. What says no pass belongs to what it waits for, else to what stands
// before it. Threads: immutable values, pure functions.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "core/base/error.h"
#include "core/model/profile.h"

namespace stepcast {

// Cuts of a chain of operations into the stages of a pipeline.

// An operation of the forward pass, and what belongs to it.
struct ChainLink {
  int64_t cost_ns = 0;       // of its forward and its backward, of one micro-batch; at least 0
  int64_t output_bytes = 0;  // what a cut behind it sends
};

// The first link of each stage, ascending; the first is 0. No cut into so many stages of one link
// at least has a faster slowest stage; of those the one that sends the fewest bytes at its cuts, of
// those the one with the most even stages (the least sum of their squares), and of those the one
// whose cuts are earliest, from the last one on. Exact, by dynamic programming over the prefixes.
// Cost: O(stages x links^2). REQUIRES: 1 <= stages <= chain.size().
std::vector<size_t> CutIntoStages(const std::vector<ChainLink>& chain, size_t stages);

enum class StageRole : uint8_t {
  kForward,
  kBackward,        // all of it, or of the input's gradient where the weights' stands apart
  kBackwardWeight,  // likewise, of the weights'
  kGradient,        // a collective of the replicas, once a step
  kEndOfStep,       // once a step, after the gradients
};

struct StageMap {
  std::vector<int32_t> chain;    // the forward computations, ascending
  std::vector<int32_t> link_of;  // by operation: its place in the chain; -1: of kEndOfStep
  std::vector<StageRole> role_of;
  bool splits_backward = false;  // some operation is of the weights' gradient alone
  bool has_gradients = false;
  // Ranks of a pipeline that the recording was read from, each a link; 0: it is of one piece.
  int32_t recorded_ranks = 0;

  // The number of the link's stage. `first`: the first link of each stage, ascending.
  static int32_t StageOf(const std::vector<int32_t>& first, int32_t link);
};

// The recorded ranks that StageMap has, of an imported pipeline's (pipeline_ranks.cc): each has a
// forward pass, by its number, and an optimizer of its own. Cost: linear.
int32_t RecordedRanksOf(const Profile& profile);

// Adds a fault at `path` where the profile cannot be cut: it has parameter servers, says of no
// operation that it is FORWARD, or of none that it is BACKWARD, or has a collective of the replicas
// that reduces no gradient. Cost: linear in operations and dependencies.
StageMap MapStages(const Profile& profile, const char* path, FaultList& faults);

// The bytes that a cut before that link sends forward, and back: what operations before it hand on
// to those behind it, and where nothing behind waits for anything before, what the last one does.
// REQUIRES: 0 < link < chain.size().
int64_t BytesAtCut(const Profile& profile, const StageMap& map, int32_t link);

// The first link of each of so many stages whose slowest is fastest (CutIntoStages). Of a chain
// that is too long for it, fewer than asked for. REQUIRES: 1 <= stages <= map.chain.size().
std::vector<int32_t> BestCuts(const Profile& profile, const StageMap& map, int32_t stages);

}  // namespace stepcast
