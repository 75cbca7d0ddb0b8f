// The step of a job with parameter servers, before it is written as a program, and the profile of
// such a job, made of one whose gradients are all-reduced.
//
// Threads: pure functions.
#pragma once

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"

#include "core/base/stop_check.h"
#include "core/communication/step_plan.h"
#include "core/model/profile.h"
#include "core/model/scenario.h"

namespace stepcast {

// A step of a worker of parameter servers: what travels, what computes, and what waits for what.
// Servers that sum add up what all workers upload before they send it on. Source: BytePS; dPRO
// (MLSys 2022), 4.1; TicTac (SysML 2019), 2.2.

// A download, and the uploads and operations of servers that make what it carries.
struct SummedDownload {
  int32_t download = 0;
  std::vector<int32_t> befores;  // ascending; none of them waits for another one itself
  bool of_last_step = false;

  friend bool operator==(const SummedDownload&, const SummedDownload&) = default;
};

// The downloads of sums, by operation of the profile, ascending.
//
// The uploads and operations of servers of its parameter that a download waits for, directly or
// not, and those of any parameter that it waits for directly, are of its own step. Where there are
// none all those of its parameter are of the step before. A download of a parameter without any
// carries no sum.
//
// Cost: O((operations + dependencies) x the uploads and operations of servers that have a download
// which waits for something / 64). Failure: what `stop` returns; INVALID_ARGUMENT, reason
// SCENARIO_INVALID, field parameter_servers.synchronization: an operation that is not of the worker
// names no parameter, and no download waits for it, or it for one; or a parameter has too many
// downloads and uploads. REQUIRES: nothing is
// all-reduced.
absl::StatusOr<std::vector<SummedDownload>> SumsOf(const Profile& profile, StopCheck stop);

// The parameter of an all-reduced gradient, and the computation that needs it first, of the plan.
struct ParameterDownload {
  int32_t gradient = 0;
  int32_t user = 0;
};

struct ServerStep {
  StepPlan plan;
  // At the begin of the step, where gradients are all-reduced and servers do not sum: in the order
  // in which they are needed.
  std::vector<ParameterDownload> downloads;
  // The sums that downloads wait for, where servers sum.
  std::vector<SummedDownload> sums;
};

// Failure: what `stop` returns; INVALID_ARGUMENT, reason SCENARIO_INVALID, field parameter_servers:
// as ForwardUses, where gradients are all-reduced; else as SumsOf, where servers sum.
absl::StatusOr<ServerStep> ServerStepOf(const Profile& profile, const Scenario& scenario,
                                        StopCheck stop);

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
