// The use of one device of a worker in a step, as far as a profile tells it: its memory at the
// peak, and its computation by pass.
//
// Threads: pure functions; values.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "core/communication/all_reduce.h"
#include "core/engine/program.h"
#include "core/model/profile.h"
#include "core/model/scenario.h"

namespace stepcast {

// The memory of a device at the peak of its step: parameters, gradients and the optimizer's state,
// by the sharding of a scenario, and what the forward pass keeps. Predictions, pipelines and
// strategies count by these rules.
//
// Source: dPRO (MLSys 2022), section 7.4; of the shares Rajbhandari et al., "ZeRO" (SC 2020),
// section 3, and of what FSDP gathers Zhao et al., "PyTorch FSDP" (VLDB 2023).

// The copies of a parameter that a worker holds: itself, its gradient, and Adam's two moments;
// those are the servers' where there are any.
inline constexpr double kOptimizerCopies = 2;
inline constexpr double kParameterCopies = 2 + kOptimizerCopies;
inline constexpr double kParameterCopiesBesideServers = 2;

// Bytes.
struct DeviceMemory {
  double parameters = 0;
  double gradients = 0;
  double optimizer = 0;
  std::optional<double> kept;  // none: not known

  double bytes() const { return parameters + gradients + optimizer + kept.value_or(0); }
};

// A forward operation `forward/NAME`, and its `backward/NAME`, which undoes it.
struct UndonePair {
  std::string_view name;  // NAME, of the profile
  int32_t forward = 0;
  int32_t backward = 0;
};
// All of a profile, in the order of their streams.
std::vector<UndonePair> UndonePairsOf(const Profile& profile);

// The computations of a stream in the order in which they were recorded: by the mean of their
// starts, equal ones in graph order. By stream.
std::vector<std::vector<int32_t>> StreamOrders(const Profile& profile);

// Bytes of all parameters, each of the size of its gradient before that is compressed.
double ParameterBytes(const Profile& profile);

// The peak of what a step holds between its passes, by operation what each keeps until its gradient
// has been computed. Operations keep their outputs in the order of their stream and are undone in
// reverse; while one `forward/NAME` is, by its `backward/NAME`, the gradients of its output and of
// the one before it are held. An operation without such a pair is many layers, of which it is not
// known how large each is: their gradients are not counted.
double PeakOfKept(const Profile& profile, const std::vector<int64_t>& kept_bytes);

// The bytes that operations of the profile keep; none: it says of none.
std::optional<std::vector<int64_t>> KeptBytesOf(const Profile& profile);

// Parameters and what belongs to them, shared by so many workers.
DeviceMemory StateOf(double parameter_bytes, Sharding sharding, int32_t workers);

// The part that scenarios of a job share.
struct MemoryNeeds {
  double parameter_bytes = 0;
  double sent_share = 1;                // of a byte of gradients
  std::optional<double> kept;           // none: not known
  Sharding recorded = Sharding::kNone;  // of a job that was recorded sharded
};
// Cost: linear in the recorded times, O(n log n) in operations.
MemoryNeeds MemoryNeedsOf(const Profile& profile);

// None where nothing is known. `collectives`: of the scenario's program. With FULL a device holds
// its shares, the two largest units in a row that are gathered, and the gradients of the largest.
// REQUIRES: the scenario has no pipeline.
std::optional<DeviceMemory> MemoryOf(const MemoryNeeds& needs, const Scenario& scenario,
                                     const std::vector<PlannedCollective>& collectives);

// The computation of a worker's step by the pass that it belongs to.
//
// Source: dPRO (MLSys 2022), Table 2, which tells forward and backward apart in this way.

// Seconds of a step, mean over the recorded steps, at the recorded speed. Of several streams the
// one that has most of a pass.
struct PassTimes {
  double forward = 0;
  double backward = 0;  // of inputs and of weights
  double optimizer = 0;
  double other = 0;  // of what belongs elsewhere, or does not say

  // At so many times the speed.
  PassTimes operator/(double speed) const {
    return {forward / speed, backward / speed, optimizer / speed, other / speed};
  }
};

// Times of the passes that the program's worker and its host compute; parsing is in none. None
// where no computation says what it belongs to. REQUIRES: the program is of this profile. Cost:
// linear in operations x steps.
std::optional<PassTimes> PassTimesOf(const Program& program, const Profile& profile);

}  // namespace stepcast
