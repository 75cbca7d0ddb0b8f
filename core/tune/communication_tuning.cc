#include "core/tune/communication_tuning.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <map>
#include <numeric>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

#include "core/base/student_t.h"
#include "core/base/time.h"
#include "core/communication/all_reduce.h"
#include "core/communication/collective_time.h"
#include "core/predict/distinct_warnings.h"
#include "core/predict/point_set.h"
#include "core/tune/gradient_chain.h"
#include "core/tune/overlap_model.h"
#include "core/tune/thread_allocation.h"

namespace stepcast {

namespace {

constexpr double kMebibyte = 1 << 20;

constexpr double kFusionMebibytes[] = {1, 2, 4, 8, 16, 32, 64, 128};
constexpr double kCycleSeconds[] = {0.001, 0.0025, 0.005, 0.01};

// Gradients of which every grouping is simulated: 2^(n-1) of them.
constexpr size_t kExhaustiveGradients = 9;
// Rounds of a search over more gradients, and groupings that are simulated in each.
constexpr int kSearchRounds = 12;
constexpr size_t kTriesOfARound = 24;
// The length of a chain over that of the best so far, beyond which a grouping is not simulated.
constexpr double kChainMargin = 1.05;

Scenario With(Scenario scenario, Fusion fusion) {
  std::get<AllReduce>(scenario.communication).fusion = std::move(fusion);
  return scenario;
}

std::string PercentText(double fraction) { return absl::StrFormat("%+.1f %%", 100 * fraction); }

class WorkersTuner {
 public:
  WorkersTuner(const Profile& profile, const Scenario& scenario, const TuningQuery& query,
               PointSet& points, StopCheck stop, const Executor& executor)
      : profile_(profile),
        scenario_(scenario),
        query_(query),
        points_(points),
        stop_(stop),
        executor_(executor) {}

  absl::StatusOr<Tuning> Run() && {
    const absl::StatusOr<std::optional<size_t>> base = Try(scenario_.all_reduce().fusion);
    if (!base.ok()) return base.status();
    if (!base->has_value()) return TimeBudgetSpent();  // it was checked when it was resolved
    base_ = **base;
    // When gradients are ready is the same with and without contention, but for it.
    Scenario alone = With(scenario_, Fusion{});
    std::get<AllReduce>(alone.communication).contention.reset();
    std::get<AllReduce>(alone.communication).threads = 0;
    const absl::StatusOr<std::optional<size_t>> unfused = TryScenario(alone);
    if (!unfused.ok()) return unfused.status();
    if (absl::Status status = Simulate(); !status.ok()) return status;
    if (!points_.HasRun(base_)) return TimeBudgetSpent();
    if (unfused->has_value() && points_.HasRun(**unfused)) {
      chain_.emplace(points_.Summarize(**unfused).collectives->collectives, scenario_);
      layers_ = BackwardLayers();
    }
    for (const TuningMethod method : query_.methods) {
      const absl::StatusOr<std::optional<size_t>> found = Find(method);
      if (!found.ok()) return found.status();
      if (found->has_value()) found_.emplace_back(method, **found);
    }
    for (auto& [method, index] : found_) {
      // A point that has been tried is in the set: adding it in full cannot fail but by `stop`.
      const absl::StatusOr<size_t> added = points_.AddAlone(points_.scenario(index), stop_);
      if (!added.ok() && !IsTimeBudgetSpent(added.status())) return added.status();
    }
    if (absl::Status status = Simulate(); !status.ok()) return status;
    return Describe();
  }

 private:
  // The point of that fusion; none: in its groups a collective would wait for itself, or time is
  // spent.
  absl::StatusOr<std::optional<size_t>> Try(Fusion fusion) {
    return TryScenario(With(scenario_, std::move(fusion)));
  }

  absl::StatusOr<std::optional<size_t>> TryScenario(const Scenario& scenario) {
    const absl::StatusOr<size_t> index = points_.TryAlone(scenario, stop_);
    if (index.ok()) return *index;
    if (absl::IsInvalidArgument(index.status()) || IsTimeBudgetSpent(index.status()))
      return std::nullopt;
    return index.status();
  }

  absl::Status Simulate() {
    if (is_spent_) return absl::OkStatus();
    absl::Status status = points_.RunAll(stop_, executor_);
    is_spent_ = IsTimeBudgetSpent(status);
    return is_spent_ ? absl::OkStatus() : status;
  }

  // 0: it was not reached.
  double StepsPerSecond(size_t index) const {
    if (!points_.HasRun(index)) return 0;
    const std::vector<double> runs = points_.RunsOf(index);
    return std::accumulate(runs.begin(), runs.end(), 0.0) / static_cast<double>(runs.size());
  }

  // The fastest of what was tried, the first of those that are as fast.
  std::optional<size_t> Fastest(const std::vector<std::optional<size_t>>& tried) const {
    std::optional<size_t> best;
    for (const std::optional<size_t>& index : tried) {
      if (!index.has_value() || !points_.HasRun(*index)) continue;
      constexpr double kMore = 1 + 1e-9;
      if (!best.has_value() || StepsPerSecond(*index) > kMore * StepsPerSecond(*best)) best = index;
    }
    return best;
  }

  absl::StatusOr<std::optional<size_t>> Find(TuningMethod method) {
    switch (method) {
      case TuningMethod::kAsRecorded:
        return base_;
      case TuningMethod::kDdpBuckets:
        return SweepCaps();
      case TuningMethod::kHorovod:
        return SweepCycles();
      case TuningMethod::kMgWfbp:
        return Merge();
      case TuningMethod::kLibra:
        return AllocateLibra();
      case TuningMethod::kSearch:
        return Search();
    }
    return std::nullopt;
  }

  absl::StatusOr<std::optional<size_t>> SweepCaps() {
    std::vector<std::pair<int64_t, std::optional<size_t>>> tried;
    for (const int64_t cap : query_.bucket_caps_bytes) {
      const absl::StatusOr<std::optional<size_t>> index =
          Try(Buckets{.first_bytes = std::min(query_.first_bucket_bytes, cap), .cap_bytes = cap});
      if (!index.ok()) return index.status();
      tried.emplace_back(cap, *index);
    }
    if (absl::Status status = Simulate(); !status.ok()) return status;
    for (const auto& [cap, index] : tried) {
      if (!index.has_value() || !points_.HasRun(*index)) continue;
      const Prediction prediction = points_.Summarize(*index);
      curve_.push_back({.cap_bytes = cap,
                        .step_seconds = prediction.step_time.mean,
                        .examples_per_second = prediction.examples_per_second,
                        .confidence_interval = prediction.confidence_interval});
    }
    // Of caps that are about as good, the one that is the least of a change to PyTorch's own.
    const auto distance = [](int64_t cap) {
      return std::abs(std::log(static_cast<double>(cap) / kBucketCapBytes));
    };
    std::stable_sort(tried.begin(), tried.end(), [&](const auto& a, const auto& b) {
      return distance(a.first) < distance(b.first);
    });
    std::vector<std::optional<size_t>> indices;
    indices.reserve(tried.size());
    for (const auto& [cap, index] : tried) indices.push_back(index);
    const std::optional<size_t> fastest = Fastest(indices);
    for (const std::optional<size_t>& index : indices) {
      if (index.has_value() && points_.HasRun(*index) &&
          StepsPerSecond(*index) >= (1 - kLeastGain) * StepsPerSecond(*fastest))
        return index;
    }
    return fastest;
  }

  absl::StatusOr<std::optional<size_t>> SweepCycles() {
    std::vector<std::optional<size_t>> tried;
    const auto attempt = [&](double fusion_bytes, double cycle_seconds) {
      const absl::StatusOr<std::optional<size_t>> index = Try(Horovod{
          .fusion_bytes = static_cast<int64_t>(fusion_bytes), .cycle_seconds = cycle_seconds});
      if (index.ok()) tried.push_back(*index);
      return index.status();
    };
    // Horovod's own buffer first: it is kept where another one is no faster.
    for (auto mebibytes = std::rbegin(kFusionMebibytes); mebibytes != std::rend(kFusionMebibytes);
         ++mebibytes) {
      if (absl::Status status = attempt(*mebibytes * kMebibyte, kHorovodCycleSeconds); !status.ok())
        return status;
    }
    if (absl::Status status = Simulate(); !status.ok()) return status;
    const std::optional<size_t> best = Fastest(tried);
    if (!best.has_value()) return best;
    const auto& fastest = std::get<Horovod>(points_.scenario(*best).all_reduce().fusion);
    const auto fusion_bytes = static_cast<double>(fastest.fusion_bytes);
    tried = {best};
    for (const double seconds : kCycleSeconds) {
      if (absl::Status status = attempt(fusion_bytes, seconds); !status.ok()) return status;
    }
    if (absl::Status status = Simulate(); !status.ok()) return status;
    return Fastest(tried);
  }

  absl::StatusOr<std::optional<size_t>> TryGroups(const std::vector<int32_t>& counts) {
    return Try(RecordedBuckets{.sizes_bytes = chain_->BytesOf(counts), .rule = std::nullopt});
  }

  absl::StatusOr<std::optional<size_t>> Merge() {
    if (!chain_.has_value() || chain_->size() == 0) return base_;
    const absl::StatusOr<std::vector<int32_t>> counts = chain_->SoonestEnd(stop_);
    if (!counts.ok())
      return IsTimeBudgetSpent(counts.status())
                 ? absl::StatusOr<std::optional<size_t>>(std::nullopt)
                 : counts.status();
    absl::StatusOr<std::optional<size_t>> index = TryGroups(*counts);
    if (!index.ok()) return index;
    if (absl::Status status = Simulate(); !status.ok()) return status;
    return index;  // none: in those groups a collective would wait for itself
  }

  // The chain as LIBRA sees it: what is computed between one gradient and the next, from the first
  // computation that a gradient waits for.
  std::vector<BackwardLayer> BackwardLayers() const {
    double before = BackwardBegin();
    std::vector<BackwardLayer> layers;
    for (const ReadyGradient& gradient : chain_->gradients()) {
      layers.push_back(
          {.seconds = std::max(0.0, gradient.ready_seconds - before), .bytes = gradient.bytes});
      before = std::max(before, gradient.ready_seconds);
    }
    return layers;
  }

  // Seconds from a step's begin, mean over the recorded steps.
  double BackwardBegin() const {
    const std::vector<Operation>& operations = profile_.operations();
    double begin = std::numeric_limits<double>::infinity();
    for (const Operation& gradient : operations) {
      if (!chain_->Has(gradient.name)) continue;
      for (const int32_t before : gradient.waiting_for) {
        if (operations[Index(before)].resource != Resource::kWorker) continue;
        double sum = 0;
        for (const RecordedStep& step : profile_.steps()) {
          const int64_t first = *std::min_element(step.start_ns.begin(), step.start_ns.end());
          sum += static_cast<double>(step.start_ns[Index(before)] - first) * 1e-9;
        }
        begin = std::min(begin, sum / static_cast<double>(profile_.steps().size()));
      }
    }
    return std::isfinite(begin) ? begin : 0;
  }

  OverlapSetting SettingOfOverlap() const {
    const AllReduce& job = scenario_.all_reduce();
    return {.workers = scenario_.workers,
            .latency_seconds = job.latency_seconds,
            .contention =
                job.contention.value_or(WithoutContention(scenario_.bandwidth_bytes_per_second))};
  }

  absl::StatusOr<std::optional<size_t>> AllocateLibra() {
    if (!chain_.has_value() || chain_->size() == 0) return base_;
    absl::StatusOr<ThreadAllocation> allocation =
        AllocateThreads(layers_, SettingOfOverlap(), query_.allocation, stop_);
    if (!allocation.ok()) {
      if (IsTimeBudgetSpent(allocation.status())) return std::nullopt;
      return allocation.status();
    }
    GradientGroups groups;
    for (const TensorGroup& group : allocation->groups) {
      GradientGroup& carried = groups.groups.emplace_back();
      carried.threads = group.threads;
      for (int32_t i = group.first; i < group.first + group.count; ++i)
        carried.operations.push_back(chain_->names()[Index(i)]);
    }
    allocation_ = *std::move(allocation);
    absl::StatusOr<std::optional<size_t>> index = Try(std::move(groups));
    if (!index.ok()) return index;
    if (absl::Status status = Simulate(); !status.ok()) return status;
    libra_ = *index;
    return index;
  }

  // LIBRA's backward time of groups that are fixed.
  std::optional<double> BackwardSecondsOf(const TunedStrategy& strategy) const {
    const AllReduce& job = strategy.scenario.all_reduce();
    if (!chain_.has_value() || chain_->size() == 0 || job.partition_bytes != 0 ||
        job.algorithm != CollectiveAlgorithm::kRing || job.workers_per_node > 1 ||
        job.concurrent_collectives > 1 || std::holds_alternative<Horovod>(job.fusion))
      return std::nullopt;
    std::vector<TensorGroup> groups;
    int32_t first = 0;
    for (const TunedGroup& group : strategy.groups) {
      const auto count = static_cast<int32_t>(group.operations.size());
      groups.push_back({.first = first, .count = count, .threads = std::max(group.threads, 1)});
      first += count;
    }
    return BackwardTimeOf(layers_, groups, SettingOfOverlap()).seconds;
  }

  // Simulates groupings, each once; the fastest of them.
  absl::StatusOr<std::optional<size_t>> TryAll(const std::vector<std::vector<int32_t>>& groupings) {
    std::vector<std::optional<size_t>> tried;
    for (const std::vector<int32_t>& counts : groupings) {
      const auto [at, is_new] = tried_.try_emplace(counts);
      if (!is_new) {
        tried.push_back(at->second);
        continue;
      }
      absl::StatusOr<std::optional<size_t>> index = TryGroups(counts);
      if (!index.ok()) return index;
      at->second = *index;
      if (index->has_value()) groups_of_[**index] = counts;
      tried.push_back(*index);
    }
    if (absl::Status status = Simulate(); !status.ok()) return status;
    return Fastest(tried);
  }

  // The groupings in which the search begins.
  absl::StatusOr<std::vector<std::vector<int32_t>>> FirstGroupings() const {
    const auto size = static_cast<int32_t>(chain_->size());
    std::vector<std::vector<int32_t>> groupings = {std::vector<int32_t>(chain_->size(), 1), {size}};
    absl::StatusOr<std::vector<int32_t>> soonest = chain_->SoonestEnd(stop_);
    if (!soonest.ok()) return soonest.status();
    groupings.push_back(*std::move(soonest));
    for (const int64_t cap : query_.bucket_caps_bytes) {
      groupings.push_back(GradientsByBucket(
          chain_->bytes(),
          Buckets{.first_bytes = std::min(query_.first_bucket_bytes, cap), .cap_bytes = cap}));
    }
    return groupings;
  }

  absl::StatusOr<std::optional<size_t>> Search() {
    std::vector<std::optional<size_t>> best = {base_};
    for (const auto& [method, index] : found_) best.emplace_back(index);
    if (!chain_.has_value() || chain_->size() == 0) return Fastest(best);
    if (chain_->size() <= kExhaustiveGradients) {
      absl::StatusOr<std::optional<size_t>> found = TryAll(AllGroupings(chain_->size()));
      if (!found.ok()) return found;
      best.push_back(*found);
      return Fastest(best);
    }
    const absl::StatusOr<std::vector<std::vector<int32_t>>> first = FirstGroupings();
    if (!first.ok())
      return IsTimeBudgetSpent(first.status())
                 ? absl::StatusOr<std::optional<size_t>>(Fastest(best))
                 : first.status();
    absl::StatusOr<std::optional<size_t>> current = TryAll(*first);
    for (int round = 0; current.ok() && current->has_value() && round < kSearchRounds; ++round) {
      absl::StatusOr<std::optional<size_t>> next = TryAll(NeighboursOf(groups_of_.at(**current)));
      if (!next.ok()) return next;
      const std::optional<size_t> faster = Fastest({*current, *next});
      if (faster == *current) break;
      current = faster;
    }
    if (!current.ok()) return current;
    best.push_back(*current);
    return Fastest(best);
  }

  // The groupings one boundary away of which the chain promises most, and that were not tried.
  std::vector<std::vector<int32_t>> NeighboursOf(const std::vector<int32_t>& counts) const {
    const double end = chain_->EndOf(counts);
    std::vector<std::pair<double, std::vector<int32_t>>> promising;
    for (std::vector<int32_t>& neighbour : OneBoundaryAway(counts)) {
      if (tried_.contains(neighbour)) continue;
      const double promised = chain_->EndOf(neighbour);
      if (promised <= kChainMargin * end) promising.emplace_back(promised, std::move(neighbour));
    }
    std::sort(promising.begin(), promising.end());
    promising.resize(std::min(promising.size(), kTriesOfARound));
    std::vector<std::vector<int32_t>> neighbours;
    neighbours.reserve(promising.size());
    for (auto& [promised, neighbour] : promising) neighbours.push_back(std::move(neighbour));
    return neighbours;
  }

  // The gain of one point over another, from runs with the same random choices.
  Gain GainOver(size_t index, size_t other) const {
    const std::vector<double> runs = points_.RunsOf(index);
    const std::vector<double> others = points_.RunsOf(other);
    std::vector<double> ratios;
    for (size_t i = 0; i < std::min(runs.size(), others.size()); ++i)
      ratios.push_back(runs[i] / others[i]);
    const double level = query_.options.confidence_level;
    const MeanInterval ratio = StudentT(ratios, level);
    Gain gain{.mean = ratio.mean - 1,
              .confidence_interval = {.lower = ratio.mean - ratio.half_width - 1,
                                      .upper = ratio.mean + ratio.half_width - 1,
                                      .level = level}};
    if (ratios.size() == 1) {
      // One run says of its own chance what its batches do.
      const Interval own = points_.Summarize(index).confidence_interval;
      const Interval of_other = points_.Summarize(other).confidence_interval;
      if (of_other.lower > 0 && (own.upper > own.lower || of_other.upper > of_other.lower)) {
        gain.confidence_interval = {.lower = own.lower / of_other.upper - 1,
                                    .upper = own.upper / of_other.lower - 1,
                                    .level = std::max(0.0, own.level + of_other.level - 1)};
      }
    }
    gain.is_none = std::abs(gain.mean) < kLeastGain ||
                   (gain.confidence_interval.lower <= 0 && gain.confidence_interval.upper >= 0);
    return gain;
  }

  static std::vector<TunedGroup> GroupsOf(const Prediction& prediction) {
    std::vector<TunedGroup> groups;
    const AllReduce& job = prediction.scenario.all_reduce();
    const bool in_cycles = std::holds_alternative<Horovod>(job.fusion);
    const auto* given = std::get_if<GradientGroups>(&job.fusion);
    double start = -1;
    for (const CollectiveTiming& collective : prediction.collectives->collectives) {
      if (collective.kind != Collective::kAllReduce) continue;
      if (!in_cycles || groups.empty() || collective.start_seconds != start) {
        const size_t next = groups.size();
        groups.emplace_back().threads = job.threads;
        if (given != nullptr && next < given->groups.size())
          groups.back().threads = given->groups[next].threads.value_or(job.threads);
      }
      start = collective.start_seconds;
      groups.back().size_bytes += collective.size_bytes;
      groups.back().operations.insert(groups.back().operations.end(), collective.operations.begin(),
                                      collective.operations.end());
    }
    return groups;
  }

  std::string SettingOf(const Fusion& fusion, const std::vector<TunedGroup>& groups) const {
    if (const auto* horovod = std::get_if<Horovod>(&fusion)) {
      return absl::StrFormat("HOROVOD_FUSION_THRESHOLD=%d HOROVOD_CYCLE_TIME=%g",
                             horovod->fusion_bytes, horovod->cycle_seconds * 1e3);
    }
    if (const auto* rule = std::get_if<Buckets>(&fusion))
      return absl::StrFormat("bucket_cap_mb=%g", static_cast<double>(rule->cap_bytes) / kMebibyte);
    // Groups that some cap of the sweep makes, too.
    if (!chain_.has_value()) return "";
    std::vector<int32_t> counts;
    counts.reserve(groups.size());
    for (const TunedGroup& group : groups)
      counts.push_back(static_cast<int32_t>(group.operations.size()));
    for (const int64_t cap : query_.bucket_caps_bytes) {
      const Buckets made{.first_bytes = std::min(query_.first_bucket_bytes, cap), .cap_bytes = cap};
      if (GradientsByBucket(chain_->bytes(), made) == counts) return SettingOf(made, groups);
    }
    return "";
  }

  absl::StatusOr<Tuning> Describe() {
    Tuning tuning{.workers = scenario_.workers};
    // A search would have chosen any other method that is faster in full.
    for (auto& [method, index] : found_) {
      if (method != TuningMethod::kSearch) continue;
      for (const auto& [other, found] : found_) {
        if (StepsPerSecond(found) > StepsPerSecond(index)) index = found;
      }
    }
    const Prediction base = points_.Summarize(base_);
    tuning.lower_bound_seconds = base.collectives->computation_seconds;
    if (chain_.has_value()) {
      const absl::StatusOr<double> end = chain_->LowerBoundOfEnd(query_.allocation.threads, stop_);
      if (end.ok()) tuning.lower_bound_seconds = std::max(tuning.lower_bound_seconds, *end);
    }
    std::vector<size_t> indices;
    for (const auto& [method, index] : found_) {
      if (!points_.HasRun(index)) continue;
      TunedStrategy& strategy = tuning.strategies.emplace_back();
      indices.push_back(index);
      strategy.method = method;
      strategy.scenario = points_.scenario(index);
      strategy.prediction = points_.Summarize(index);
      strategy.groups = GroupsOf(strategy.prediction);
      strategy.gain = GainOver(index, base_);
      if (index != base_)
        strategy.setting = SettingOf(strategy.scenario.all_reduce().fusion, strategy.groups);
      strategy.backward_seconds = BackwardSecondsOf(strategy);
      if (libra_.has_value() && index == *libra_) {
        if (allocation_.guarantee_holds) strategy.guarantee = allocation_.guarantee;
        strategy.why_no_guarantee = allocation_.why_void;
      }
      strategy.gap = strategy.prediction.step_time.mean / tuning.lower_bound_seconds - 1;
    }
    if (indices.empty()) return TimeBudgetSpent();
    tuning.curve = std::move(curve_);
    Choose(indices, base, tuning);
    return tuning;
  }

  // The simplest of those that cannot be told from the fastest.
  void Choose(const std::vector<size_t>& indices, const Prediction& base, Tuning& tuning) const {
    size_t fastest = 0;
    for (size_t i = 1; i < indices.size(); ++i) {
      if (StepsPerSecond(indices[i]) > StepsPerSecond(indices[fastest])) fastest = i;
    }
    tuning.chosen = fastest;
    for (size_t i = 0; i < indices.size(); ++i) {
      if (tuning.strategies[i].method < tuning.strategies[tuning.chosen].method &&
          GainOver(indices[fastest], indices[i]).is_none)
        tuning.chosen = i;
    }
    const TunedStrategy& chosen = tuning.strategies[tuning.chosen];
    if (chosen.gain.is_none) {
      const TunedStrategy& most = tuning.strategies[fastest];
      tuning.reason =
          most.method == TuningMethod::kAsRecorded
              ? "no difference: nothing that was tried is faster than what there is"
              : absl::StrFormat("no difference: what gains most here, %s, gains %s (%s to %s)",
                                NameOf(most.method), PercentText(most.gain.mean),
                                PercentText(most.gain.confidence_interval.lower),
                                PercentText(most.gain.confidence_interval.upper));
      return;
    }
    const std::string how =
        chosen.setting.empty() ? std::string(NameOf(chosen.method)) : chosen.setting;
    tuning.reason = absl::StrFormat(
        "%s gains %s (%s to %s): of a step of %.4g s, %.3g s are exposed communication, where it "
        "was %.3g of %.4g s",
        how, PercentText(chosen.gain.mean), PercentText(chosen.gain.confidence_interval.lower),
        PercentText(chosen.gain.confidence_interval.upper), chosen.prediction.step_time.mean,
        chosen.prediction.collectives->exposed_seconds, base.collectives->exposed_seconds,
        base.step_time.mean);
  }

  const Profile& profile_;
  const Scenario& scenario_;
  const TuningQuery& query_;
  PointSet& points_;
  const StopCheck stop_;
  const Executor& executor_;
  bool is_spent_ = false;
  size_t base_ = 0;
  std::optional<GradientChain> chain_;
  std::vector<BackwardLayer> layers_;  // of the chain
  std::vector<std::pair<TuningMethod, size_t>> found_;
  std::map<std::vector<int32_t>, std::optional<size_t>> tried_;  // of the search
  std::map<size_t, std::vector<int32_t>> groups_of_;             // likewise, by point
  std::vector<BucketCapPoint> curve_;
  std::optional<size_t> libra_;
  ThreadAllocation allocation_;  // with libra_
};

// A collective of hardly any bytes takes hardly any time.
bool StartFree(const Scenario& scenario) {
  constexpr double kHardlyAny = 1e-6;
  return scenario.workers > 1 &&
         ToSeconds(CollectiveTimes(scenario).TimeOf(Collective::kAllReduce, 1)) < kHardlyAny;
}

std::vector<Warning> WarningsOf(const std::vector<Tuning>& tunings) {
  std::vector<std::string> names;
  std::vector<std::vector<Warning>> warnings;
  for (const Tuning& tuning : tunings) {
    for (const TunedStrategy& strategy : tuning.strategies) {
      names.emplace_back(tunings.size() == 1
                             ? std::string(NameOf(strategy.method))
                             : absl::StrCat(NameOf(strategy.method), " of ", tuning.workers));
      warnings.push_back(strategy.prediction.warnings);
    }
  }
  return WarningsByName(names, warnings);
}

}  // namespace

absl::StatusOr<TuningAnswer> OptimizeCommunication(const Profile& profile, const TuningQuery& query,
                                                   StopCheck stop, const Executor& executor,
                                                   const KnownRuns& known) {
  TuningAnswer answer{.tunings = {}, .has_counts = query.has_counts};
  PointSet points(profile, query.options, known);
  for (const Scenario& scenario : query.scenarios) {
    absl::StatusOr<Tuning> tuning =
        WorkersTuner(profile, scenario, query, points, stop, executor).Run();
    // A spent budget leaves the numbers of workers that were reached.
    if (IsTimeBudgetSpent(tuning.status()) && !answer.tunings.empty()) break;
    if (!tuning.ok()) return tuning.status();
    answer.tunings.push_back(*std::move(tuning));
  }
  // The first advice at the other numbers of workers.
  const Tuning& first = answer.tunings.front();
  const Fusion& fusion = first.strategies[first.chosen].scenario.all_reduce().fusion;
  for (size_t i = 1; i < answer.tunings.size(); ++i) {
    const absl::StatusOr<size_t> index = points.AddAlone(With(query.scenarios[i], fusion), stop);
    const absl::Status status = index.ok() ? points.RunAll(stop, executor) : index.status();
    if (IsTimeBudgetSpent(status)) break;
    if (!status.ok()) return status;
    const Tuning& tuning = answer.tunings[i];
    const double best = tuning.strategies[tuning.chosen].prediction.steps_per_second;
    answer.advice_changes = answer.advice_changes ||
                            points.Summarize(*index).steps_per_second < (1 - kLeastGain) * best;
  }
  answer.warnings = WarningsOf(answer.tunings);
  if (std::any_of(query.scenarios.begin(), query.scenarios.end(), StartFree)) {
    answer.warnings.push_back(
        {.reason = Warning::Reason::kCollectivesStartFree,
         .message = "a collective takes no time here but that of its bytes, so many small ones "
                    "look as good as a few; say what one costs: latency_seconds (--latency), or "
                    "what fits a benchmark of collectives (stepcast profile fit-collectives)"});
  }
  answer.simulation = points.Statistics();
  return answer;
}

}  // namespace stepcast
