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
#include "core/predict/point_set.h"

namespace stepcast {

namespace {

constexpr double kGigabyte = 1e9;
// A strategy that is faster by less is as fast.
constexpr double kMore = 1 + 1e-9;
// BytePS's own bytes of a part (BYTEPS_PARTITION_BYTES), and others that are tried.
constexpr int64_t kBytePsBytes = 4'096'000;
constexpr int64_t kPartBytes[] = {1'024'000, 2'048'000, 8'192'000, 16'384'000};
// Bytes up to which neighbours are tried together at parameter servers.
constexpr int64_t kTogetherBytes[] = {1 << 16, 1 << 18, 1 << 20, 1 << 22, 1 << 25};
// Operations of a job of parts that is tried, at most.
constexpr int64_t kMostParts = 4000;

// A strategy to begin with.
struct BeginStrategy {
  Strategy strategy;
  bool is_default = false;   // somebody's: what is found must be as fast in full, too
  std::string name = {};     // in the comparison; empty: it is in none
  std::string setting = {};  // as a user writes it
};

class StrategyAdviser {
 public:
  StrategyAdviser(const Profile& profile, const StrategyQuery& query, StopCheck stop,
                  const Executor& executor, const KnownRuns& known)
      : recorded_(profile), query_(query), stop_(stop), executor_(executor), known_(known) {}

  absl::StatusOr<StrategyAnswer> Advise() && {
    answer_.shortcuts = query_.shortcuts;
    if (absl::Status status = SimulateAsRecorded(); !status.ok()) return status;
    absl::StatusOr<MemoryPlan> plan = ChooseMemoryPass(
        recorded_, query_, stop_, [this](const Profile& job) { return SimulateShort(job); },
        answer_.memory);
    if (!plan.ok()) return plan.status();
    plan_.emplace(*std::move(plan));
    if (absl::Status status = FindStrategy(); !status.ok()) return status;
    answer_.simulation.Add(base_statistics_);
    answer_.settled = HowSettledIsIt();
    Explain();
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
    PointSet points(recorded_, query_.options, known_);
    const absl::StatusOr<size_t> index = points.AddAlone(query_.scenario, stop_);
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

  // The groups of a tuned strategy, as a strategy of the planned job.
  std::optional<Strategy> FromGroups(const std::vector<TunedGroup>& groups) const {
    std::unordered_map<std::string, int32_t> index;
    const std::vector<Operation>& operations = plan_->profile.operations();
    for (size_t i = 0; i < operations.size(); ++i)
      index.emplace(operations[i].name, static_cast<int32_t>(i));
    Strategy strategy;
    std::vector<int32_t> all;
    for (const TunedGroup& group : groups) {
      FusedTensors& tensors = strategy.tensors.emplace_back();
      for (const std::string& name : group.operations) {
        const auto found = index.find(name);
        if (found == index.end()) return std::nullopt;
        tensors.gradients.push_back(found->second);
        all.push_back(found->second);
      }
    }
    // Groups of consecutive gradients, each in one: what is cut or out of order is none.
    const size_t expected = NothingFused(plan_->profile).tensors.size();
    if (all.size() != expected || !std::is_sorted(all.begin(), all.end()) ||
        std::adjacent_find(all.begin(), all.end()) != all.end())
      return std::nullopt;
    return strategy;
  }

  // Every gradient in parts of so many bytes, but for rounding, as BytePS cuts them. None: they are
  // more than are tried, or than were asked for.
  std::optional<Strategy> InParts(int64_t bytes) const {
    Strategy strategy = NothingFused(plan_->profile);
    int64_t parts = 0;
    for (FusedTensors& tensors : strategy.tensors) {
      const int64_t size = plan_->profile.operations()[Index(tensors.gradients.front())].size_bytes;
      const int64_t own = (size + bytes - 1) / bytes;
      parts += own;
      if (parts > kMostParts || (query_.bounds_partitions && own > query_.max_partitions))
        return std::nullopt;
      tensors.partitions = static_cast<int32_t>(own);
    }
    return strategy;
  }

  // Neighbours together until they have so many bytes, in so many parts where they are several.
  Strategy Together(int64_t bytes, int32_t parts) const {
    Strategy strategy;
    int64_t held = bytes;
    for (const FusedTensors& alone : NothingFused(plan_->profile).tensors) {
      if (held >= bytes) {
        strategy.tensors.push_back({.gradients = {}, .partitions = parts});
        held = 0;
      }
      const int32_t gradient = alone.gradients.front();
      strategy.tensors.back().gradients.push_back(gradient);
      held += plan_->profile.operations()[Index(gradient)].size_bytes;
    }
    return strategy;
  }

  std::vector<BeginStrategy> StartsOfServers() const {
    std::vector<BeginStrategy> starts;
    const auto in_parts = [&](int64_t bytes, const char* name) {
      std::optional<Strategy> strategy = InParts(bytes);
      if (!strategy.has_value()) return;
      strategy->by_layer = true;
      starts.push_back({.strategy = *std::move(strategy),
                        .is_default = *name != '\0',
                        .name = name,
                        .setting = absl::StrCat("BYTEPS_PARTITION_BYTES=", bytes)});
    };
    in_parts(kBytePsBytes, "BYTEPS");
    for (const int64_t bytes : kPartBytes) in_parts(bytes, "");
    // In the order of the scenario.
    if (std::optional<Strategy> strategy = InParts(kBytePsBytes); strategy.has_value())
      starts.push_back({.strategy = *std::move(strategy)});
    const int32_t servers = query_.scenario.server_count();
    for (const int64_t bytes : kTogetherBytes) {
      starts.push_back({.strategy = Together(bytes, 1)});
      if (servers > 1 && servers <= query_.max_partitions && servers <= bytes)
        starts.push_back({.strategy = Together(bytes, servers)});
    }
    return starts;
  }

  // Computations as XLA fuses them, and gradients in Horovod's buffers of its own size, since most
  // are ready at once; to parameter servers as BytePS cuts them. None: nothing can be fused, or the
  // cost of it is not known.
  std::optional<Strategy> FuseAll(const FusionCosts& costs) const {
    std::vector<std::vector<int32_t>> fused = AllFused(plan_->profile);
    const auto known = [&](const std::vector<int32_t>& group) {
      return costs.SecondsOf(group).has_value();
    };
    if (fused.empty() || !std::all_of(fused.begin(), fused.end(), known)) return std::nullopt;
    Strategy strategy = NothingFused(plan_->profile);
    if (query_.baselines.has_value()) {
      strategy = Together(kFormerHorovodBytes, 1);
    } else if (std::optional<Strategy> parts = InParts(kBytePsBytes); parts.has_value()) {
      strategy = *std::move(parts);
    }
    strategy.fused = std::move(fused);
    return strategy;
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
    if (query_.scenario.has_servers()) {
      starts = StartsOfServers();
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
      if (std::optional<Strategy> start = FromGroups(baseline.strategy.groups); start.has_value())
        starts.push_back({.strategy = *std::move(start), .is_default = true});
    }
    if (std::optional<Strategy> all = FuseAll(costs); all.has_value()) {
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

  // The strategy that was found is judged in full, and so is no fusion; whatever is faster in full
  // than it is taken instead.
  absl::Status Judge(const FoundStrategy& found, const std::vector<NamedBaseline>& baselines,
                     const std::vector<BeginStrategy>& starts, const FusionCosts& costs,
                     Replays& replays) {
    Strategy chosen = found.strategy;
    absl::StatusOr<Replays::Full> full = replays.InFull(chosen);
    // A job of which nothing could be replayed stays as it is.
    if (IsTimeBudgetSpent(full.status()) || absl::IsInvalidArgument(full.status()))
      return absl::OkStatus();
    if (!full.ok()) return full.status();
    const Strategy alone = NothingFused(plan_->profile);
    std::vector<BeginStrategy> others;
    for (const BeginStrategy& start : starts) {
      if (start.is_default) others.push_back(start);
    }
    others.push_back({.strategy = alone});
    for (const auto& [name, baseline] : baselines)
      Compare(name, baseline.prediction, baseline.runs);
    bool is_chains_best = found.is_chains_best;
    const absl::StatusOr<Replays::Full> unfused = replays.InFull(alone);
    if (unfused.ok()) {
      // To parameter servers every tensor goes by itself as it was recorded.
      CompareFull(query_.scenario.has_servers() ? "AS_RECORDED" : "NO_FUSION", *unfused, false);
    } else if (!IsTimeBudgetSpent(unfused.status()) && !absl::IsInvalidArgument(unfused.status())) {
      return unfused.status();
    }
    double best = full->prediction.steps_per_second;
    for (const BeginStrategy& other : others) {
      if (other.strategy == chosen) {
        if (!other.name.empty()) CompareFull(other.name, *full, RestsOnShare(chosen, costs));
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
      if (judged->prediction.steps_per_second <= best) continue;
      best = judged->prediction.steps_per_second;
      full = std::move(judged);
      chosen = other.strategy;
      is_chains_best = false;
    }
    const TunedStrategy* faster = nullptr;
    for (const auto& [name, baseline] : baselines) {
      if (baseline.prediction.steps_per_second <= best * kMore) continue;
      best = baseline.prediction.steps_per_second;
      faster = &baseline;
    }
    if (faster != nullptr) {
      TakeBaseline(*faster);
      return absl::OkStatus();
    }
    CompareFull("FOUND", *full, RestsOnShare(chosen, costs));
    const Gain gain = answer_.compared.back().gain;
    // Of tensors that go to servers nobody need write what makes no difference.
    const bool is_none = query_.scenario.has_servers() && gain.is_none;
    if (plan_->pass == MemoryPass::kNone &&
        (is_none || full->prediction.steps_per_second <= answer_.as_recorded.steps_per_second))
      return absl::OkStatus();
    answer_.keeps_as_recorded = false;
    answer_.prediction = std::move(full->prediction);
    answer_.gain = gain;
    answer_.rests_on_share = answer_.compared.back().rests_on_share;
    answer_.is_chains_best = is_chains_best;
    for (const BeginStrategy& start : starts) {
      if (start.strategy == chosen) answer_.setting = start.setting;
    }
    if (query_.scenario.has_servers()) answer_.warnings = answer_.prediction.warnings;
    Describe(chosen, costs);
    return absl::OkStatus();
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
  }

  void Explain() {
    const std::string table =
        query_.fused_costs.empty()
            ? ""
            : absl::StrCat("a table of ", query_.fused_costs.size(), " entries");
    const std::string estimate =
        query_.fused_share.has_value()
            ? absl::StrFormat(
                  "an estimate: of all but the last operation %g of the sum of their "
                  "times%s",
                  *query_.fused_share,
                  *query_.fused_share == kDproFusedShare ? ", as dPRO's simulated mode has it" : "")
            : "";
    answer_.cost_source =
        table.empty() && estimate.empty()
            ? "none is known, so no operations are fused: give their times (--costs; "
              "fused_costs) or an estimate (--fused-share; fused_share)"
            : absl::StrCat(table, table.empty() || estimate.empty() ? "" : ", else ", estimate);
    if (answer_.lower_bound_seconds.has_value()) {
      answer_.why_no_bound.clear();
    } else if (query_.scenario.has_servers()) {
      answer_.why_no_bound = "none is known of tensors that go to parameter servers together";
    } else if (plan_->pass != MemoryPass::kNone) {
      answer_.why_no_bound = "the bound is of the job as recorded, which does not fit";
    } else if (query_.fused_share.has_value() || !query_.fused_costs.empty()) {
      answer_.why_no_bound = "fused operations shorten the computation that a bound rests on";
    } else {
      answer_.why_no_bound = "the time budget was spent before";
    }
    answer_.reason = ReasonText();
  }

  std::string ReasonText() const {
    std::string before;
    if (plan_->pass != MemoryPass::kNone) {
      before = absl::StrFormat(
          "%s brings memory from %.3g to %.3g GB, within the budget of %.3g; with it ",
          NameOf(plan_->pass), answer_.memory->before.bytes() / kGigabyte,
          answer_.memory->after.bytes() / kGigabyte,
          static_cast<double>(*query_.memory_budget_bytes) / kGigabyte);
    } else if (answer_.keeps_as_recorded) {
      return "no difference: nothing that was found is faster than what there is";
    }
    std::vector<std::string> what;
    if (!answer_.fused.empty()) {
      size_t operations = 0;
      for (const NamedFusedOperations& group : answer_.fused) operations += group.operations.size();
      what.push_back(absl::StrCat(operations, " operations fused into ", answer_.fused.size()));
    }
    size_t gradients = 0;
    int32_t parts = 0;
    for (const NamedTensors& group : answer_.tensors) {
      gradients += group.operations.size();
      parts += group.partitions > 1 ? group.partitions : 0;
    }
    const char* const kind = query_.scenario.has_servers() ? " tensors" : " collectives";
    what.push_back(answer_.setting.empty()
                       ? absl::StrCat(gradients, " gradients in ", answer_.tensors.size(), kind)
                       : answer_.setting);
    if (answer_.by_layer && answer_.setting.empty())
      what.push_back("what the first layers need first");
    if (parts > 0 && answer_.setting.empty())
      what.push_back(absl::StrCat("some cut in ", parts, " parts"));
    std::string all;
    for (size_t i = 0; i < what.size(); ++i)
      absl::StrAppend(&all, i == 0 ? "" : i + 1 < what.size() ? ", " : " and ", what[i]);
    const Interval& interval = answer_.gain.confidence_interval;
    return absl::StrFormat("%s%s%s gain %s (%s to %s): a step of %.4g s where it was %.4g s%s",
                           before, answer_.gain.is_none ? "no difference is known: " : "", all,
                           PercentText(answer_.gain.mean), PercentText(interval.lower),
                           PercentText(interval.upper), answer_.prediction.step_time.mean,
                           answer_.as_recorded.step_time.mean, ShareText());
  }

  // The share that the gain rests on, and what is gained without.
  std::string ShareText() const {
    if (!answer_.rests_on_share) return "";
    const ComparedStrategy* measured = nullptr;
    for (const ComparedStrategy& each : answer_.compared) {
      if (!each.rests_on_share &&
          (measured == nullptr || each.step_seconds < measured->step_seconds))
        measured = &each;
    }
    return absl::StrFormat(
        "; it rests on the assumed share of %g (fused_share), which nobody measured%s",
        *query_.fused_share,
        measured == nullptr ? ""
                            : absl::StrCat("; without it ", measured->name, " is the fastest, ",
                                           PercentText(measured->gain.mean)));
  }

  const Profile& recorded_;
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
  if (query.job.has_value())
    return StrategyAdviser(*query.job, query, stop, executor, {.counter = known.counter}).Advise();
  return StrategyAdviser(profile, query, stop, executor, known).Advise();
}

}  // namespace stepcast
