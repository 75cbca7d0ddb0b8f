// ByteScheduler's all-reduces: tensors cut in partitions, those of layers near the input first,
// some bytes in flight, and no barrier between the backward pass and the next forward one.
//
// Workers are alike, so one stands for all. A layer's forward waits for its own all-reduces alone;
// its tensor is ready when its backward has ended. A partition enters the network if it and what is
// in flight come to credit_bytes at most, or nothing is in flight; there its startup passes, and
// then its bytes, after those of partitions that entered before it. So small partitions and little
// credit let urgent ones overtake, and more credit hides startups. While any partition is in flight
// computation advances at computation_speed. At the end of a forward pass nothing is in flight, so
// that every iteration is like the one before and one is all that is simulated.
// Source: Peng et al., "A generic communication scheduler for distributed DNN training
// acceleration", SOSP 2019, sections 3 and 4. Threads: pure functions.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "absl/status/statusor.h"

#include "core/advise/overlap_model.h"
#include "core/base/stop_check.h"

namespace stepcast {

// In forward order.
struct ScheduledLayer {
  double forward_seconds = 0;
  double backward_seconds = 0;
  int64_t bytes = 0;  // of its gradients; 0: it has no parameters

  friend bool operator==(const ScheduledLayer&, const ScheduledLayer&) = default;
};

// All-reduces as a network that all of them go through.
struct PartitionNetwork {
  double startup_seconds = 0;  // of each partition; those in flight pass at the same time
  double serial_seconds = 0;   // of each partition, before its bytes
  double overlapped_bytes_per_second = 0;  // of gradients, while the worker computes
  double alone_bytes_per_second = 0;
  double computation_speed = 1;  // beside a partition in flight
};

// Ring all-reduces with these rates. REQUIRES: of more than one worker.
PartitionNetwork PartitionNetworkOf(const CollectiveRates& rates);

struct PartitionSchedule {
  enum class Order : uint8_t { kFirstCome, kNearInputFirst };

  Order order = Order::kFirstCome;
  int64_t partition_bytes = 0;  // 0: tensors are whole
  int64_t credit_bytes = 0;     // 0: all that is ready is in flight
  friend bool operator==(const PartitionSchedule&, const PartitionSchedule&) = default;
};

struct PartitionLimits {
  int32_t max_layers = 100'000;
  int64_t max_partitions = 100'000;  // of an iteration
  int32_t max_grid = 1'000;          // schedules
};

// Seconds of an iteration in the steady state. Cost: O(n log n) in layers and partitions. Failure:
// INVALID_ARGUMENT, reason SCHEDULE_INVALID, naming `layers[i]...`, `network...`, `partition_bytes`
// or `credit_bytes`; what `stop` returns.
absl::StatusOr<double> IterationSeconds(std::span<const ScheduledLayer> layers,
                                        const PartitionNetwork& network,
                                        const PartitionSchedule& schedule, StopCheck stop,
                                        const PartitionLimits& limits = {});

struct PartitionGrid {
  std::vector<int64_t> partition_bytes = {262'144,   524'288,    1'048'576,  2'097'152, 4'194'304,
                                          8'388'608, 16'777'216, 33'554'432, 0};
  // Times the partition's bytes; 0: no limit.
  std::vector<int32_t> credit_partitions = {1, 2, 4, 8, 16, 0};
};
struct PartitionSearch {
  PartitionSchedule best;
  double seconds = 0;             // of an iteration
  double first_come_seconds = 0;  // of whole tensors, first come first served, no credit
};
// The first of the fastest of the grid, in both orders, and of whole tensors first come first
// served, which it is never slower than. Of a partition with which there would be too many, nothing
// is tried. Failure: as above; `grid`.
absl::StatusOr<PartitionSearch> SearchPartitions(std::span<const ScheduledLayer> layers,
                                                 const PartitionNetwork& network,
                                                 const PartitionGrid& grid, StopCheck stop,
                                                 const PartitionLimits& limits = {});

}  // namespace stepcast
