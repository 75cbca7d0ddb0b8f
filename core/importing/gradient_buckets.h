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
