// The rules by which gradients are fused that know nothing of contention: one all-reduce after the
// backward pass, the merging of MG-WFBP and the exact best, Horovod's cycles; and runs of layers
// whose gradients are never parted. DDP's buckets are GradientsByBucket in
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

// The layers that have parameters, when they are ready where nothing slows computation.
std::vector<ReadyGradient> GradientsOf(std::span<const BackwardLayer> layers);

// The layers in each group, of gradients in each: layers without parameters go with the next
// gradient, the last ones with the last. REQUIRES: counts of all gradients of these layers.
std::vector<int32_t> LayersByGroup(std::span<const BackwardLayer> layers,
                                   std::span<const int32_t> gradients_by_group);

// The end of the last all-reduce of groups of so many gradients. REQUIRES: counts of all of them.
double SerialEnd(std::span<const ReadyGradient> gradients,
                 std::span<const int32_t> gradients_by_group, SecondsOfBytes seconds_of);

// The numbers of gradients in groups by which the last all-reduce ends the earliest, the fewest
// groups among those: exact for any times of all-reduces, because an all-reduce that ends earlier
// never makes a later one end later. Cost: quadratic in the gradients. Failure: what `stop`
// returns.
absl::StatusOr<std::vector<int32_t>> EarliestEndGroups(std::span<const ReadyGradient> gradients,
                                                       SecondsOfBytes seconds_of, StopCheck stop);

// The groups of MG-WFBP, where an all-reduce takes startup_seconds and what its bytes take: a
// gradient joins the group before it if it is ready before that group's all-reduce has begun and
// its startup has passed. Linear. Not always the best even then: a gradient that joins may delay a
// begin by nearly a startup, where going with the next one would have cost nothing.
// Source: Shi, Chu and Li, "MG-WFBP", TPDS 2021.
std::vector<int32_t> MgWfbpGroups(std::span<const ReadyGradient> gradients, double startup_seconds,
                                  SecondsOfBytes seconds_of);

struct HorovodCycles {
  double first_seconds = 0;      // when a cycle begins, on the gradients' clock
  double cycle_seconds = 0.005;  // from begin to begin, or until what it began has ended
  int64_t fusion_bytes = 67'108'864;
};
struct HorovodBuffer {
  int32_t gradients = 0;
  double cycle_seconds = 0;  // begin of its cycle
  double begin_seconds = 0;
  double end_seconds = 0;

  friend bool operator==(const HorovodBuffer&, const HorovodBuffer&) = default;
};
// The buffers of Horovod where the backward pass runs once: a cycle takes what is ready when it
// begins, in buffers of up to fusion_bytes (a larger gradient alone), one after the other. Linear.
// REQUIRES: cycle_seconds >= 0.
// Source: horovod 2626dc87, core/README.md "Horovod's cycles"; its passing over of a gradient that
// does not fit ends the buffer wherever sizes alone decide, so buffers are of consecutive ones.
std::vector<HorovodBuffer> HorovodBuffers(std::span<const ReadyGradient> gradients,
                                          const HorovodCycles& cycles, SecondsOfBytes seconds_of);

// The same beside a backward pass that they contend with, with so many threads for a buffer of so
// many bytes. REQUIRES: CheckLayers and CheckSetting find no fault, of all threads.
struct HorovodTime {
  double seconds = 0;
  double exposed_seconds = 0;  // all-reduces alone
  std::vector<HorovodBuffer> buffers;
};
HorovodTime HorovodBackward(std::span<const BackwardLayer> layers, const OverlapSetting& setting,
                            const HorovodCycles& cycles,
                            absl::FunctionRef<int32_t(double bytes)> threads_of);

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
