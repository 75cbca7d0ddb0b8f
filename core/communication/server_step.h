// A step of a worker of parameter servers, before it is written as a program: what travels, what
// computes, and what waits for what.
//
// Threads: a pure function.
#pragma once

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"

#include "core/base/stop_check.h"
#include "core/communication/step_plan.h"
#include "core/communication/summing.h"
#include "core/model/profile.h"
#include "core/model/scenario.h"

namespace stepcast {

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
