// Groups of gradients that end the earliest where nothing contends, and runs of layers whose
// gradients are never parted. DDP's buckets are GradientsByBucket in
// core/communication/all_reduce.h.
//
// Gradients are in the order in which they become ready; a group is of consecutive ones, and its
// all-reduce begins when the last of them is ready and the one before has ended. Threads: pure
// functions.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"

#include "core/advise/overlap_model.h"
#include "core/base/stop_check.h"

namespace stepcast {

struct ReadyGradient {
  double ready_seconds = 0;  // no less than that of the one before
  int64_t bytes = 0;         // above 0

  friend bool operator==(const ReadyGradient&, const ReadyGradient&) = default;
};

// Seconds of an all-reduce of so many bytes.
using SecondsOfBytes = absl::FunctionRef<double(double bytes)>;

// The end of the last all-reduce of groups of so many gradients. REQUIRES: counts of all of them.
double SerialEnd(std::span<const ReadyGradient> gradients,
                 std::span<const int32_t> gradients_by_group, SecondsOfBytes seconds_of);

// The numbers of gradients in groups by which the last all-reduce ends the earliest, the fewest
// groups among those: exact for any times of all-reduces, because an all-reduce that ends earlier
// never makes a later one end later. Cost: quadratic in the gradients. Failure: what `stop`
// returns.
absl::StatusOr<std::vector<int32_t>> EarliestEndGroups(std::span<const ReadyGradient> gradients,
                                                       SecondsOfBytes seconds_of, StopCheck stop);

// Runs of layers whose gradients are never parted, as the dynamic programming takes them.
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
