// Buckets of gradients: the rule by which DistributedDataParallel fills them, which of them
// gradients fill, and the all-reduces of a step that are of gradients, told from all others.
//
// Threads: pure functions. Cost: linear in the gradients.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"

#include "core/importing/pytorch/pytorch_content.h"
#include "core/model/profile.h"

namespace stepcast {

// The buckets in which PyTorch's DistributedDataParallel sends gradients, found in a recording and
// made by its rule.

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
// Caps of all buckets but the first, which has a cap of its own, and the last, which nothing
// closed; none where no cap makes them. REQUIRES: counts add up to the gradients.
std::optional<CapRange> CapsThatMake(const std::vector<int64_t>& gradient_bytes,
                                     const std::vector<size_t>& counts);
// The limits of the first bucket that make it. REQUIRES: as above, and there is one.
CapRange FirstLimitsThatMake(const std::vector<int64_t>& gradient_bytes,
                             const std::vector<size_t>& counts);

// The all-reduces of a step of PyTorch's profiler that are of gradients, told from all others.

// True if consecutive gradients add up to all-reduces of a group (-1: of any).
bool AddUpToGradients(const StepContent& content, int32_t group);

// Puts the collectives of all steps in one order, and marks those all-reduces that are buckets:
// gradients add up to them, or, where none do, each is launched when another gradient is there or
// by a hook of one, and not of whole numbers or one number. Maps of unused parameters come after
// all buckets, beside which they run. Of later backward passes those stay that send buckets, and
// have some sent before them. REQUIRES: steps of one form, at least one; each has
// gradients.
void ChooseBuckets(std::vector<StepContent>& steps);

// OK, or that a hook sends what PowerSGD makes of the gradients. REQUIRES: gradients have sizes.
absl::Status CheckHook(const StepContent& content);

// True for buckets of another type than any gradient's.
bool AreCompressed(const std::vector<Gradient>& gradients, const std::vector<SentTensor>& buckets);
// Bytes sent for a byte of gradients, where all have the same share.
std::optional<double> SentShare(const std::vector<Gradient>& gradients,
                                const std::vector<SentTensor>& buckets);

// A note on the all-reduces that are no buckets; empty: there are none.
std::string NoteOfOtherAllReduces(const StepContent& content);

}  // namespace stepcast
