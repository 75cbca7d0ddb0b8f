// In which order a job's tensors should travel.
//
// Source: Hashemi, Abdu Jyothi, Campbell: "TicTac", SysML 2019, sections 3.2 and 4.
// Every order but kGraph is enforced on the downloads, and on nothing else, by the ranks that are listed: the same ranks as a scenario's
// transfer_priorities give the same numbers. kGraph is what happens when nothing is enforced. Threads: pure functions of their arguments; any number
// at once.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

#include "core/base/stop_check.h"
#include "core/model/profile.h"
#include "core/model/scenario.h"
#include "core/model/simulation_options.h"
#include "core/predict/throughput.h"

namespace stepcast {

enum class OrderMethod : uint8_t { kTic, kTac, kSearch, kReverse, kRandom, kRecorded, kGraph };

struct RankedTransfer {
  std::string name;
  int32_t rank = 0;
  int64_t size_bytes = 0;
};

struct OrderResult {
  OrderMethod method = OrderMethod::kGraph;
  std::vector<RankedTransfer> transfers;  // downloads, first to last
  int64_t makespan_ns = 0;                // one step of one worker, every operation at its least recorded time
  double scheduling_efficiency = 0;       // TicTac, Eq. 3; 1 where both bounds coincide
  double straggler_effect = 0;            // largest share of a synchronous iteration that a worker waited (TicTac, 6.3), in one run
  double steps_per_second = 0;            // at the scenario
  double examples_per_second = 0;
  Interval confidence_interval;  // of examples_per_second
};

struct OrderAnswer {
  std::vector<OrderResult> orders;
  OrderMethod chosen = OrderMethod::kGraph;
  int64_t upper_makespan_ns = 0;  // Eq. 1
  int64_t lower_makespan_ns = 0;  // Eq. 2
  double speedup_bound = 0;       // Eq. 4
  int32_t transfers_without_measured_time = 0;
  double graph_steps_per_second = 0;
  double random_steps_per_second = 0;
  SimulationStatistics simulation;
};

// What is asked for, unchecked. No methods: kTic, kTac, kReverse, kRecorded and kGraph.
struct OrderDraft {
  ScenarioDraft scenario;
  SimulationOptionsDraft options;
  std::vector<OrderMethod> methods;
};

// A checked request.
struct OrderQuery {
  Scenario scenario;  // transfer_order is kGraph
  SimulationOptions options;
  std::vector<OrderMethod> methods;  // distinct, not empty
};

// Fails as ResolveScenario and ResolveOptions do, all faults at once, reason REQUEST_INVALID, paths relative to the request (`scenario.workers`,
// `methods[1]`); a scenario with an order of its own is a fault. UNIMPLEMENTED, reason METHOD_UNSUPPORTED, for kSearch.
absl::StatusOr<OrderQuery> ResolveOrder(const Profile& profile, const OrderDraft& draft);

// One result a method, as asked for; chosen is the first of those with the shortest makespan.
//
// REQUIRES: the query was resolved for this profile.
// Cost: for each method its order (core/ordering), one step, PredictThroughput at the scenario and, with several workers, one synchronous run more.
// Failure: as PredictThroughput.
absl::StatusOr<OrderAnswer> OptimizeOrder(const Profile& profile, const OrderQuery& query, StopCheck stop, const Executor& executor = InOrder());

}  // namespace stepcast
