// The order in which a job's tensors should travel: the question, and its answer.
//
// Source: Hashemi, Abdu Jyothi, Campbell: "TicTac", SysML 2019, sections 3.2, 4 and 5.1. Every
// order but kGraph is enforced on the downloads, and on nothing else, by the ranks that are listed:
// the same ranks as a scenario's transfer_priorities give the same numbers. kGraph is what happens
// when nothing is enforced. Every server's downlink is a queue of its own, so only ranks among one
// server's transfers decide anything. Threads: pure functions of their arguments; any number at
// once.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

#include "core/base/executor.h"
#include "core/base/stop_check.h"
#include "core/model/profile.h"
#include "core/model/scenario.h"
#include "core/model/simulation_options.h"
#include "core/orders/transfer_ranks.h"
#include "core/predict/certainty.h"
#include "core/predict/order_consistency.h"
#include "core/predict/run_memory.h"
#include "core/predict/throughput.h"

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

struct RankedTransfer {
  std::string name;
  int32_t rank = 0;
  int64_t size_bytes = 0;
  int32_t parameter_server = 0;  // of the scenario
  int32_t server_rank = 0;  // the number of that server's that go before it (TicTac, 5.1), those of
                            // equal rank in graph order
};

// The speed-up of an order over one of the baselines, a scenario's own order.
struct OrderSpeedup {
  TransferOrder over = TransferOrder::kGraph;
  double speedup = 0;
  std::optional<Interval> confidence_interval;  // from the ends of both intervals, so of level 2 x
                                                // level - 1 at least; none where that has no end
};

struct OrderResult {
  OrderMethod method = OrderMethod::kGraph;
  std::vector<RankedTransfer>
      transfers;  // downloads, first to last; kSearch: none where it is best to enforce none
  int64_t makespan_ns = 0;  // one step of one worker, every operation at its least recorded time
  double gap = 0;           // makespan over OrderAnswer::order_lower_bound_ns, less 1
  bool is_best = false;     // proved: no order of the downloads makes a shorter step
  double scheduling_efficiency = 0;  // TicTac, Eq. 3; 1 where both bounds coincide
  double straggler_effect =
      0;  // largest share of a synchronous iteration that a worker waited (TicTac, 6.3), in one run
  double steps_per_second = 0;  // at the scenario
  double examples_per_second = 0;
  Interval confidence_interval;        // of examples_per_second
  std::vector<OrderSpeedup> speedups;  // over each of OrderAnswer::baselines
  StepTime synchronous_step_time;      // of the steps that straggler_effect is of
};

// A baseline: the throughput of the scenario in an order that nobody chose.
struct OrderBaseline {
  TransferOrder order = TransferOrder::kGraph;
  double steps_per_second = 0;
  double examples_per_second = 0;
  Interval confidence_interval;  // of examples_per_second
  // Effect as OrderResult's, where nobody enforces an order: with kRandom each worker has its own.
  double straggler_effect = 0;
  StepTime synchronous_step_time;
  OrderSpread spread;  // of the orders that it takes
};

struct OrderAnswer {
  std::vector<OrderResult> orders;
  OrderMethod chosen = OrderMethod::kGraph;
  Settled settled;                       // that its throughput at the scenario is the best
  int64_t upper_makespan_ns = 0;         // Eq. 1
  int64_t lower_makespan_ns = 0;         // Eq. 2
  double speedup_bound = 0;              // Eq. 4
  int64_t order_lower_bound_ns = 0;      // of every order of the downloads; at least Eq. 2
  int32_t operations = 0;                // of the step that is judged, parsing overheads included
  std::vector<OrderBaseline> baselines;  // kRecorded, kGraph, kRandom
  std::vector<std::string>
      unmeasured_transfers;  // that no recorded step shows to have taken any time, in graph order
  std::vector<Warning> warnings;  // of the predictions at the scenario, by order (WarningsByName)
  std::vector<Assumption> assumptions;  // of the same
  SimulationStatistics simulation;
};

// One result a method, as asked for; chosen is the first of those with the shortest makespan.
//
// `search_stop`: what kSearch asks instead of `stop`, for instance to leave time for the
// predictions; where it says TimeBudgetSpent() the best order so far is the answer. REQUIRES: the
// query was resolved for this profile. Cost: for each method its order (core/orders), one step,
// PredictThroughput at the scenario and one synchronous run more; for kSearch, SearchRanks. The
// same for each baseline, and of kRandom kRandomOrders steps. Failure: as PredictThroughput.
absl::StatusOr<OrderAnswer> OptimizeOrder(const Profile& profile, const OrderQuery& query,
                                          StopCheck stop, const Executor& executor = InOrder(),
                                          const KnownRuns& known = {},
                                          std::optional<StopCheck> search_stop = std::nullopt);

}  // namespace stepcast
