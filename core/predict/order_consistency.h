// The spread of orders of transfers, and of the steps that they make.
//
// Source: TicTac (SysML 2019), sections 2.2 (orders that a framework takes by chance are rarely
// the same twice), 3.2 (scheduling efficiency) and 6.2 (it tells how long a step takes).
// Threads: pure functions.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "absl/status/statusor.h"

#include "core/base/stop_check.h"
#include "core/model/profile.h"
#include "core/model/scenario.h"
#include "core/orders/least_step.h"

namespace stepcast {

// The orders of the downloads that a scenario's own order takes. Orders are told apart by the
// downloads of each server.
struct OrderSpread {
  int32_t orders = 0;
  int32_t unique_orders = 0;
  // Efficiencies of a step in which every operation takes its least time (Eq. 3).
  double mean_efficiency = 1;
  double least_efficiency = 1;
};

// Orders of RANDOM that are looked at.
inline constexpr int32_t kRandomOrders = 100;

// kGraph: one, where nothing is enforced. kRecorded: each recorded step's, by the ends of its
// downloads. kRandom: kRandomOrders that are drawn with the seed. Failure: as LeastStep::Makespan.
// REQUIRES: the step is of this profile and scenario; one of the three.
absl::StatusOr<OrderSpread> SpreadOfOrders(TransferOrder order, const Profile& profile,
                                           const Scenario& scenario, const LeastStep& step,
                                           uint64_t seed, StopCheck stop);

// The recorded steps of a worker with parameter servers. Lists are by step.
struct RecordedOrders {
  int32_t unique_orders = 0;
  std::vector<double> step_seconds;
  // Eq. 3 of the step's own times: computations as recorded, transfers as long as their bytes take
  // alone. Below 0: longer than one thing after the other.
  std::vector<double> efficiencies;
  // The share of the variance of step times that a line over the efficiencies explains (R^2). None
  // with fewer than three steps, or where either does not vary.
  std::optional<double> r_squared;
};

// Failure: as LeastStep::BoundsOfSteps. REQUIRES: no collectives. Cost: linear in recorded times,
// with a sort of each step's downloads.
absl::StatusOr<RecordedOrders> CheckRecordedOrders(const Profile& profile, StopCheck stop);

// R^2 of y over x; none with fewer than three pairs, or where either does not vary. REQUIRES: as
// many of both.
std::optional<double> RSquaredOf(const std::vector<double>& x, const std::vector<double>& y);

}  // namespace stepcast
