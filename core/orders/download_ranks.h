// The ranks that a method of ordering gives to the downloads of a step.
//
// Threads: a pure function of its arguments; any number at once.
#pragma once

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"

#include "core/base/stop_check.h"
#include "core/engine/program.h"
#include "core/model/profile.h"
#include "core/model/scenario.h"

namespace stepcast {

enum class OrderMethod : uint8_t { kTic, kTac, kSearch, kReverse, kRandom, kRecorded, kGraph };

// By OpIndex, kUnranked for all but downloads. Ranks go from 0 without gaps; equal ones (kTic,
// kRecorded) go in order of arrival.
//
// kRecorded: by the end of the transfers in the first recorded step. kRandom: a permutation drawn
// with `seed`. Failure: as TransferRanks. REQUIRES: graph was built from this profile and scenario;
// method is not kSearch.
absl::StatusOr<std::vector<int32_t>> DownloadRanks(OrderMethod method, const Profile& profile,
                                                   const Scenario& scenario, const Program& graph,
                                                   uint64_t seed, StopCheck stop);

}  // namespace stepcast
