// The all-reduces of a step of PyTorch's profiler that are of gradients, told from all others.
//
// Threads: pure functions.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"

#include "core/importing/pytorch/pytorch_content.h"

namespace stepcast {

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
