// Groups of gradients as papers publish them, which advice makes otherwise: MG-WFBP's own merging,
// which is not always the best, and Horovod's cycles of one backward pass, where `tune` simulates
// whole steps.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "absl/functional/function_ref.h"

#include "core/advise/group_rules.h"
#include "core/advise/overlap_model.h"

namespace stepcast::bench {

// The layers that have parameters, when they are ready where nothing slows computation.
std::vector<ReadyGradient> GradientsOf(std::span<const BackwardLayer> layers);

// The layers in each group, of gradients in each: layers without parameters go with the next
// gradient, the last ones with the last. REQUIRES: counts of all gradients of these layers.
std::vector<int32_t> LayersByGroup(std::span<const BackwardLayer> layers,
                                   std::span<const int32_t> gradients_by_group);

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

}  // namespace stepcast::bench
