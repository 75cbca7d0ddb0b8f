// The profile of a job with parameter servers, made of one whose gradients are all-reduced.
//
// Threads: a pure function.
#pragma once

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"

#include "core/base/stop_check.h"
#include "core/model/profile.h"
#include "core/model/scenario.h"

namespace stepcast {

struct ServerProfile {
  Profile profile;
  Scenario scenario;  // with ranks by the new names
  // By operation: the one of the profile that it was made of.
  std::vector<int32_t> sources;
};

// The job that the scenario makes of the profile (ServerStepOf), as if it had been recorded so:
// with the same program, but for tensors in parts. An all-reduce becomes the upload of its name, of
// a parameter of its own, and a download named `pull/NAME`. Parameters are placed on the scenario's
// servers. Parts (partition_bytes) then stand together, and are placed beside all that is whole, on
// several servers otherwise than the program of the profile has them.
//
// Recorded times are of computations alone, each as soon as what it waits for and the ones before
// it have ended. Cost: O(n log n) in operations and dependencies, for each recorded step. Failure:
// as ServerStepOf; INVALID_ARGUMENT where the profile would be over a limit. REQUIRES: the profile
// has collectives; the scenario was resolved for it and has servers.
absl::StatusOr<ServerProfile> ServerProfileOf(const Profile& profile, const Scenario& scenario,
                                              StopCheck stop);

}  // namespace stepcast
