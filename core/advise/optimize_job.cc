#include "core/advise/optimize_job.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <unordered_map>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

#include "core/advise/baselines.h"
#include "core/advise/method_trials.h"
#include "core/base/error.h"
#include "core/base/index.h"
#include "core/model/all_reduce.h"
#include "core/predict/point_set.h"

namespace stepcast {

namespace {

// A strategy that is faster by less is as fast.
constexpr double kMore = 1 + 1e-9;

class StrategyAdviser {
 public:
  // `known`: of the profile, which is asked about as it is.
  StrategyAdviser(const Profile& profile, const StrategyQuery& query, StopCheck stop,
                  const Executor& executor, const KnownRuns& known)
      : asked_(profile),
        recorded_(query.job.has_value() ? *query.job : profile),
        query_(query),
        stop_(stop),
        executor_(executor),
        known_(known) {}

  absl::StatusOr<StrategyAnswer> Advise() && {
    answer_.shortcuts = query_.shortcuts;
    if (absl::Status status = SimulateAsRecorded(); !status.ok()) return status;
    absl::StatusOr<MemoryPlan> plan = ChooseMemoryPass(
        recorded_, query_, stop_, [this](const Profile& job) { return SimulateShort(job); },
        answer_.memory);
    if (!plan.ok()) return plan.status();
    plan_.emplace(*std::move(plan));
    if (absl::Status status = FindStrategy(); !status.ok()) return status;
    // The operations of a memory pass say what they keep without it.
    if (plan_->pass != MemoryPass::kNone && answer_.prediction.memory.has_value())
      answer_.prediction.memory->kept = plan_->memory.output_bytes;
    answer_.simulation.Add(base_statistics_);
    answer_.settled = HowSettledIsIt();
    Explain(query_, *TensorRoute::Of(recorded_, query_.scenario), plan_->pass, answer_);
    return std::move(answer_);
  }

 private:
  // Beside the job as recorded, where that fits into memory. What is advised was compared last.
  Settled HowSettledIsIt() const {
    std::vector<Alternative> all = alternatives_;
    const bool fits = plan_->pass == MemoryPass::kNone;
    if (fits) all.push_back(AlternativeOf(answer_.as_recorded, base_runs_));
    if (all.empty()) return {};
    return HowSettled(all, all.size() - (fits && !answer_.keeps_as_recorded ? 2 : 1), kLeastGain);
  }

  absl::Status SimulateAsRecorded() {
    PointSet points(asked_, query_.options, known_);
    const absl::StatusOr<size_t> index =
        points.AddAlone(query_.asked.has_value() ? *query_.asked : query_.scenario, stop_);
    if (!index.ok()) return index.status();
    if (absl::Status status = points.RunAll(stop_, executor_); !status.ok()) return status;
    answer_.as_recorded = points.Summarize(*index);
    base_runs_ = points.RunsOf(*index);
    base_statistics_ = points.Statistics();
    return absl::OkStatus();
  }

  std::optional<ShortRuns> SimulateShort(const Profile& profile) {
    PointSet points(profile, query_.options, {.counter = known_.counter});
    const absl::StatusOr<size_t> index = points.TryAlone(query_.scenario, stop_);
    if (!index.ok() || !points.RunAll(stop_, executor_).ok()) return std::nullopt;
    answer_.simulation.Add(points.Statistics());
    return ShortRuns{.prediction = points.Summarize(*index), .runs = points.RunsOf(*index)};
  }

  // The defaults of all-reduce jobs, each in full.
  absl::StatusOr<std::vector<NamedBaseline>> Baselines(const Profile& job,
                                                       const FusionCosts& costs) {
    std::vector<NamedBaseline> baselines;
    if (!query_.baselines.has_value()) return baselines;
    const KnownRuns known =
        plan_->pass == MemoryPass::kNone ? known_ : KnownRuns{.counter = known_.counter};
    absl::StatusOr<TuningAnswer> tuned =
        OptimizeCommunication(job, *query_.baselines, stop_, executor_, known);
    if (!tuned.ok()) return tuned.status();
    answer_.simulation.Add(tuned->simulation);
    answer_.warnings = std::move(tuned->warnings);
    if (!costs.known() && plan_->pass == MemoryPass::kNone)
      answer_.lower_bound_seconds = tuned->tunings.front().lower_bound_seconds;
    bool has_cycles = false;
    for (TunedStrategy& strategy : tuned->tunings.front().strategies) {
      has_cycles = has_cycles || strategy.method == TuningMethod::kHorovod;
      const char* const name = NameOf(strategy.method);
      baselines.push_back({name, std::move(strategy)});
    }
    if (!has_cycles) return baselines;
    absl::StatusOr<std::vector<NamedBaseline>> defaults =
        HorovodDefaults(job, *query_.baselines, stop_, executor_, known, answer_.simulation);
    if (!defaults.ok()) return defaults.status();
    for (NamedBaseline& each : *defaults) baselines.push_back(std::move(each));
    return baselines;
  }

  absl::Status FindStrategy() {
    const Profile& job = plan_->profile;
    std::vector<FusedCost> table = query_.fused_costs;
    RenameCosts(table);
    const FusionCosts costs(job, table, query_.fused_share);
    std::vector<BeginStrategy> starts;
    if (!query_.baselines.has_value()) {
      starts = StartsOfServers(job, query_);
      answer_.warnings = answer_.as_recorded.warnings;
    }
    std::vector<NamedBaseline> baselines;
    absl::StatusOr<std::vector<NamedBaseline>> tuned = Baselines(job, costs);
    if (tuned.ok()) {
      baselines = *std::move(tuned);
    } else if (!IsTimeBudgetSpent(tuned.status())) {
      return tuned.status();
    }
    for (const NamedBaseline& baseline : baselines) {
      if (std::optional<Strategy> start = FromGroups(job, baseline.strategy.groups);
          start.has_value())
        starts.push_back({.strategy = *std::move(start), .is_default = true});
    }
    if (std::optional<Strategy> all = FuseAll(job, query_, costs); all.has_value()) {
      starts.push_back({.strategy = *std::move(all), .is_default = true, .name = "XLA_FUSE_ALL"});
    }
    std::vector<Strategy> begins;
    begins.reserve(starts.size());
    for (const BeginStrategy& start : starts) begins.push_back(start.strategy);
    Replays replays(job, query_, costs, stop_, executor_, known_.counter);
    const absl::StatusOr<FoundStrategy> found =
        SearchStrategies(job, query_, costs, begins, replays, stop_);
    answer_.search = replays.statistics();
    if (!found.ok() && !IsTimeBudgetSpent(found.status())) return found.status();
    answer_.keeps_as_recorded = true;
    if (found.ok()) {
      if (absl::Status status = Judge(*found, baselines, starts, costs, replays); !status.ok())
        return status;
    }
    answer_.simulation.Add(replays.simulation());
    if (answer_.keeps_as_recorded) {
      if (plan_->pass != MemoryPass::kNone) return TimeBudgetSpent();
      answer_.prediction = answer_.as_recorded;
      answer_.gain = GainOverBase(answer_.prediction, base_runs_);
    }
    return absl::OkStatus();
  }

  // Costs are of the recorded profile's operations: a pass keeps their names. Of half a batch they
  // take the share that the operations take together.
  void RenameCosts(std::vector<FusedCost>& table) const {
    if (plan_->pass == MemoryPass::kNone) return;
    const bool is_half = plan_->pass == MemoryPass::kGradientAccumulation;
    const FusionCosts apart(recorded_, {}, std::nullopt);
    std::unordered_map<std::string, int32_t> index;
    const std::vector<Operation>& operations = plan_->profile.operations();
    for (size_t i = 0; i < operations.size(); ++i)
      index.emplace(operations[i].name, static_cast<int32_t>(i));
    for (FusedCost& entry : table) {
      double whole = 0;
      double half = 0;
      for (int32_t& operation : entry.operations) {
        whole += apart.SecondsOf(operation);
        half += apart.SecondsOf(operation) * query_.half_batch_shares[Index(operation)];
        operation = index.at(recorded_.operations()[Index(operation)].name);
      }
      if (is_half && whole > 0) entry.seconds *= half / whole;
      std::sort(entry.operations.begin(), entry.operations.end());
    }
  }

  // From runs with the same random choices: with a pass of the job that has it.
  Gain GainOverBase(const Prediction& prediction, const std::vector<double>& runs) const {
    return GainOf(runs, base_runs_, prediction.simulation_interval,
                  answer_.as_recorded.simulation_interval, query_.options.confidence_level);
  }

  void Compare(std::string name, const Prediction& prediction, const std::vector<double>& runs,
               bool rests_on_share = false) {
    alternatives_.push_back(AlternativeOf(prediction, runs));
    answer_.compared.push_back({.name = std::move(name),
                                .step_seconds = prediction.step_time.mean,
                                .examples_per_second = prediction.examples_per_second,
                                .gain = GainOverBase(prediction, runs),
                                .rests_on_share = rests_on_share});
  }

  void CompareFull(std::string name, const Replays::Full& full, bool rests_on_share) {
    Compare(std::move(name), full.prediction, full.runs, rests_on_share);
  }

  static bool RestsOnShare(const Strategy& strategy, const FusionCosts& costs) {
    return std::any_of(strategy.fused.begin(), strategy.fused.end(),
                       [&](const auto& group) { return !costs.InTable(group); });
  }

  // A strategy that was simulated in full.
  struct Judged {
    Strategy strategy;
    Replays::Full full;
    bool is_chains_best = false;

    double steps_per_second() const { return full.prediction.steps_per_second; }
  };
  // True for what ends one candidate and not the answer.
  static bool IsLeftOut(const absl::Status& status) {
    return IsTimeBudgetSpent(status) || absl::IsInvalidArgument(status);
  }

  // The strategy that was found is judged in full, and so is no fusion; whatever is faster in full
  // than it is taken instead.
  absl::Status Judge(const FoundStrategy& found, const std::vector<NamedBaseline>& baselines,
                     const std::vector<BeginStrategy>& starts, const FusionCosts& costs,
                     Replays& replays) {
    absl::StatusOr<Replays::Full> full = replays.InFull(found.strategy);
    // A job of which nothing could be replayed stays as it is.
    if (!full.ok()) return IsLeftOut(full.status()) ? absl::OkStatus() : full.status();
    Judged best{found.strategy, *std::move(full), found.is_chains_best};
    for (const auto& [name, baseline] : baselines)
      Compare(name, baseline.prediction, baseline.runs);
    // The job as recorded is one of the baselines. Where there are none, every tensor goes by
    // itself as it was recorded, unless parts are asked for, in whose place a strategy has its own.
    const bool has_parts = query_.scenario.partition_bytes() > 0;
    if (!query_.baselines.has_value() && has_parts && plan_->pass == MemoryPass::kNone)
      Compare("AS_RECORDED", answer_.as_recorded, base_runs_);
    const Strategy alone = NothingFused(plan_->profile);
    const absl::StatusOr<Replays::Full> unfused = replays.InFull(alone);
    if (unfused.ok()) {
      const bool is_recorded = !query_.baselines.has_value() && !has_parts;
      CompareFull(is_recorded ? "AS_RECORDED" : "NO_FUSION", *unfused, false);
    } else if (!IsLeftOut(unfused.status())) {
      return unfused.status();
    }
    std::vector<BeginStrategy> others;
    for (const BeginStrategy& start : starts) {
      if (start.is_default) others.push_back(start);
    }
    others.push_back({.strategy = alone});
    if (absl::Status status = JudgeOthers(others, costs, replays, best); !status.ok())
      return status;
    const TunedStrategy* faster = nullptr;
    double most = best.steps_per_second();
    for (const auto& [name, baseline] : baselines) {
      if (baseline.prediction.steps_per_second <= most * kMore) continue;
      most = baseline.prediction.steps_per_second;
      faster = &baseline;
    }
    faster != nullptr ? TakeBaseline(*faster) : Take(std::move(best), starts, costs);
    return absl::OkStatus();
  }

  // Compares those that have names, and keeps the fastest.
  absl::Status JudgeOthers(const std::vector<BeginStrategy>& others, const FusionCosts& costs,
                           Replays& replays, Judged& best) {
    for (const BeginStrategy& other : others) {
      if (other.strategy == best.strategy) {
        if (!other.name.empty())
          CompareFull(other.name, best.full, RestsOnShare(best.strategy, costs));
        continue;
      }
      absl::StatusOr<Replays::Full> judged = replays.InFull(other.strategy);
      if (!judged.ok()) {
        if (IsTimeBudgetSpent(judged.status())) break;
        if (absl::IsInvalidArgument(judged.status())) continue;
        return judged.status();
      }
      if (!other.name.empty())
        CompareFull(other.name, *judged, RestsOnShare(other.strategy, costs));
      if (judged->prediction.steps_per_second > best.steps_per_second())
        best = {other.strategy, *std::move(judged), false};
    }
    return absl::OkStatus();
  }

  void Take(Judged best, const std::vector<BeginStrategy>& starts, const FusionCosts& costs) {
    CompareFull("FOUND", best.full, RestsOnShare(best.strategy, costs));
    const Gain gain = answer_.compared.back().gain;
    // A strategy that makes no difference need not be written, unless baselines are compared.
    const bool is_none = !query_.baselines.has_value() && gain.is_none;
    if (plan_->pass == MemoryPass::kNone &&
        (is_none || best.steps_per_second() <= answer_.as_recorded.steps_per_second))
      return;
    answer_.keeps_as_recorded = false;
    answer_.prediction = std::move(best.full.prediction);
    answer_.gain = gain;
    answer_.rests_on_share = answer_.compared.back().rests_on_share;
    answer_.is_chains_best = best.is_chains_best;
    for (const BeginStrategy& start : starts) {
      if (start.strategy == best.strategy) answer_.setting = start.setting;
    }
    if (!query_.baselines.has_value()) answer_.warnings = answer_.prediction.warnings;
    Describe(best.strategy, costs);
  }

  // A default, which nothing that was found is as fast as: Horovod's cycles, which are no groups,
  // or groups whose collectives take a little longer where they are written into the profile.
  void TakeBaseline(const TunedStrategy& baseline) {
    Compare("FOUND", baseline.prediction, baseline.runs);
    answer_.gain = answer_.compared.back().gain;
    if (plan_->pass == MemoryPass::kNone &&
        baseline.prediction.steps_per_second <= answer_.as_recorded.steps_per_second)
      return;
    answer_.keeps_as_recorded = false;
    answer_.prediction = baseline.prediction;
    answer_.setting = baseline.setting;
    for (const TunedGroup& group : baseline.groups) {
      answer_.tensors.push_back(
          {.operations = group.operations, .size_bytes = group.size_bytes, .partitions = 1});
    }
  }

  void Describe(const Strategy& strategy, const FusionCosts& costs) {
    answer_.by_layer = strategy.by_layer;
    const std::vector<Operation>& operations = plan_->profile.operations();
    for (const std::vector<int32_t>& group : strategy.fused) {
      NamedFusedOperations& fused = answer_.fused.emplace_back();
      for (const int32_t operation : group) {
        fused.operations.push_back(operations[Index(operation)].name);
        fused.seconds_apart += costs.SecondsOf(operation);
      }
      fused.seconds = costs.SecondsOf(group).value_or(fused.seconds_apart);
      fused.is_estimate = !costs.InTable(group);
    }
    for (const FusedTensors& group : strategy.tensors) {
      NamedTensors& tensors = answer_.tensors.emplace_back();
      for (const int32_t gradient : group.gradients) {
        tensors.operations.push_back(operations[Index(gradient)].name);
        tensors.size_bytes += operations[Index(gradient)].size_bytes;
      }
      tensors.partitions = group.partitions;
    }
    const bool joins = std::ranges::any_of(
        strategy.tensors, [](const FusedTensors& group) { return group.gradients.size() > 1; });
    if (!joins || WhyNoOtherBuckets(asked_).empty()) return;
    answer_.warnings.push_back(
        {.reason = Warning::Reason::kGradientsNotKnown,
         .message = "what goes together are whole recorded buckets, of whose gradients the "
                    "recording says nothing (record_shapes=True would): a larger bucket_cap_mb "
                    "comes near to it"});
  }

  const Profile& asked_;
  const Profile& recorded_;  // as a job that strategies are written for
  const StrategyQuery& query_;
  const StopCheck stop_;
  const Executor& executor_;
  const KnownRuns known_;
  StrategyAnswer answer_;
  std::optional<MemoryPlan> plan_;
  std::vector<double> base_runs_;
  std::vector<Alternative> alternatives_;  // what was compared, in its order
  SimulationStatistics base_statistics_;
};

}  // namespace

absl::StatusOr<StrategyAnswer> OptimizeJob(const Profile& profile, const StrategyQuery& query,
                                           StopCheck stop, const Executor& executor,
                                           const KnownRuns& known) {
  return StrategyAdviser(profile, query, stop, executor, known).Advise();
}

}  // namespace stepcast
