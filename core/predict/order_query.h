// A request for orders of transfers: as asked for, and checked.
//
// Threads: pure functions of their arguments; any number at once.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "absl/status/statusor.h"

#include "core/model/profile.h"
#include "core/model/scenario.h"
#include "core/model/simulation_options.h"
#include "core/orders/transfer_ranks.h"

namespace stepcast {

// A request as it is asked for, unchecked. No methods: kTic, kTac, kReverse, kRecorded and kGraph.
struct OrderDraft {
  ScenarioDraft scenario;
  SimulationOptionsDraft options;
  std::vector<OrderMethod> methods;
  bool inference = false;  // the forward pass only
};

// A checked request.
struct OrderQuery {
  Scenario scenario;  // transfer_order is kGraph
  SimulationOptions options;
  std::vector<OrderMethod> methods;     // distinct, not empty
  std::optional<Profile> forward_pass;  // of the profile, where that is what is asked about
};

// Fails as ResolveScenario and ResolveOptions do, all faults at once, reason REQUEST_INVALID, paths
// relative to the request (`scenario.workers`, `methods[1]`); a scenario with an order of its own
// is a fault. With inference, as ForwardPass.
absl::StatusOr<OrderQuery> ResolveOrder(const Profile& profile, const OrderDraft& draft);

}  // namespace stepcast
