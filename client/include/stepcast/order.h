// In which order a job's tensors should travel: request and reply of Client::OptimizeOrder.
//
// Fields, units, defaults and bounds are those of proto/stepcast/v1/order.proto.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "stepcast/prediction.h"
#include "stepcast/scenario.h"
#include "stepcast/simulation_options.h"

namespace stepcast::client {

// How an order of transfers is found.
enum class OrderMethod : int32_t {
  kUnspecified = 0,
  kTic = 1,
  kTac = 2,
  kSearch = 3,
  kReverse = 4,
  kRandom = 5,
  kRecorded = 6,
  kGraph = 7
};

// TIC, TAC, SEARCH, REVERSE, RANDOM, RECORDED, GRAPH; ORDER_METHOD_UNSPECIFIED for any other value.
std::string_view OrderMethodName(OrderMethod method);

struct OptimizeOrderRequest {
  ProfileSource source;
  std::optional<Scenario> scenario;  // where each order's throughput is predicted
  SimulationOptions options;
  std::vector<OrderMethod> methods;  // empty: TIC, TAC, REVERSE, RECORDED and GRAPH
  std::optional<std::chrono::nanoseconds> time_budget;
  bool inference = false;  // the downloads and the forward pass only

  friend bool operator==(const OptimizeOrderRequest&, const OptimizeOrderRequest&) = default;
};

// A transfer and its place.
struct RankedTransfer {
  std::string name;
  int32_t rank = 0;  // lowest first; equal ranks go in order of arrival
  int64_t size_bytes = 0;
  int32_t parameter_server = 0;  // that it comes from
  int32_t server_rank = 0;       // how many transfers from the same server go before it

  friend bool operator==(const RankedTransfer&, const RankedTransfer&) = default;
};

// Throughput in one order over that in another.
struct OrderSpeedup {
  TransferOrder over = TransferOrder::kUnspecified;
  double speedup = 0;
  std::optional<ConfidenceInterval> confidence_interval;

  friend bool operator==(const OrderSpeedup&, const OrderSpeedup&) = default;
};

// What one method found.
struct TransferOrderResult {
  OrderMethod method = OrderMethod::kUnspecified;
  std::vector<RankedTransfer> transfers;  // the downloads, first to last
  int64_t makespan_ns = 0;  // one step of one worker, each operation at its least recorded time
  double scheduling_efficiency = 0;  // 1 is perfect
  double straggler_effect =
      0;  // share of a synchronous iteration that the first worker to finish waits
  double steps_per_second = 0;
  double examples_per_second = 0;
  double speedup_bound = 0;
  ConfidenceInterval confidence_interval;  // of examples_per_second
  double gap = 0;                          // makespan over order_lower_bound_ns, less 1
  bool best = false;                       // proved: no order of the downloads makes a shorter step
  std::vector<OrderSpeedup> speedups;      // over each of the baselines

  friend bool operator==(const TransferOrderResult&, const TransferOrderResult&) = default;
};

// What an order that nobody chose makes at the scenario.
struct OrderBaseline {
  TransferOrder transfer_order = TransferOrder::kUnspecified;
  double steps_per_second = 0;
  double examples_per_second = 0;
  ConfidenceInterval confidence_interval;  // of examples_per_second

  friend bool operator==(const OrderBaseline&, const OrderBaseline&) = default;
};

struct OptimizeOrderResponse {
  std::vector<TransferOrderResult> orders;  // one a method, in the order of the request
  OrderMethod chosen = OrderMethod::kUnspecified;
  int64_t upper_makespan_ns = 0;
  int64_t lower_makespan_ns = 0;
  double speedup_bound = 0;
  int32_t transfers_without_measured_time = 0;
  double graph_steps_per_second = 0;
  double random_steps_per_second = 0;
  SimulationStatistics simulation;
  std::string profile_digest;
  std::string engine_version;
  std::vector<OrderBaseline> baselines;           // RECORDED, GRAPH, RANDOM
  int64_t order_lower_bound_ns = 0;               // no order of the downloads makes a shorter step
  std::vector<std::string> unmeasured_transfers;  // at most 1000 of those counted
  int32_t operations = 0;                         // of the step that orders were judged by
  std::vector<std::string> warnings;              // of the throughputs, each once

  friend bool operator==(const OptimizeOrderResponse&, const OptimizeOrderResponse&) = default;
};

}  // namespace stepcast::client
