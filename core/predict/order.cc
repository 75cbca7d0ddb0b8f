#include "core/predict/order.h"

#include <algorithm>
#include <cstddef>
#include <memory>
#include <string>
#include <utility>
#include <variant>

#include "absl/strings/str_cat.h"

#include "core/communication/parameter_servers.h"
#include "core/engine/simulation.h"
#include "core/orders/forward_pass.h"
#include "core/orders/least_step.h"
#include "core/orders/order_search.h"
#include "core/orders/transfer_ranks.h"
#include "core/predict/point_set.h"
#include "core/predict/replications.h"
#include "core/predict/request_faults.h"
#include "core/predict/throughput.h"

namespace stepcast {

namespace {

void CheckMethods(const std::vector<OrderMethod>& methods, bool recorded_transfers,
                  RequestFaults& faults) {
  for (size_t i = 0; i < methods.size(); ++i) {
    faults.AddIf(methods[i] == OrderMethod::kRecorded && !recorded_transfers,
                 absl::StrCat("methods[", i, "]"),
                 "RECORDED, and the profile is of workers that meet in collectives: no transfer "
                 "was recorded");
    const auto first = std::find(methods.begin(), methods.end(), methods[i]);
    const auto before = static_cast<size_t>(first - methods.begin());
    faults.AddIf(before < i, absl::StrCat("methods[", i, "]"), "is the same method as methods[",
                 before, "]");
  }
}

}  // namespace

absl::StatusOr<OrderQuery> ResolveOrder(const Profile& profile, const OrderDraft& draft) {
  RequestFaults faults;
  ScenarioDraft unordered = draft.scenario;
  // Every order that is simulated is one of the methods' or a baseline; none is assumed.
  if (auto* servers = std::get_if<ParameterServersDraft>(&unordered.communication)) {
    servers->transfer_order = TransferOrder::kGraph;
    servers->transfer_priorities.clear();
  } else if (std::holds_alternative<std::monostate>(unordered.communication) &&
             !profile.has_collectives()) {
    unordered.communication = ParameterServersDraft{.transfer_order = TransferOrder::kGraph};
  }
  absl::StatusOr<Scenario> scenario = ResolveScenario(profile, unordered);
  faults.AddPart("scenario", scenario.status());
  const bool has_servers = scenario.ok() && scenario->server_count() > 0;
  faults.AddIf(scenario.ok() && !has_servers, "scenario",
               "orders are of transfers between workers and parameter servers; collectives run in "
               "graph order, and what helps them is how gradients are grouped (stepcast tune, "
               "OptimizeCommunication)");
  if (draft.scenario.servers().transfer_order.has_value())
    faults.Add("scenario.parameter_servers.transfer_order",
               "must be unset: the methods say which orders to try");
  faults.AddIf(!draft.scenario.servers().transfer_priorities.empty(),
               "scenario.parameter_servers.transfer_priorities",
               draft.scenario.servers().transfer_priorities.size(),
               " given, must be empty: the methods say which orders to try");
  absl::StatusOr<SimulationOptions> options = ResolveOptions(draft.options);
  faults.AddPart("options", options.status());
  CheckMethods(draft.methods, !profile.has_collectives(), faults);
  faults.AddIf(scenario.ok() && draft.options.start == Start::kStaggered &&
                   !scenario->start_offsets_ns.empty(),
               "scenario.start_offsets_ns", "must be empty with start STAGGERED, which draws them");
  absl::StatusOr<Profile> forward_pass = draft.inference ? ForwardPass(profile) : profile;
  faults.AddPart("inference", forward_pass.status());
  if (absl::Status status = std::move(faults).ToStatus("REQUEST_INVALID"); !status.ok())
    return status;
  OrderQuery query{.scenario = *std::move(scenario),
                   .options = *options,
                   .methods = draft.methods,
                   .forward_pass = std::nullopt};
  if (draft.inference) query.forward_pass = *std::move(forward_pass);
  if (query.methods.empty()) {
    query.methods = {OrderMethod::kTic, OrderMethod::kTac, OrderMethod::kReverse,
                     OrderMethod::kGraph};
    if (!profile.has_collectives())
      query.methods.insert(query.methods.end() - 1, OrderMethod::kRecorded);
  }
  return query;
}

namespace {

// Orders that all are compared with. Of a job that was recorded without transfers none was
// recorded.
std::vector<TransferOrder> BaselinesOf(const Profile& profile) {
  if (profile.has_collectives()) return {TransferOrder::kGraph, TransferOrder::kRandom};
  return {TransferOrder::kRecorded, TransferOrder::kGraph, TransferOrder::kRandom};
}

// Transfers that took no time in any recorded step: the profile cannot have measured them.
std::vector<std::string> UnmeasuredTransfers(const Profile& profile) {
  std::vector<std::string> names;
  for (size_t op = 0; op < profile.operations().size(); ++op) {
    if (!IsTransfer(profile.operations()[op].resource)) continue;
    const auto took_time = [op](const RecordedStep& step) {
      return step.end_ns[op] > step.start_ns[op];
    };
    if (std::none_of(profile.steps().begin(), profile.steps().end(), took_time))
      names.push_back(profile.operations()[op].name);
  }
  return names;
}

std::vector<RankedTransfer> ListTransfers(const Profile& profile, const Program& graph,
                                          const std::vector<int32_t>& ranks) {
  std::vector<RankedTransfer> transfers;
  for (OpIndex op = 0; op < static_cast<OpIndex>(ranks.size()); ++op) {
    const int32_t rank = ranks[static_cast<size_t>(op)];
    if (rank == Ranking::kUnranked) continue;
    const Operation& operation = profile.operations()[static_cast<size_t>(graph.source(op))];
    transfers.push_back({.name = operation.name,
                         .rank = rank,
                         .size_bytes = operation.size_bytes,
                         .parameter_server = graph.lanes()[graph.lane(op)].index});
  }
  std::stable_sort(
      transfers.begin(), transfers.end(),
      [](const RankedTransfer& a, const RankedTransfer& b) { return a.rank < b.rank; });
  std::vector<int32_t> before(Index(ServerLanes::Of(graph).servers));
  for (RankedTransfer& transfer : transfers)
    transfer.server_rank = before[static_cast<size_t>(transfer.parameter_server)]++;
  return transfers;
}

const char* NameOf(TransferOrder order) {
  if (order == TransferOrder::kRecorded) return "recorded order";
  return order == TransferOrder::kGraph ? "graph order" : "random order";
}

const char* NameOf(OrderMethod method) {
  switch (method) {
    case OrderMethod::kTic:
      return "TIC";
    case OrderMethod::kTac:
      return "TAC";
    case OrderMethod::kSearch:
      return "SEARCH";
    case OrderMethod::kReverse:
      return "REVERSE";
    case OrderMethod::kRandom:
      return "RANDOM";
    case OrderMethod::kRecorded:
      return "RECORDED";
    case OrderMethod::kGraph:
      return "GRAPH";
  }
  return "";
}

// The scenario with the order of a result enforced.
Scenario Enforce(Scenario scenario, const OrderResult& order) {
  // With nothing to download there is nothing to enforce.
  if (order.method == OrderMethod::kGraph || order.transfers.empty()) return scenario;
  scenario.servers().transfer_order = TransferOrder::kExplicit;
  for (const RankedTransfer& transfer : order.transfers)
    scenario.servers().transfer_priorities[transfer.name] = transfer.rank;
  return scenario;
}

class OrderOptimizer {
 public:
  OrderOptimizer(const Profile& profile, const OrderQuery& query, const LeastStep& step,
                 const KnownRuns& known, StopCheck stop)
      : profile_(profile),
        query_(query),
        step_(step),
        known_(known),
        stop_(stop),
        baselines_(BaselinesOf(profile)) {}

  absl::StatusOr<OrderAnswer> Run(const Executor& executor, StopCheck search_stop) && {
    const absl::StatusOr<Span> bound = LeastMakespanOf(step_, stop_);
    if (!bound.ok()) return bound.status();
    lower_bound_ = *bound;
    answer_.upper_makespan_ns = ToNanoseconds(step_.bounds().upper);
    answer_.lower_makespan_ns = ToNanoseconds(step_.bounds().lower);
    answer_.speedup_bound = step_.bounds().SpeedupBound();
    answer_.order_lower_bound_ns = ToNanoseconds(lower_bound_);
    answer_.operations = step_.graph().size();
    answer_.unmeasured_transfers = UnmeasuredTransfers(profile_);
    for (const OrderMethod method : query_.methods) {
      if (absl::Status status = AddOrder(method, search_stop); !status.ok()) return status;
    }
    const auto shorter = [](const OrderResult& a, const OrderResult& b) {
      return a.makespan_ns < b.makespan_ns;
    };
    answer_.chosen =
        std::min_element(answer_.orders.begin(), answer_.orders.end(), shorter)->method;
    for (const TransferOrder order : baselines_) answer_.baselines.push_back({.order = order});
    if (absl::Status status = CompareConsistency(); !status.ok()) return status;
    if (absl::Status status = PredictOrders(executor); !status.ok()) return status;
    return std::move(answer_);
  }

 private:
  absl::StatusOr<FoundRanks> FindRanks(OrderMethod method, StopCheck search_stop) const {
    if (method == OrderMethod::kSearch) {
      return SearchRanks(profile_, query_.scenario, step_,
                         {.lower_bound = lower_bound_,
                          .seed = query_.options.seed,
                          .time_budget_seconds = query_.options.time_budget_seconds},
                         stop_, search_stop);
    }
    absl::StatusOr<std::vector<int32_t>> ranks =
        DownloadRanks(method, profile_, query_.scenario, step_.graph(), query_.options.seed, stop_);
    if (!ranks.ok()) return ranks.status();
    const bool enforced = method != OrderMethod::kGraph;
    const absl::StatusOr<Span> makespan =
        step_.Makespan(enforced ? *ranks : std::vector<int32_t>{}, stop_);
    if (!makespan.ok()) return makespan.status();
    return FoundRanks{
        .ranks = *std::move(ranks), .makespan = *makespan, .is_best = *makespan == lower_bound_};
  }

  absl::Status AddOrder(OrderMethod method, StopCheck search_stop) {
    const absl::StatusOr<FoundRanks> found = FindRanks(method, search_stop);
    if (!found.ok()) return found.status();
    if (absl::Status status = stop_(); !status.ok()) return status;
    OrderResult& result = answer_.orders.emplace_back();
    result.method = method;
    result.transfers = ListTransfers(profile_, step_.graph(), found->ranks);
    result.makespan_ns = ToNanoseconds(found->makespan);
    if (lower_bound_ > Span{})
      result.gap = ToSeconds(found->makespan - lower_bound_) / ToSeconds(lower_bound_);
    result.is_best = found->is_best;
    result.scheduling_efficiency = step_.bounds().Efficiency(found->makespan);
    return absl::OkStatus();
  }

  // Sets what workers wait for each other and how steps spread, of all orders and baselines, and of
  // the latter how orders do.
  absl::Status CompareConsistency() {
    for (OrderResult& order : answer_.orders) {
      if (absl::Status status = SimulateSynchronous(Enforce(query_.scenario, order), order);
          !status.ok())
        return status;
    }
    for (OrderBaseline& baseline : answer_.baselines) {
      Scenario scenario = query_.scenario;
      scenario.servers().transfer_order = baseline.order;
      if (absl::Status status = SimulateSynchronous(scenario, baseline); !status.ok())
        return status;
      const absl::StatusOr<OrderSpread> spread = SpreadOfOrders(
          baseline.order, profile_, query_.scenario, step_, query_.options.seed, stop_);
      if (!spread.ok()) return spread.status();
      baseline.spread = *spread;
    }
    return absl::OkStatus();
  }

  template <typename Result>
  absl::Status SimulateSynchronous(Scenario scenario, Result& result) {
    // The largest of as many steps as ever: fewer would find less.
    SimulationOptions options = query_.options;
    options.automatic_steps = false;
    scenario.servers().synchronization = Synchronization::kSynchronous;
    if (absl::Status status = stop_(); !status.ok()) return status;
    absl::StatusOr<std::shared_ptr<const RankedGraph>> graph =
        RankedGraph::Make(profile_, scenario, stop_);
    if (!graph.ok()) return graph.status();
    if (absl::Status status = stop_(); !status.ok()) return status;
    const absl::StatusOr<RunSummary> run =
        Replications(profile_, scenario, options, *std::move(graph)).Run(0, stop_);
    if (!run.ok()) return run.status();
    // A single worker waits for nobody.
    result.straggler_effect = scenario.workers > 1 ? run->straggler_fraction : 0;
    result.synchronous_step_time = StepTimeOf(run->step_times);
    answer_.simulation.simulated_operations += run->simulated_operations;
    return absl::OkStatus();
  }

  // Sets the throughput of all orders and of those that all are compared with.
  // The baselines come first.
  absl::Status PredictOrders(const Executor& executor) {
    PointSet points(profile_, query_.options, known_);
    std::vector<Scenario> scenarios;
    for (const TransferOrder order : baselines_)
      scenarios.emplace_back(query_.scenario).servers().transfer_order = order;
    for (const OrderResult& order : answer_.orders)
      scenarios.push_back(Enforce(query_.scenario, order));
    std::vector<size_t> indices;
    for (const Scenario& scenario : scenarios) {
      const absl::StatusOr<size_t> index = points.Add(scenario, stop_);
      if (!index.ok()) return index.status();
      indices.push_back(*index);
    }
    if (absl::Status status = points.RunAll(stop_, executor); !status.ok()) return status;
    std::vector<Prediction> predictions;
    for (size_t i = 0; i < indices.size(); ++i) {
      predictions.push_back(points.Summarize(indices[i]));
      // An equal scenario's may have been assumed where this one's were asked for.
      predictions.back().scenario.assumed = scenarios[i].assumed;
    }
    AddWarnings(predictions);
    auto prediction = predictions.begin();
    const auto take = [&](auto& result) {
      result.steps_per_second = prediction->steps_per_second;
      result.examples_per_second = prediction->examples_per_second;
      result.confidence_interval = prediction->simulation_interval;
      ++prediction;
    };
    for (OrderBaseline& baseline : answer_.baselines) take(baseline);
    std::vector<Alternative> alternatives;
    size_t chosen = 0;
    for (OrderResult& order : answer_.orders) {
      if (order.method == answer_.chosen) chosen = alternatives.size();
      const size_t point = indices[alternatives.size() + answer_.baselines.size()];
      alternatives.push_back(AlternativeOf(*prediction, points.RunsOf(point)));
      take(order);
      for (size_t i = 0; i < answer_.baselines.size(); ++i) {
        order.speedups.push_back(SpeedupOver(answer_.baselines[i], order));
        // An order is no faster than one that makes the same of every run, however these scatter.
        std::optional<Interval>& interval = order.speedups.back().confidence_interval;
        if (interval.has_value() && points.RunsOf(indices[i]) == points.RunsOf(point))
          interval->lower = interval->upper = 1;
      }
    }
    answer_.settled = HowSettled(alternatives, chosen);
    answer_.simulation.Add(points.Statistics());
    return absl::OkStatus();
  }

  void AddWarnings(const std::vector<Prediction>& predictions) {
    std::vector<std::string> names;
    for (const TransferOrder order : baselines_) names.push_back(NameOf(order));
    for (const OrderResult& order : answer_.orders) names.push_back(NameOf(order.method));
    std::vector<std::vector<Warning>> warnings;
    warnings.reserve(predictions.size());
    for (const Prediction& prediction : predictions) {
      warnings.push_back(prediction.warnings);
      AddAssumptions(prediction.scenario, answer_.assumptions);
    }
    answer_.warnings = WarningsByName(names, warnings);
  }

  static OrderSpeedup SpeedupOver(const OrderBaseline& baseline, const OrderResult& order) {
    OrderSpeedup result{.over = baseline.order,
                        .speedup = order.steps_per_second / baseline.steps_per_second,
                        .confidence_interval = std::nullopt};
    const Interval& own = order.confidence_interval;
    const Interval& other = baseline.confidence_interval;
    if (other.lower <= 0) return result;
    // By Bonferroni's inequality both hold with at least this probability.
    result.confidence_interval = Interval{.lower = own.lower / other.upper,
                                          .upper = own.upper / other.lower,
                                          .level = std::max(0.0, own.level + other.level - 1)};
    return result;
  }

  const Profile& profile_;
  const OrderQuery& query_;
  const LeastStep& step_;
  const KnownRuns& known_;
  const StopCheck stop_;
  const std::vector<TransferOrder> baselines_;
  Span lower_bound_;
  OrderAnswer answer_;
};

}  // namespace

absl::StatusOr<OrderAnswer> OptimizeOrder(const Profile& profile, const OrderQuery& query,
                                          StopCheck stop, const Executor& executor,
                                          const KnownRuns& known,
                                          std::optional<StopCheck> search_stop) {
  const Profile& judged = query.forward_pass.has_value() ? *query.forward_pass : profile;
  const absl::StatusOr<LeastStep> step = LeastStep::Build(judged, query.scenario, stop);
  if (!step.ok()) return step.status();
  KnownRuns of_judged = known;
  if (query.forward_pass.has_value()) of_judged.profile_digest += " forward pass";
  return OrderOptimizer(judged, query, *step, of_judged, stop)
      .Run(executor, search_stop.value_or(stop));
}

}  // namespace stepcast
