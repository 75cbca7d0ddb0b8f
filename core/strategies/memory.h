// The memory that a worker's step needs, as far as it is known what its forward operations keep,
// and two ways to need less: computing outputs again, and halving the batch.
//
// Source: dPRO (MLSys 2022), sections 5.2 and 7.4; Chen et al., "Training deep nets with sublinear
// memory cost", 2016 (recomputation). Threads: pure functions; values.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

#include "core/model/profile.h"

namespace stepcast {

// The copies of a parameter that a worker holds: itself, its gradient, and Adam's two moments;
// those are the servers' where there are any.
inline constexpr double kParameterCopies = 4;
inline constexpr double kParameterCopiesBesideServers = 2;
// Of computations of half a batch: they take time in proportion to the batch.
inline constexpr double kHalfBatchShare = 0.5;

// A worker's memory, as far as it is known. By operation of the profile: bytes of what it keeps
// until its gradient has been computed; 0: nothing.
struct MemoryModel {
  std::vector<int64_t> kept_bytes;
  double parameter_copies = kParameterCopies;
};

struct MemoryEstimate {
  double parameter_bytes = 0;  // with gradients and the optimizer's state
  double output_bytes = 0;     // at the peak: kept outputs, and gradients of outputs under way

  double bytes() const { return parameter_bytes + output_bytes; }
};

// The peak of a step. Operations keep their outputs in the order of their stream and are undone in
// reverse; while one `forward/NAME` is, by its `backward/NAME`, the gradients of its output and of
// the one before it are held. An operation without such a pair is many layers, of which it is not
// known how large each is: their gradients are not counted.
MemoryEstimate EstimateMemory(const Profile& profile, const MemoryModel& model);

enum class MemoryPass : uint8_t { kNone, kRecomputation, kGradientAccumulation };
// "RECOMPUTATION".
const char* NameOf(MemoryPass pass);

// A job that needs less memory.
struct MemoryPlan {
  MemoryPass pass = MemoryPass::kNone;
  Profile profile;  // with what the pass adds; names of what was there stay
  MemoryEstimate memory;
  int32_t segments = 0;  // of kRecomputation
  // Of kRecomputation: the forward operations of the profile that are computed again.
  std::vector<std::string> recomputed = {};
};

// Forward operations in so many segments of about the same bytes, each of which but the last is
// computed again, from the output kept before it, when its backward operations begin: operations
// `recompute/NAME`.
//
// Assumes that a segment needs no more than that one output of what is before it.
// FAILED_PRECONDITION, reason NOTHING_TO_RECOMPUTE, where no two operations `forward/NAME` that
// keep something have a `backward/NAME` each. REQUIRES: segments >= 2.
absl::StatusOr<MemoryPlan> Recompute(const Profile& profile, const MemoryModel& model,
                                     int32_t segments);
// The most segments that there can be; below 2: none can be recomputed.
int32_t MostSegments(const Profile& profile, const MemoryModel& model);

// Two halves of the batch, one after the other, and one exchange of their gradients: all that does
// not wait for a gradient's exchange is done twice, first as `half/NAME`, each time for `share` of
// its time. FAILED_PRECONDITION, reason NOTHING_TO_HALVE, where all does.
absl::StatusOr<MemoryPlan> Accumulate(const Profile& profile, const MemoryModel& model,
                                      double share);

}  // namespace stepcast
