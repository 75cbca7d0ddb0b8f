// The memory that a worker's step needs, as far as it is known what its forward operations keep,
// and halving the batch, one of two ways to need less; recomputation.h has the other.
//
// Source: dPRO (MLSys 2022), sections 5.2 and 7.4. Threads: pure functions; values.
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"

#include "core/model/profile.h"
#include "core/predict/device_use.h"

namespace stepcast {

// The time of computations of half a batch over that of the whole one, where nothing tells it.
//
// dPRO's Table 4 has it: BERT Base with 64 texts a GPU takes 622.12 ms a step, and 714.22 ms in two
// halves, which exchange gradients once. Where all of a step but T is computed in halves, and the
// rest stays, 714.22 - 622.12 = (2 h - 1) T, so h = 1/2 + 46.05 ms / T: 0.574 where T is the whole
// step, 0.60 where it is three quarters. The lower end is taken, because most of what is exchanged
// hides behind the backward pass.
inline constexpr double kHalfBatchShare = 0.57;

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

// The parameters' copies, and the peak of what is kept (PeakOfKept).
MemoryEstimate EstimateMemory(const Profile& profile, const MemoryModel& model);

enum class MemoryPass : uint8_t { kNone, kRecomputation, kGradientAccumulation };
// "RECOMPUTATION".
const char* NameOf(MemoryPass pass);

// A job that needs less memory.
struct MemoryPlan {
  MemoryPass pass = MemoryPass::kNone;
  Profile profile;  // with what the pass adds; names of what was there stay
  MemoryEstimate memory;
  // Forward operations of the profile that kRecomputation computes again, in their order, and in
  // words what they are.
  std::vector<std::string> recomputed = {};
  std::string recomputes = {};
};

// Two halves of the batch, one after the other, and one exchange of their gradients: all that does
// not wait for a gradient's exchange is done twice, first as `half/NAME`, each time for its share,
// by operation, of its time. FAILED_PRECONDITION, reason NOTHING_TO_HALVE, where all does.
absl::StatusOr<MemoryPlan> Accumulate(const Profile& profile, const MemoryModel& model,
                                      const std::vector<double>& shares);

// A name that no operation has: prefix and name, with as many primes as it takes.
class UnusedNames {
 public:
  explicit UnusedNames(const Profile& profile);
  std::string Make(const char* prefix, std::string_view name);

 private:
  std::set<std::string> taken_;
};

}  // namespace stepcast
