#include "core/predict/order.h"

#include <algorithm>
#include <cstddef>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"

#include "core/base/error.h"
#include "core/engine/simulation.h"
#include "core/predict/download_ranks.h"
#include "core/predict/least_step.h"
#include "core/predict/replications.h"
#include "core/predict/request_faults.h"

namespace stepcast {

namespace {

void CheckMethods(const std::vector<OrderMethod>& methods, RequestFaults& faults) {
  for (size_t i = 0; i < methods.size(); ++i) {
    const std::string path = absl::StrCat("methods[", i, "]");
    const auto first = std::find(methods.begin(), methods.end(), methods[i]);
    const auto before = static_cast<size_t>(first - methods.begin());
    if (before < i) faults.Add(path, absl::StrCat("is the same method as methods[", before, "]"));
    if (methods[i] == OrderMethod::kSearch) {
      constexpr char kWhat[] = "SEARCH cannot be done yet";
      faults.AddPart(path, MakeError(absl::StatusCode::kUnimplemented, absl::StrCat(path, ": ", kWhat),
                                     {.reason = "METHOD_UNSUPPORTED", .faults = {{.field = "", .description = kWhat}}}));
    }
  }
}

// Transfers that took no time in any recorded step: the profile cannot have measured them.
int32_t CountUnmeasuredTransfers(const Profile& profile) {
  int32_t count = 0;
  for (size_t op = 0; op < profile.operations().size(); ++op) {
    if (!IsTransfer(profile.operations()[op].resource)) continue;
    const auto took_time = [op](const RecordedStep& step) { return step.end_ns[op] > step.start_ns[op]; };
    if (std::none_of(profile.steps().begin(), profile.steps().end(), took_time)) ++count;
  }
  return count;
}

std::vector<RankedTransfer> ListTransfers(const Profile& profile, const StepGraph& graph, const std::vector<int32_t>& ranks) {
  std::vector<RankedTransfer> transfers;
  for (OpIndex op = 0; op < graph.size(); ++op) {
    const int32_t rank = ranks[static_cast<size_t>(op)];
    if (rank == RunOptions::kUnranked) continue;
    const Operation& operation = profile.operations()[static_cast<size_t>(graph.source(op))];
    transfers.push_back({.name = operation.name, .rank = rank, .size_bytes = operation.size_bytes});
  }
  std::stable_sort(transfers.begin(), transfers.end(), [](const RankedTransfer& a, const RankedTransfer& b) { return a.rank < b.rank; });
  return transfers;
}

// The scenario with the order of a result enforced.
Scenario Enforce(Scenario scenario, const OrderResult& order) {
  // With nothing to download there is nothing to enforce.
  if (order.method == OrderMethod::kGraph || order.transfers.empty()) return scenario;
  scenario.transfer_order = TransferOrder::kExplicit;
  for (const RankedTransfer& transfer : order.transfers) scenario.transfer_priorities[transfer.name] = transfer.rank;
  return scenario;
}

absl::StatusOr<OrderResult> FindOrder(OrderMethod method, const Profile& profile, const OrderQuery& query, const LeastStep& step, StopCheck stop) {
  const absl::StatusOr<std::vector<int32_t>> ranks = DownloadRanks(method, profile, query.scenario, step.graph(), query.options.seed, stop);
  if (!ranks.ok()) return ranks.status();
  const bool enforced = method != OrderMethod::kGraph;
  const absl::StatusOr<Span> makespan = step.Makespan(enforced ? *ranks : std::vector<int32_t>{}, stop);
  if (!makespan.ok()) return makespan.status();
  OrderResult result;
  result.method = method;
  result.transfers = ListTransfers(profile, step.graph(), *ranks);
  result.makespan_ns = ToNanoseconds(*makespan);
  result.scheduling_efficiency = step.bounds().Efficiency(*makespan);
  return result;
}

// Sets straggler_effect of all orders. A single worker waits for nobody.
absl::Status SimulateStragglers(const Profile& profile, const OrderQuery& query, OrderAnswer& answer, StopCheck stop) {
  if (query.scenario.workers == 1) return absl::OkStatus();
  for (OrderResult& order : answer.orders) {
    Scenario synchronous = Enforce(query.scenario, order);
    synchronous.synchronization = Synchronization::kSynchronous;
    absl::StatusOr<std::shared_ptr<const RankedGraph>> graph = RankedGraph::Make(profile, synchronous, stop);
    if (!graph.ok()) return graph.status();
    Replications runs(profile, synchronous, query.options, *std::move(graph));
    const absl::StatusOr<RunSummary> run = runs.Run(0, stop);
    if (!run.ok()) return run.status();
    runs.Add(*run);
    order.straggler_effect = runs.straggler_fraction();
    answer.simulation.simulated_operations += runs.simulated_operations();
  }
  return absl::OkStatus();
}

// Sets the throughput of all orders and of the two that all are compared with.
absl::Status PredictOrders(const Profile& profile, const OrderQuery& query, OrderAnswer& answer, StopCheck stop, const Executor& executor) {
  ThroughputQuery throughput{.scenarios = {query.scenario, query.scenario}, .options = query.options};
  throughput.scenarios[1].transfer_order = TransferOrder::kRandom;
  for (const OrderResult& order : answer.orders) throughput.scenarios.push_back(Enforce(query.scenario, order));
  const absl::StatusOr<ThroughputAnswer> predicted = PredictThroughput(profile, throughput, stop, executor);
  if (!predicted.ok()) return predicted.status();
  answer.graph_steps_per_second = predicted->predictions[0].steps_per_second;
  answer.random_steps_per_second = predicted->predictions[1].steps_per_second;
  for (size_t i = 0; i < answer.orders.size(); ++i) {
    const Prediction& prediction = predicted->predictions[i + 2];
    answer.orders[i].steps_per_second = prediction.steps_per_second;
    answer.orders[i].examples_per_second = prediction.examples_per_second;
    answer.orders[i].confidence_interval = prediction.confidence_interval;
  }
  answer.simulation.Add(predicted->simulation);
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<OrderQuery> ResolveOrder(const Profile& profile, const OrderDraft& draft) {
  RequestFaults faults;
  ScenarioDraft unordered = draft.scenario;
  unordered.transfer_order.reset();
  unordered.transfer_priorities.clear();
  absl::StatusOr<Scenario> scenario = ResolveScenario(profile, unordered);
  faults.AddPart("scenario", scenario.status());
  if (draft.scenario.transfer_order.has_value()) faults.Add("scenario.transfer_order", "must be unset: the methods say which orders to try");
  if (!draft.scenario.transfer_priorities.empty()) {
    faults.Add("scenario.transfer_priorities",
               absl::StrCat(draft.scenario.transfer_priorities.size(), " given, must be empty: the methods say which orders to try"));
  }
  absl::StatusOr<SimulationOptions> options = ResolveOptions(draft.options);
  faults.AddPart("options", options.status());
  CheckMethods(draft.methods, faults);
  if (scenario.ok() && options.ok() && options->start == Start::kStaggered && !scenario->start_offsets_ns.empty()) {
    faults.Add("scenario.start_offsets_ns", "must be empty with start STAGGERED, which draws them");
  }
  if (absl::Status status = std::move(faults).ToStatus("REQUEST_INVALID"); !status.ok()) return status;
  OrderQuery query{.scenario = *std::move(scenario), .options = *options, .methods = draft.methods};
  if (query.methods.empty()) {
    query.methods = {OrderMethod::kTic, OrderMethod::kTac, OrderMethod::kReverse, OrderMethod::kRecorded, OrderMethod::kGraph};
  }
  return query;
}

absl::StatusOr<OrderAnswer> OptimizeOrder(const Profile& profile, const OrderQuery& query, StopCheck stop, const Executor& executor) {
  const absl::StatusOr<LeastStep> step = LeastStep::Build(profile, query.scenario);
  if (!step.ok()) return step.status();
  OrderAnswer answer;
  answer.upper_makespan_ns = ToNanoseconds(step->bounds().upper);
  answer.lower_makespan_ns = ToNanoseconds(step->bounds().lower);
  answer.speedup_bound = step->bounds().SpeedupBound();
  answer.transfers_without_measured_time = CountUnmeasuredTransfers(profile);
  for (const OrderMethod method : query.methods) {
    absl::StatusOr<OrderResult> order = FindOrder(method, profile, query, *step, stop);
    if (!order.ok()) return order.status();
    answer.orders.push_back(*std::move(order));
  }
  const auto shorter = [](const OrderResult& a, const OrderResult& b) { return a.makespan_ns < b.makespan_ns; };
  answer.chosen = std::min_element(answer.orders.begin(), answer.orders.end(), shorter)->method;
  if (absl::Status status = SimulateStragglers(profile, query, answer, stop); !status.ok()) return status;
  if (absl::Status status = PredictOrders(profile, query, answer, stop, executor); !status.ok()) return status;
  return answer;
}

}  // namespace stepcast
