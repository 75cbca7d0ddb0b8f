// A step of a worker of parameter servers, before it is written as a program: what travels, what
// computes, and what waits for what.
//
// Servers that sum add up what all workers upload before they send it on. Source: BytePS; dPRO
// (MLSys 2022), 4.1; TicTac (SysML 2019), 2.2. Threads: pure functions.
#pragma once

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"

#include "core/base/stop_check.h"
#include "core/communication/step_plan.h"
#include "core/model/profile.h"
#include "core/model/scenario.h"

namespace stepcast {

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

}  // namespace stepcast
