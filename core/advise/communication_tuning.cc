#include "core/advise/communication_tuning.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <numeric>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"

#include "core/advise/overlap_model.h"
#include "core/base/distributions.h"
#include "core/base/time.h"
#include "core/communication/all_reduce.h"
#include "core/communication/collective_time.h"
#include "core/model/scenario_edits.h"
#include "core/predict/point_set.h"
#include "core/predict/throughput.h"

namespace stepcast {

namespace {

constexpr double kMebibyte = 1 << 20;

constexpr size_t kLongestSettingInReason = 60;

// Chooses, and says why.
class TuningWriter {
 public:
  // The methods were tried on that scenario. All must outlive it.
  TuningWriter(TriedMethods tried, const Scenario& scenario, const TuningQuery& query,
               const PointSet& points, StopCheck stop)
      : tried_(std::move(tried)),
        scenario_(scenario),
        query_(query),
        points_(points),
        stop_(stop) {}

  absl::StatusOr<Tuning> Describe() && {
    Tuning tuning{.workers = scenario_.workers};
    // A search would have chosen any other method that is faster in full.
    for (auto& [method, index] : tried_.found) {
      if (method != TuningMethod::kSearch) continue;
      for (const auto& [other, found] : tried_.found) {
        if (other != TuningMethod::kMgCf &&
            StepsPerSecond(points_, found) > StepsPerSecond(points_, index))
          index = found;
      }
    }
    const Prediction base = points_.Summarize(tried_.base);
    tuning.lower_bound_seconds = base.collectives->computation_seconds;
    if (tried_.chain != nullptr) {
      const absl::StatusOr<double> end =
          tried_.chain->LowerBoundOfEnd(query_.allocation.threads, stop_);
      if (end.ok()) tuning.lower_bound_seconds = std::max(tuning.lower_bound_seconds, *end);
    }
    const double bytes_seconds =
        tried_.chain != nullptr ? tried_.chain->LeastSecondsOfAll(query_.allocation.threads) : 0;
    std::vector<size_t> indices;
    const auto describe = [&](TuningMethod method, size_t index) {
      if (!points_.HasRun(index)) return;
      TunedStrategy& strategy = tuning.strategies.emplace_back();
      indices.push_back(index);
      strategy.method = method;
      strategy.scenario = points_.scenario(index);
      strategy.prediction = points_.Summarize(index);
      strategy.runs = points_.RunsOf(index);
      strategy.groups = GroupsOf(strategy.prediction);
      strategy.gain = GainOver(index, tried_.base);
      if (index != tried_.base && method != TuningMethod::kMgCf)
        strategy.setting = SettingOf(strategy.scenario, strategy.groups);
      strategy.backward_seconds = BackwardSecondsOf(strategy);
      if (tried_.libra.has_value() && index == *tried_.libra) {
        if (tried_.allocation.guarantee_holds) strategy.guarantee = tried_.allocation.guarantee;
        strategy.why_no_guarantee = tried_.allocation.why_void;
      }
      strategy.lower_bound_seconds =
          std::holds_alternative<ByteScheduler>(strategy.scenario.fusion())
              ? std::max(base.collectives->computation_seconds, bytes_seconds)
              : tuning.lower_bound_seconds;
      strategy.gap = strategy.prediction.step_time.mean / strategy.lower_bound_seconds - 1;
    };
    for (const auto& [method, index] : tried_.found) describe(method, index);
    // The job as it is, where nothing that was asked for is known to be faster.
    if (!tuning.strategies.empty() && std::ranges::none_of(tuning.strategies, SettlesIt))
      describe(TuningMethod::kAsRecorded, tried_.base);
    if (std::none_of(tuning.strategies.begin(), tuning.strategies.end(), CanBeChosen))
      return TimeBudgetSpent();
    tuning.curve = std::move(tried_.curve);
    Choose(indices, base, tuning);
    return tuning;
  }

 private:
  static bool CanBeChosen(const TunedStrategy& strategy) {
    return strategy.method != TuningMethod::kMgCf;
  }
  // True if the job as it is need not be told beside it.
  static bool SettlesIt(const TunedStrategy& strategy) {
    const bool gains = !strategy.gain.is_none && strategy.gain.mean > 0;
    return CanBeChosen(strategy) && (gains || strategy.method == TuningMethod::kAsRecorded);
  }

  // LIBRA's backward time of groups that are fixed.
  std::optional<double> BackwardSecondsOf(const TunedStrategy& strategy) const {
    const AllReduce& job = strategy.scenario.all_reduce();
    if (tried_.chain == nullptr || tried_.chain->size() == 0 || job.partition_bytes != 0 ||
        job.algorithm != CollectiveAlgorithm::kRing || job.workers_per_node > 1 ||
        job.concurrent_collectives > 1 || job.collective_slowdown > 1 ||
        std::holds_alternative<Horovod>(job.fusion) ||
        std::holds_alternative<ByteScheduler>(job.fusion))
      return std::nullopt;
    std::vector<TensorGroup> groups;
    int32_t first = 0;
    for (const TunedGroup& group : strategy.groups) {
      const auto count = static_cast<int32_t>(group.operations.size());
      groups.push_back({.first = first, .count = count, .threads = std::max(group.threads, 1)});
      first += count;
    }
    return BackwardTimeOf(tried_.layers, groups, OverlapSettingOf(strategy.scenario)).seconds;
  }

  // The gain of one point over another, from runs with the same random choices.
  Gain GainOver(size_t index, size_t other) const {
    const std::vector<double> runs = points_.RunsOf(index);
    const std::vector<double> others = points_.RunsOf(other);
    const auto interval = [&](size_t of) {
      return runs.size() == 1 ? points_.Summarize(of).simulation_interval : Interval{};
    };
    return GainOf(runs, others, interval(index), interval(other), query_.options.confidence_level);
  }

  static std::vector<TunedGroup> GroupsOf(const Prediction& prediction) {
    std::vector<TunedGroup> groups;
    const AllReduce& job = prediction.scenario.all_reduce();
    const bool in_cycles = std::holds_alternative<Horovod>(job.fusion);
    const auto* given = std::get_if<GradientGroups>(&job.fusion);
    double start = -1;
    for (const CollectiveTiming& collective : prediction.collectives->collectives) {
      if (!collective.is_gradient || collective.kind != Collective::kAllReduce) continue;
      if (!in_cycles || groups.empty() || collective.start_seconds != start) {
        const size_t next = groups.size();
        groups.emplace_back();
        if (given != nullptr && next < given->groups.size())
          groups.back().threads = given->groups[next].threads.value_or(0);
      }
      start = collective.start_seconds;
      groups.back().size_bytes += collective.size_bytes;
      groups.back().operations.insert(groups.back().operations.end(), collective.operations.begin(),
                                      collective.operations.end());
    }
    for (TunedGroup& group : groups) {
      if (job.contention.has_value())
        group.threads = ThreadsOf(job, static_cast<double>(group.size_bytes), group.threads);
    }
    return groups;
  }

  static std::string CapSetting(const Buckets& rule) {
    return absl::StrFormat("bucket_cap_mb=%g", static_cast<double>(rule.cap_bytes) / kMebibyte);
  }

  std::string SettingOf(const Scenario& scenario, const std::vector<TunedGroup>& groups) const {
    const Fusion& fusion = scenario.fusion();
    if (const auto* scheduler = std::get_if<ByteScheduler>(&fusion)) {
      constexpr int64_t kBytesOfParameter = 4;
      int64_t partition_bytes = scenario.partition_bytes();
      if (partition_bytes == 0) {
        for (const TunedGroup& group : groups)
          partition_bytes = std::max(partition_bytes, group.size_bytes);
      }
      const auto parameters = [](int64_t bytes) { return (bytes - 1) / kBytesOfParameter + 1; };
      return absl::StrFormat(
          "BYTESCHEDULER_PARTITION=%d BYTESCHEDULER_CREDIT=%d BYTESCHEDULER_CREDIT_TUNING=0 "
          "BYTESCHEDULER_PARTITION_TUNING=0",
          parameters(partition_bytes), parameters(scheduler->credit_bytes));
    }
    if (const auto* horovod = std::get_if<Horovod>(&fusion)) {
      return absl::StrFormat("HOROVOD_FUSION_THRESHOLD=%d HOROVOD_CYCLE_TIME=%g",
                             horovod->fusion_bytes, horovod->cycle_seconds * 1e3);
    }
    if (const auto* rule = std::get_if<Buckets>(&fusion)) return CapSetting(*rule);
    // Groups that some cap of the sweep makes, too.
    if (tried_.chain == nullptr) return "";
    std::vector<int32_t> counts;
    counts.reserve(groups.size());
    for (const TunedGroup& group : groups)
      counts.push_back(static_cast<int32_t>(group.operations.size()));
    for (const int64_t cap : query_.bucket_caps_bytes) {
      const Buckets made{.first_bytes = std::min(query_.first_bucket_bytes, cap), .cap_bytes = cap};
      if (GradientsByBucket(tried_.chain->bytes(), AsSent(made, query_.recorded_buckets)) == counts)
        return CapSetting(made);
    }
    const auto gradients = std::accumulate(counts.begin(), counts.end(), size_t{0});
    return gradients == tried_.chain->size() ? CapsSetting(counts) : "";  // some are cut
  }

  // Bytes of the gradient itself, which a hook may compress.
  int64_t GradientBytes(size_t at) const {
    const auto sent = static_cast<double>(tried_.chain->gradients()[at].bytes);
    return std::llround(query_.recorded_buckets ? sent / query_.recorded_buckets->sent_share
                                                : sent);
  }

  // A cap a bucket, the shortest number of MiB that in whole bytes only its last gradient reaches.
  std::string CapsSetting(const std::vector<int32_t>& counts) const {
    std::vector<std::string> caps;
    size_t next = 0;
    for (const int32_t count : counts) {
      int64_t before = 0;
      for (int32_t i = 0; i + 1 < count; ++i) before += GradientBytes(next++);
      const int64_t all = before + GradientBytes(next++);
      constexpr int kMostDecimals = 20;  // of a byte, in MiB
      std::string& text = caps.emplace_back();
      for (int decimals = 0; decimals <= kMostDecimals; ++decimals) {
        text = absl::StrFormat("%.*f", decimals, static_cast<double>(all) / kMebibyte);
        double cap = 0;
        const auto bytes = absl::SimpleAtod(text, &cap) ? static_cast<int64_t>(cap * kMebibyte) : 0;
        if (bytes > before && bytes <= all) break;
      }
    }
    return absl::StrCat("bucket_cap_mb_list=[", absl::StrJoin(caps, ","), "]");
  }

  // The setting, where it is all that is to be set.
  static std::string HowText(const TunedStrategy& chosen) {
    const auto* given = std::get_if<GradientGroups>(&chosen.scenario.fusion());
    const bool has_threads =
        given != nullptr &&
        std::any_of(given->groups.begin(), given->groups.end(),
                    [](const GradientGroup& group) { return group.threads.has_value(); });
    std::string name = NameOf(chosen.method);
    if (has_threads) return name + ", whose threads by collective no setting has,";
    return chosen.setting.empty() || chosen.setting.size() > kLongestSettingInReason
               ? name
               : chosen.setting;
  }

  // The simplest of those that cannot be told from the fastest; where that is told to gain, of
  // those that are told to gain, too.
  void Choose(const std::vector<size_t>& indices, const Prediction& base, Tuning& tuning) const {
    std::vector<size_t> real;
    for (size_t i = 0; i < indices.size(); ++i) {
      if (CanBeChosen(tuning.strategies[i])) real.push_back(i);
    }
    const size_t fastest = *std::max_element(real.begin(), real.end(), [&](size_t a, size_t b) {
      return StepsPerSecond(points_, indices[a]) < StepsPerSecond(points_, indices[b]);
    });
    tuning.chosen = fastest;
    for (const size_t i : real) {
      if (tuning.strategies[i].method < tuning.strategies[tuning.chosen].method &&
          (tuning.strategies[fastest].gain.is_none || !tuning.strategies[i].gain.is_none) &&
          GainOver(indices[fastest], indices[i]).is_none)
        tuning.chosen = i;
    }
    std::vector<Alternative> alternatives;
    alternatives.reserve(real.size());
    for (const size_t i : real)
      alternatives.push_back(
          AlternativeOf(tuning.strategies[i].prediction, tuning.strategies[i].runs));
    const auto chosen_at = std::find(real.begin(), real.end(), tuning.chosen) - real.begin();
    tuning.settled = HowSettled(alternatives, static_cast<size_t>(chosen_at), kLeastGain);
    const TunedStrategy& chosen = tuning.strategies[tuning.chosen];
    if (chosen.gain.is_none) {
      const bool stays = chosen.method == TuningMethod::kAsRecorded;
      const TunedStrategy& most = stays ? tuning.strategies[fastest] : chosen;
      tuning.reason =
          most.method == TuningMethod::kAsRecorded
              ? "no difference: nothing that was tried is faster than what there is"
              : absl::StrFormat("no difference: %s%s, gains %s (%s to %s), which may be nothing",
                                stays ? "what gains most here, " : "the simplest that was tried, ",
                                NameOf(most.method), PercentText(most.gain.mean),
                                PercentText(most.gain.confidence_interval.lower),
                                PercentText(most.gain.confidence_interval.upper));
      return;
    }
    tuning.reason = absl::StrFormat(
        "%s gains %s (%s to %s): of a step of %.4g s, %.3g s are exposed communication, where it "
        "was %.3g of %.4g s",
        HowText(chosen), PercentText(chosen.gain.mean),
        PercentText(chosen.gain.confidence_interval.lower),
        PercentText(chosen.gain.confidence_interval.upper), chosen.prediction.step_time.mean,
        chosen.prediction.collectives->exposed_seconds, base.collectives->exposed_seconds,
        base.step_time.mean);
  }

  TriedMethods tried_;
  const Scenario& scenario_;
  const TuningQuery& query_;
  const PointSet& points_;
  const StopCheck stop_;
};

absl::StatusOr<Tuning> TuningOf(absl::StatusOr<TriedMethods> tried, const Scenario& scenario,
                                const TuningQuery& query, const PointSet& points, StopCheck stop) {
  if (!tried.ok()) return tried.status();
  return TuningWriter(*std::move(tried), scenario, query, points, stop).Describe();
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

std::string PercentText(double fraction) { return absl::StrFormat("%+.1f %%", 100 * fraction); }

Gain GainOf(const std::vector<double>& runs, const std::vector<double>& others, const Interval& own,
            const Interval& of_others, double confidence_level) {
  PairedRatio paired = RatioOfMeans(runs, others, confidence_level);
  // One run says of its own chance what its batches do.
  if (std::min(runs.size(), others.size()) == 1 && own.lower > 0 && of_others.lower > 0) {
    paired.half_width =
        std::hypot(std::log(own.upper / own.lower), std::log(of_others.upper / of_others.lower)) /
        2;
  }
  Gain gain{
      .mean = paired.ratio - 1,
      .confidence_interval = {
          .lower = paired.lower() - 1, .upper = paired.upper() - 1, .level = confidence_level}};
  gain.is_none = std::abs(gain.mean) < kLeastGain ||
                 (gain.confidence_interval.lower <= 0 && gain.confidence_interval.upper >= 0);
  return gain;
}

absl::StatusOr<TuningAnswer> OptimizeCommunication(const Profile& profile, const TuningQuery& query,
                                                   StopCheck stop, const Executor& executor,
                                                   const KnownRuns& known) {
  TuningAnswer answer{.tunings = {}, .has_counts = query.has_counts, .left_out = query.left_out};
  PointSet points(profile, query.options, known);
  for (const Scenario& scenario : query.scenarios) {
    absl::StatusOr<Tuning> tuning =
        TuningOf(TryMethods(profile, scenario, query, points, stop, executor), scenario, query,
                 points, stop);
    // A spent budget leaves the numbers of workers that were reached.
    if (IsTimeBudgetSpent(tuning.status()) && !answer.tunings.empty()) break;
    if (!tuning.ok()) return tuning.status();
    answer.tunings.push_back(*std::move(tuning));
  }
  // The first advice at the other numbers of workers.
  const Tuning& first = answer.tunings.front();
  const Fusion& fusion = first.strategies[first.chosen].scenario.fusion();
  for (size_t i = 1; i < answer.tunings.size(); ++i) {
    const absl::StatusOr<size_t> index =
        points.AddAlone(WithFusion(query.scenarios[i], fusion), stop);
    const absl::Status status = index.ok() ? points.RunAll(stop, executor) : index.status();
    if (IsTimeBudgetSpent(status)) break;
    if (!status.ok()) return status;
    const Tuning& tuning = answer.tunings[i];
    const double best = tuning.strategies[tuning.chosen].prediction.steps_per_second;
    answer.advice_changes = answer.advice_changes ||
                            points.Summarize(*index).steps_per_second < (1 - kLeastGain) * best;
  }
  answer.warnings = WarningsOf(answer.tunings);
  if (std::any_of(query.scenarios.begin(), query.scenarios.end(), CollectivesStartFree))
    answer.warnings.push_back(StartFreeWarning());
  answer.simulation = points.Statistics();
  return answer;
}

}  // namespace stepcast
