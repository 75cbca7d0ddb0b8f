// The buckets in which PyTorch's DistributedDataParallel sends gradients, found in a recording and
// made by its rule.
//
// Threads: pure functions. Cost: linear in the gradients.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "core/model/profile.h"

namespace stepcast {

// The number of gradients of each bucket by the rule, in the order of the gradients.
std::vector<size_t> AssignBuckets(const std::vector<int64_t>& gradient_bytes, const Buckets& rule);

// The number of consecutive gradients whose sizes add up to each bucket's, or none where they do
// not. `skipped` gradients come first and are in no bucket: those of micro-steps that only
// accumulate.
struct BucketMembers {
  size_t skipped = 0;
  std::vector<size_t> counts;  // parallel to the buckets
};
std::optional<BucketMembers> FindBucketMembers(const std::vector<int64_t>& gradients,
                                               const std::vector<int64_t>& buckets);

// A gradient as a matrix of so many rows.
struct GradientShape {
  int64_t rows = 0;  // its first dimension; 0: not known
  int64_t elements = 0;
};
// The rank of PowerSGD, where all-reduces of `sent` elements are what its hook makes of the
// gradients of one step; 0: they are not. Of each bucket it sends what stays as it is, then a thin
// matrix for each matrix, by its rows, then another, by its columns; the batched one two alike for
// the whole bucket. Of more than 16,384 gradients 0. REQUIRES: elements are at least 1, and their
// sum is int64. Source: torch/distributed/algorithms/ddp_comm_hooks/powerSGD_hook.py of
// PyTorch 1.13.
int64_t PowerSgdRank(const std::vector<GradientShape>& gradients, const std::vector<int64_t>& sent);

// The limits by which the rule makes some buckets: at least `least`, at most `most`.
struct CapRange {
  int64_t least = 1;
  int64_t most = 0;
};
// Of all buckets but the first, which has a cap of its own, and the last, which nothing closed;
// none where no cap makes them. REQUIRES: counts add up to the gradients.
std::optional<CapRange> CapsThatMake(const std::vector<int64_t>& gradient_bytes,
                                     const std::vector<size_t>& counts);
// The limits of the first bucket that make it. REQUIRES: as above, and there is one.
CapRange FirstLimitsThatMake(const std::vector<int64_t>& gradient_bytes,
                             const std::vector<size_t>& counts);

}  // namespace stepcast
