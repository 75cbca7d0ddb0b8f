// LIBRA's allocation of GPU threads to all-reduces, jointly with the fusing of tensors or for given
// groups, by dynamic programming.
//
// The backward computation is cut in Z chunks of w seconds, and an all-reduce is taken to begin at
// an edge of one, the next one after it could: T(i, l, z) is the least time in which the first
// l layers are all-reduced in i groups and z chunks are computed. The strategy found is then timed
// without chunks, by Eq. 12-15. Source: Liu et al., "LIBRA", INFOCOM 2023, Eq. 17-23 and Algorithm
// 1, with three corrections: in line 24 t_2 is t_c; GetMinChunkID is that of l, not of l'; edges
// are the next ones, not the closest, for Theorem 1 needs delays from 0 to w. And two groups of
// work less: the least over threads depends on (l', l, z - z') alone and is found once, and fewer
// than K groups are looked up instead of filled up with empty ones. Threads: pure functions; the
// same input gives the same answer.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

#include "core/advise/overlap_model.h"
#include "core/base/stop_check.h"

namespace stepcast {

// The defaults are LIBRA's (section V-A), but for max_layers: above it, the lightest neighbours are
// taken as one.
struct AllocationOptions {
  int32_t max_groups = 10;                                           // K, 1 to 32
  int32_t chunks = 150;                                              // Z, 1 to 500
  std::vector<int32_t> threads = {128, 256, 512, 1024, 2048, 4096};  // R
  int32_t max_layers = 60;                                           // L, 1 to 100
};

struct ThreadAllocation {
  std::vector<TensorGroup> groups;  // of all layers
  double backward_seconds = 0;      // of these groups, by Eq. 12-15
  // The least backward time with all-reduces that begin at edges of chunks, T(K, L, Z): by A3 no
  // less than that of the groups, but for rounding.
  double chunked_seconds = 0;
  // The least backward time of any groups of these layers, K at most, with any of the threads, is
  // at least backward_seconds / guarantee: 1 + (G - 1) / Z with at most G groups, where LIBRA gives
  // 1 + (L - 1) / Z; one group more where layers without parameters come last.
  double guarantee = 1;
  bool guarantee_holds = true;
  std::string why_void;  // where it does not, in plain English
  // The layers that groups were made of. Those without parameters go with the next that has some,
  // or with the last.
  int32_t fused_layers = 0;
  int32_t layers_with_parameters = 0;  // more than fused_layers: the lightest were merged
};

// Jointly with the fusing. Cost: K L^2 Z^2 / 4 additions; K = 10, L = 60, Z = 150 with 13 numbers
// of threads take 0.06 s at -O2. Memory: 8 Z (K L + L^2) bytes. Failure: INVALID_ARGUMENT, reason
// ALLOCATION_INVALID, with every fault of layers, setting and options; what `stop` returns.
absl::StatusOr<ThreadAllocation> AllocateThreads(std::span<const BackwardLayer> layers,
                                                 const OverlapSetting& setting,
                                                 const AllocationOptions& options, StopCheck stop);

// For given groups (LIBRA-M): the layers in each, in order. max_groups and max_layers do not count.
// Cost: Z (Z + threads) a group. Failure: as above.
absl::StatusOr<ThreadAllocation> AllocateThreadsToGroups(std::span<const BackwardLayer> layers,
                                                         std::span<const int32_t> layers_by_group,
                                                         const OverlapSetting& setting,
                                                         const AllocationOptions& options,
                                                         StopCheck stop);

}  // namespace stepcast
