// The order in which the devices of a pipeline compute: which micro-batch's forward or backward of
// which chunk comes when.
//
// Symbols: p devices, v chunks a device, p v stages, m micro-batches, g micro-batches a group.
// Sources: Huang et al., "GPipe" (2019); Narayanan et al., "Efficient Large-Scale Language Model
// Training on GPU Clusters Using Megatron-LM" (SC 2021) and Megatron-LM's schedules.py; Lamy-
// Poirier, "Breadth-First Pipeline Parallelism" (2023); Qi et al., "Zero Bubble Pipeline
// Parallelism" (ICLR 2024); PyTorch's torch.distributed.pipelining. Threads: pure functions.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "core/base/error.h"
#include "core/base/index.h"

namespace stepcast {

enum class PipelineSchedule : uint8_t {
  kGpipe,
  kOneForwardOneBackward,
  kInterleaved,
  kLoopedBreadthFirst,
  kZeroBubble1,
  kZeroBubbleV,
};
enum class PipelineVariant : uint8_t { kMegatron, kPytorch };

// GPIPE, ONE_F_ONE_B, INTERLEAVED, LOOPED_BFS, ZERO_BUBBLE_1, ZERO_BUBBLE_V.
std::string_view PipelineScheduleName(PipelineSchedule schedule);
// Backward is two computations: of the input's gradient, and of the weights'.
constexpr bool SplitsBackward(PipelineSchedule schedule) {
  return schedule == PipelineSchedule::kZeroBubble1 || schedule == PipelineSchedule::kZeroBubbleV;
}
constexpr bool HasChunks(PipelineSchedule schedule) {
  return schedule == PipelineSchedule::kInterleaved ||
         schedule == PipelineSchedule::kLoopedBreadthFirst ||
         schedule == PipelineSchedule::kZeroBubbleV;
}

inline constexpr int32_t kMaxPipelineDevices = 1024;
inline constexpr int32_t kMaxMicroBatches = 65'536;
inline constexpr int32_t kMaxChunks = 256;
// Computations of one step of one replica: p v m.
inline constexpr int64_t kMaxPipelineWork = 4'000'000;

struct PipelineLayout {
  PipelineSchedule schedule = PipelineSchedule::kOneForwardOneBackward;
  PipelineVariant variant = PipelineVariant::kMegatron;
  int32_t devices = 1;        // p
  int32_t chunks = 1;         // v
  int32_t micro_batches = 1;  // m
  int32_t group = 0;          // g, of kInterleaved; 0: p, or PyTorch's m / max(1, m / p)

  int32_t stages() const { return devices * chunks; }
  int32_t StageOf(int32_t device, int32_t chunk) const {
    if (schedule == PipelineSchedule::kZeroBubbleV && chunk == 1) return 2 * devices - 1 - device;
    return chunk * devices + device;
  }
  int32_t DeviceOf(int32_t stage) const {
    if (schedule == PipelineSchedule::kZeroBubbleV && stage >= devices)
      return 2 * devices - 1 - stage;
    return stage % devices;
  }
  int32_t GroupSize() const;

  friend bool operator==(const PipelineLayout&, const PipelineLayout&) = default;
};

// Every fault, its path relative to the pipeline: bounds, chunks that the schedule has not, and
// what Megatron-LM and PyTorch refuse of INTERLEAVED.
std::vector<Fault> LayoutFaults(const PipelineLayout& layout);

enum class PipelinePart : uint8_t { kForward, kBackward, kBackwardInput, kBackwardWeight };

struct PipelineWork {
  PipelinePart part = PipelinePart::kForward;
  int32_t micro_batch = 0;
  int32_t chunk = 0;

  friend bool operator==(const PipelineWork&, const PipelineWork&) = default;
};

// The work of a device in a step, first to last. Each forward is there once, and each backward
// once, or once for its input and once, later, for its weights. REQUIRES: LayoutFaults is empty;
// 0 <= device < layout.devices. Cost: linear.
std::vector<PipelineWork> OrderOf(const PipelineLayout& layout, int32_t device);

}  // namespace stepcast
