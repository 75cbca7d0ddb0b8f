#include "core/advise/strategy_search.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <set>
#include <string_view>
#include <utility>
#include <variant>

#include "absl/strings/str_cat.h"

#include "core/advise/tensor_route.h"
#include "core/base/index.h"
#include "core/predict/point_set.h"

namespace stepcast {

namespace {

// Rounds at most, and those in a row whose gain together is less than kLeastProgress, after which
// the search ends.
constexpr int kMaxRounds = 60;
constexpr int kRoundsOfProgress = 5;
constexpr double kLeastProgress = 0.001;
// Single changes that are replayed in a round.
constexpr size_t kChangesOfARound = 16;
// The chain's makespan with a change over that without it, beyond which it is not replayed.
constexpr double kChangeMargin = 1.01;
// Changes that the chain is asked about in a round.
constexpr size_t kMaxChanges = 4000;
constexpr double kFaster = 1 + 1e-9;
// Seconds of what cannot be sent: more than any step, and still a number.
constexpr double kForEver = 1e15;
// Gradients up to which the chain's best is looked for.
constexpr size_t kMostSolved = 2000;
// The same without the coarsened view, too.
constexpr size_t kMostFinelySolved = 64;

// A change of a grouping: groups that end, or no longer end, with these.
struct Change {
  std::vector<int32_t> computations;
  std::vector<int32_t> gradients;
  std::string kind;  // of equal blocks, the same
  double makespan = 0;
};

ChainGrouping Changed(ChainGrouping grouping, const Change& change) {
  for (const int32_t i : change.computations) grouping.computation_ends[Index(i)] ^= 1;
  for (const int32_t i : change.gradients) grouping.gradient_ends[Index(i)] ^= 1;
  return grouping;
}

class Search {
 public:
  Search(const Profile& profile, const StrategyQuery& query, const FusionCosts& costs,
         Replays& replays, StopCheck stop)
      : profile_(profile),
        query_(query),
        route_(TensorRoute::Of(profile, query.scenario)),
        costs_(costs),
        replays_(replays),
        stop_(stop) {}

  absl::StatusOr<FoundStrategy> Run(const std::vector<Strategy>& starts) && {
    const Strategy alone = NothingFused(profile_);
    const absl::StatusOr<Replay> first = replays_.Of(alone);
    if (!first.ok()) return first.status();
    best_ = {.strategy = alone, .steps_per_second = first->steps_per_second};
    SyncTimes sync = MakeSync();
    const StepChain chain(profile_, route_->ReadySeconds(first->collectives), costs_, sync);
    chain_ = &chain;
    absl::Status status = Explore(starts, sync);
    if (!status.ok() && !IsTimeBudgetSpent(status)) return status;
    replays_.statistics().partial_replays += query_.shortcuts.partial_replay ? sync.measured() : 0;
    return std::move(best_);
  }

 private:
  SyncTimes MakeSync() {
    // One of equal tensors is enough.
    const bool by_bytes = query_.shortcuts.symmetry;
    if (!query_.shortcuts.partial_replay) {
      return {[this](const SyncTimes::Range& range, int32_t partitions) {
                return FromWholeJob(range, partitions);
              },
              query_.max_partitions, by_bytes};
    }
    return {[this](const SyncTimes::Range& range, int32_t partitions) -> absl::StatusOr<double> {
              if (absl::Status status = stop_(); !status.ok()) return status;
              return OfParts(range.bytes, partitions);
            },
            query_.max_partitions, by_bytes};
  }

  // The time of a tensor's parts by themselves: where they share links, from a simulation of them,
  // over and over.
  absl::StatusOr<double> OfParts(int64_t bytes, int32_t partitions) const {
    constexpr int32_t kSteps = 4;
    if (const auto seconds = route_->SecondsOf(bytes, partitions); seconds.has_value())
      return *seconds;
    const absl::StatusOr<AppliedStrategy> job = route_->LonePartsOf(bytes, partitions);
    // A tensor above the limits, which no profile has.
    if (!job.ok()) return kForEver;
    SimulationOptions options = query_.options;
    options.steps_per_worker = kSteps;
    options.automatic_steps = false;
    options.warmup_steps = 1;
    options.automatic_warmup = false;
    options.replications = 1;
    options.automatic_replications = false;
    options.relative_precision = 0;
    options.start = Start::kSimultaneous;
    options.horizon = Horizon::kSteadyState;
    PointSet points(job->profile, options);
    const absl::StatusOr<size_t> index = points.TryAlone(job->scenario, stop_);
    if (!index.ok()) return index.status();
    if (absl::Status status = points.RunAll(stop_, InOrder()); !status.ok()) return status;
    replays_.statistics().partial_operations += points.Statistics().simulated_operations;
    return points.Summarize(*index).step_time.mean;
  }

  // The same from a replay of the whole job, with all else as in the best strategy so far.
  absl::StatusOr<double> FromWholeJob(const SyncTimes::Range& range, int32_t partitions) {
    Strategy strategy = best_.strategy;
    std::vector<FusedTensors> tensors;
    std::set<int32_t> in_range;
    FusedTensors measured{.gradients = {}, .partitions = partitions};
    for (int32_t i = range.first; i < range.first + range.count; ++i) {
      measured.gradients.push_back(chain_->gradients()[Index(i)].operation);
      in_range.insert(measured.gradients.back());
    }
    bool is_in = false;
    for (const FusedTensors& group : strategy.tensors) {
      FusedTensors left{.gradients = {}, .partitions = group.partitions};
      FusedTensors right = left;
      for (const int32_t gradient : group.gradients) {
        if (in_range.contains(gradient)) {
          if (!left.gradients.empty() && !is_in) tensors.push_back(std::exchange(left, right));
          if (!std::exchange(is_in, true)) tensors.push_back(measured);
        } else {
          left.gradients.push_back(gradient);
        }
      }
      if (!left.gradients.empty()) tensors.push_back(std::move(left));
    }
    strategy.tensors = std::move(tensors);
    const absl::StatusOr<Replay> replay = replays_.Of(strategy);
    if (!replay.ok()) return replay.status();
    const std::string& last = profile_.operations()[Index(measured.gradients.back())].name;
    double begin = 0;
    double end = 0;
    bool found = false;
    for (const CollectiveTiming& collective : replay->collectives) {
      const bool is_part = std::any_of(
          collective.operations.begin(), collective.operations.end(),
          [&](const std::string& name) { return name == last || name.rfind(last + "#", 0) == 0; });
      if (!is_part) continue;
      if (!std::exchange(found, true)) begin = collective.start_seconds;
      end = std::max(end, collective.end_seconds);
    }
    return end - begin;
  }

  // Replays a grouping and keeps it if it is faster than the best so far. True if it is.
  absl::StatusOr<bool> Try(const ChainGrouping& grouping) {
    return TryStrategy(chain_->StrategyOf(grouping), &grouping);
  }

  absl::StatusOr<bool> TryStrategy(Strategy strategy, const ChainGrouping* grouping) {
    const absl::StatusOr<Replay> replay = replays_.Of(strategy);
    if (!replay.ok()) return replay.status();
    if (replay->steps_per_second <= kFaster * best_.steps_per_second) return false;
    best_.strategy = std::move(strategy);
    best_.steps_per_second = replay->steps_per_second;
    current_ = grouping != nullptr ? *grouping : chain_->GroupingOf(best_.strategy);
    ++replays_.statistics().accepted;
    return true;
  }

  absl::Status Explore(const std::vector<Strategy>& starts, SyncTimes& sync) {
    current_ = chain_->Alone();
    const ChainGrouping finest =
        query_.shortcuts.coarsened_view ? chain_->Coarsened() : chain_->Alone();
    finest_ = finest;
    for (const Strategy& start : starts) {
      if (absl::StatusOr<bool> tried = TryStrategy(start, nullptr); !tried.ok())
        return tried.status();
      // The same tensors, of computations that are fused as in the coarsened view.
      std::vector<int32_t> counts;
      for (const FusedTensors& group : start.tensors)
        counts.push_back(static_cast<int32_t>(group.gradients.size()));
      if (absl::StatusOr<bool> tried = Try(chain_->WithTensors(finest_, counts)); !tried.ok())
        return tried.status();
    }
    if (absl::StatusOr<bool> tried = Try(finest_); !tried.ok()) return tried.status();
    const bool can_cut = query_.max_partitions > 1;
    if (query_.shortcuts.partial_replay && chain_->gradients().size() <= kMostSolved) {
      std::vector<ChainGrouping> views = {finest};
      // In a short chain what has no gradient may as well go with what is before it.
      if (chain_->gradients().size() <= kMostFinelySolved) views.push_back(chain_->Alone());
      for (ChainGrouping& view : views) {
        for (const bool cuts : {false, true}) {
          if (cuts && !can_cut) continue;
          view.cuts = cuts;
          const absl::StatusOr<ChainGrouping> solved = chain_->Best(view, stop_);
          if (!solved.ok()) return solved.status();
          if (absl::StatusOr<bool> tried = Try(*solved); !tried.ok()) return tried.status();
          best_.chain_is_solved = true;
          solved_makespan_ = std::min(solved_makespan_, chain_->TimesOf(*solved).makespan);
        }
      }
    }
    for (const bool cuts : {false, true}) {
      if (cuts && !can_cut) continue;
      ChainGrouping with = current_;
      with.cuts = cuts;
      if (absl::StatusOr<bool> tried = Try(with); !tried.ok()) return tried.status();
    }
    return Improve(sync);
  }

  absl::Status Improve(SyncTimes& sync) {
    std::vector<double> reached;
    for (int round = 0; round < kMaxRounds; ++round) {
      ++replays_.statistics().rounds;
      reached.push_back(best_.steps_per_second);
      if (reached.size() > kRoundsOfProgress &&
          reached.back() < (1 + kLeastProgress) * reached[reached.size() - 1 - kRoundsOfProgress])
        break;
      ChainGrouping from = current_;
      bool is_faster = false;
      for (const bool cuts : {from.cuts, true}) {
        if (cuts && query_.max_partitions == 1) continue;
        from.cuts = cuts;
        const absl::StatusOr<ChainGrouping> decided = chain_->Decide(from, stop_);
        if (!decided.ok()) return decided.status();
        if (*decided == current_) continue;
        const absl::StatusOr<bool> tried = Try(*decided);
        if (!tried.ok()) return tried.status();
        if (*tried) is_faster = true;
      }
      if (is_faster) continue;
      const absl::StatusOr<bool> changed = TryChanges();
      if (!changed.ok()) return changed.status();
      if (!sync.status().ok()) return sync.status();
      if (!*changed) break;
    }
    const double makespan = chain_->TimesOf(current_).makespan;
    // A table's costs need not grow with what is fused, which the best rests on.
    best_.is_chains_best = best_.chain_is_solved && query_.fused_costs.empty() &&
                           route_->IsChain() && makespan <= solved_makespan_ * (1 + 1e-9);
    return absl::OkStatus();
  }

  // Replays the single changes of which the chain promises most, of equal blocks together. True if
  // one was faster.
  absl::StatusOr<bool> TryChanges() {
    absl::StatusOr<std::vector<Change>> changes = ChangesOf(current_);
    if (!changes.ok()) return changes.status();
    const ChainGrouping from = current_;
    bool is_faster = false;
    for (size_t i = 0; i < std::min(changes->size(), kChangesOfARound); ++i) {
      const absl::StatusOr<bool> tried = Try(Changed(from, (*changes)[i]));
      if (!tried.ok()) return tried.status();
      is_faster = is_faster || *tried;
    }
    return is_faster;
  }

  absl::StatusOr<std::vector<Change>> ChangesOf(const ChainGrouping& from) const {
    const ChainTimes times = chain_->TimesOf(from);
    std::vector<Change> changes;
    AddTensorChanges(from, times, changes);
    AddComputationChanges(times, changes);
    AddTableChanges(from, changes);
    replays_.statistics().decisions += static_cast<int64_t>(changes.size());
    if (query_.shortcuts.symmetry) changes = ByKind(std::move(changes));
    // Evenly over the step, where there are too many.
    const size_t every = changes.size() / kMaxChanges + 1;
    std::vector<Change> promising;
    for (size_t i = 0; i < changes.size(); i += every) {
      if (absl::Status status = stop_(); !status.ok()) return status;
      changes[i].makespan = chain_->TimesOf(Changed(from, changes[i])).makespan;
      if (changes[i].makespan <= kChangeMargin * times.makespan)
        promising.push_back(std::move(changes[i]));
    }
    std::stable_sort(promising.begin(), promising.end(),
                     [](const Change& a, const Change& b) { return a.makespan < b.makespan; });
    return promising;
  }

  // The tensors of a group, by their sizes.
  std::string TensorKind(const SyncTimes::Range& range) const {
    std::string kind = absl::StrCat(range.count, ":");
    for (int32_t i = range.first; i < range.first + std::min(range.count, 64); ++i)
      absl::StrAppend(&kind, chain_->gradients()[Index(i)].bytes, ",");
    return kind;
  }

  void AddTensorChanges(const ChainGrouping& from, const ChainTimes& times,
                        std::vector<Change>& changes) const {
    const auto size = static_cast<int32_t>(from.gradient_ends.size());
    for (size_t t = 0; t < times.tensors.size(); ++t) {
      const ChainTensor& tensor = times.tensors[t];
      const std::string kind = TensorKind(tensor.range);
      const int32_t last = tensor.range.first + tensor.range.count - 1;
      // One more end, inside.
      for (int32_t i = tensor.range.first; i < last; ++i) {
        if (finest_.gradient_ends[Index(i)]) {
          changes.push_back(
              {.gradients = {i}, .kind = absl::StrCat("part ", kind, i - tensor.range.first)});
        }
      }
      if (t + 1 == times.tensors.size()) break;
      const ChainTensor& next = times.tensors[t + 1];
      const std::string both = absl::StrCat(kind, "|", TensorKind(next.range));
      changes.push_back({.gradients = {last}, .kind = absl::StrCat("join ", both)});
      // Theorem 3: their computations as well.
      if (tensor.after >= 0 && tensor.after < next.after) {
        Change with = changes.back();
        for (int32_t g = tensor.after; g < next.after; ++g)
          with.computations.push_back(times.computations[Index(g)].second - 1);
        with.kind += "+";
        changes.push_back(std::move(with));
      }
      // This end one further on, or back.
      for (const int32_t step : {1, -1}) {
        int32_t to = last + step;
        while (to > 0 && to + 1 < size && !finest_.gradient_ends[Index(to)]) to += step;
        if (to < 0 || to + 1 >= size || from.gradient_ends[Index(to)]) continue;
        changes.push_back(
            {.gradients = {last, to}, .kind = absl::StrCat("move ", step, " ", both)});
      }
    }
  }

  // The number of computations, and about their length: the same where blocks are equal.
  std::string LengthKind(const std::pair<int32_t, int32_t>& group) const {
    constexpr double kAlike = 0.1;
    double seconds = 0;
    for (int32_t i = group.first; i < group.second; ++i)
      seconds += costs_.SecondsOf(chain_->computations()[Index(i)]);
    const double steps = seconds > 0 ? std::round(std::log(seconds) / std::log1p(kAlike)) : 0;
    return absl::StrCat(group.second - group.first, ":", static_cast<int64_t>(steps));
  }

  void AddComputationChanges(const ChainTimes& times, std::vector<Change>& changes) const {
    if (!costs_.known()) return;
    // The last gradients of the tensors that wait for each group.
    std::vector<std::vector<int32_t>> waiting(times.computations.size());
    for (const ChainTensor& tensor : times.tensors) {
      if (tensor.after >= 0)
        waiting[Index(tensor.after)].push_back(tensor.range.first + tensor.range.count - 1);
    }
    for (size_t g = 0; g < times.computations.size(); ++g) {
      const auto [first, end] = times.computations[g];
      const std::string kind = LengthKind(times.computations[g]);
      for (int32_t i = first; i + 1 < end; ++i) {
        if (finest_.computation_ends[Index(i)])
          changes.push_back(
              {.computations = {i}, .kind = absl::StrCat("split ", kind, " ", i - first)});
      }
      if (g + 1 == times.computations.size()) break;
      const std::pair<int32_t, int32_t>& next = times.computations[g + 1];
      if (!chain_->SecondsOf(first, next.second).has_value()) continue;
      const std::string both = absl::StrCat(kind, "|", LengthKind(next), " ", waiting[g].size(),
                                            "|", waiting[g + 1].size());
      changes.push_back({.computations = {end - 1}, .kind = absl::StrCat("fuse ", both)});
      // The tensors that wait for them, as one.
      Change with{.computations = {end - 1}, .kind = absl::StrCat("fuse+ ", both)};
      with.gradients = waiting[g];
      with.gradients.insert(with.gradients.end(), waiting[g + 1].begin(), waiting[g + 1].end());
      if (with.gradients.size() < 2) continue;
      with.gradients.pop_back();
      changes.push_back(std::move(with));
    }
  }

  // Groups that the table names, as one.
  void AddTableChanges(const ChainGrouping& from, std::vector<Change>& changes) const {
    std::map<int32_t, int32_t> position;
    if (query_.fused_costs.empty()) return;
    const std::vector<int32_t>& computations = chain_->computations();
    for (size_t i = 0; i < computations.size(); ++i)
      position[computations[i]] = static_cast<int32_t>(i);
    for (const FusedCost& entry : query_.fused_costs) {
      int32_t first = static_cast<int32_t>(computations.size());
      int32_t last = -1;
      bool is_here = true;
      for (const int32_t operation : entry.operations) {
        const auto found = position.find(operation);
        is_here = is_here && found != position.end();
        if (!is_here) break;
        first = std::min(first, found->second);
        last = std::max(last, found->second);
      }
      if (!is_here || last - first + 1 != static_cast<int32_t>(entry.operations.size())) continue;
      // It begins and ends a group of its own; what it is taken out of must be known, too.
      Change change{.kind = absl::StrCat("table ", first)};
      if (first > 0 && !from.computation_ends[Index(first - 1)])
        change.computations.push_back(first - 1);
      for (int32_t i = first; i < last; ++i) {
        if (from.computation_ends[Index(i)]) change.computations.push_back(i);
      }
      if (!from.computation_ends[Index(last)]) change.computations.push_back(last);
      if (!change.computations.empty()) changes.push_back(std::move(change));
    }
  }

  // One change for all of a kind.
  static std::vector<Change> ByKind(std::vector<Change> changes) {
    std::vector<Change> made;
    std::map<std::string, size_t> at;
    for (Change& change : changes) {
      const auto [found, is_new] = at.try_emplace(change.kind, made.size());
      if (is_new) {
        made.push_back(std::move(change));
        continue;
      }
      Change& all = made[found->second];
      all.computations.insert(all.computations.end(), change.computations.begin(),
                              change.computations.end());
      all.gradients.insert(all.gradients.end(), change.gradients.begin(), change.gradients.end());
    }
    for (Change& change : made) {
      for (std::vector<int32_t>* ends : {&change.computations, &change.gradients}) {
        std::sort(ends->begin(), ends->end());
        ends->erase(std::unique(ends->begin(), ends->end()), ends->end());
      }
    }
    return made;
  }

  const Profile& profile_;
  const StrategyQuery& query_;
  const std::unique_ptr<const TensorRoute> route_;
  const FusionCosts& costs_;
  Replays& replays_;
  const StopCheck stop_;
  const StepChain* chain_ = nullptr;
  FoundStrategy best_;
  ChainGrouping current_;  // of the best strategy
  ChainGrouping finest_;   // groups are of whole groups of it
  double solved_makespan_ = std::numeric_limits<double>::infinity();
};

}  // namespace

absl::StatusOr<Replay> Replays::Of(const Strategy& strategy) {
  const auto [at, is_new] = known_.try_emplace(strategy);
  if (!is_new) return at->second;
  const auto fail = [&, at = at](absl::Status status) {
    known_.erase(at);
    return status;
  };
  const absl::StatusOr<AppliedStrategy> applied =
      Apply(profile_, query_.scenario, strategy, costs_);
  if (!applied.ok()) return at->second;
  PointSet points(applied->profile, query_.options, {.counter = counter_});
  const absl::StatusOr<size_t> index = points.TryAlone(applied->scenario, stop_);
  if (!index.ok()) return fail(index.status());
  const absl::Status status = points.RunAll(stop_, executor_);
  if (!status.ok()) return fail(status);
  Replay& replay = at->second;
  replay.runs = points.RunsOf(*index);
  replay.steps_per_second = std::accumulate(replay.runs.begin(), replay.runs.end(), 0.0) /
                            static_cast<double>(replay.runs.size());
  Prediction prediction = points.Summarize(*index);
  if (prediction.collectives.has_value())
    replay.collectives = std::move(prediction.collectives->collectives);
  ++statistics_.replays;
  statistics_.replayed_operations += points.Statistics().simulated_operations;
  simulation_.Add(points.Statistics());
  return replay;
}

absl::StatusOr<Replays::Full> Replays::InFull(const Strategy& strategy) {
  const absl::StatusOr<AppliedStrategy> applied =
      Apply(profile_, query_.scenario, strategy, costs_);
  if (!applied.ok()) return applied.status();
  PointSet points(applied->profile, query_.options, {.counter = counter_});
  const absl::StatusOr<size_t> index = points.AddAlone(applied->scenario, stop_);
  if (!index.ok()) return index.status();
  if (absl::Status status = points.RunAll(stop_, executor_); !status.ok()) return status;
  simulation_.Add(points.Statistics());
  return Full{.prediction = points.Summarize(*index), .runs = points.RunsOf(*index)};
}

absl::StatusOr<FoundStrategy> SearchStrategies(const Profile& profile, const StrategyQuery& query,
                                               const FusionCosts& costs,
                                               const std::vector<Strategy>& starts,
                                               Replays& replays, StopCheck stop) {
  return Search(profile, query, costs, replays, stop).Run(starts);
}

}  // namespace stepcast
