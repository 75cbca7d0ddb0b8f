#include "core/advise/method_trials.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <map>
#include <memory>
#include <numeric>

#include "core/communication/all_reduce.h"
#include "core/engine/simulation.h"
#include "core/model/scenario_edits.h"

namespace stepcast {

namespace {

constexpr double kFusionMebibytes[] = {1, 2, 4, 8, 16, 32, 64, 128};
constexpr double kCycleSeconds[] = {0.001, 0.0025, 0.005, 0.01};

// ByteScheduler's own partition of 1,000,000 parameters first: it is kept where another one is no
// faster; 0: tensors are whole.
constexpr int64_t kPartitionBytes[] = {4'000'000,  1'000'000,  2'000'000, 8'000'000,
                                       16'000'000, 32'000'000, 0};
// Credits in partitions.
constexpr int64_t kOwnCredit = 4;
constexpr int64_t kCreditPartitions[] = {1, 2, 16};

// Gradients of which every grouping is simulated: 2^(n-1) of them.
constexpr size_t kExhaustiveGradients = 9;
// Rounds of a search over more gradients, and groupings that are simulated in each: fewer of many
// workers, of which each takes longer.
constexpr int kSearchRounds = 12;
constexpr size_t kTriesOfARound = 24;
constexpr int32_t kManyWorkers = 512;
// The length of a chain over that of the best so far, beyond which a grouping is not simulated.
constexpr double kChainMargin = 1.05;

class MethodTrials {
 public:
  MethodTrials(const Profile& profile, const Scenario& scenario, const TuningQuery& query,
               PointSet& points, StopCheck stop, const Executor& executor)
      : profile_(profile),
        scenario_(scenario),
        query_(query),
        points_(points),
        stop_(stop),
        executor_(executor) {}

  absl::StatusOr<TriedMethods> Run() && {
    const absl::StatusOr<std::optional<size_t>> base = Try(scenario_.fusion());
    if (!base.ok()) return base.status();
    if (!base->has_value()) return TimeBudgetSpent();  // it was checked when it was resolved
    made_.base = **base;
    // Gradients are ready at the same times with and without contention, but for it: no grouping
    // has them ready sooner.
    const absl::StatusOr<std::optional<size_t>> unfused =
        TryScenario(Uncontended(WithFusion(scenario_, Fusion{})));
    if (!unfused.ok()) return unfused.status();
    if (absl::Status status = Simulate(); !status.ok()) return status;
    if (!points_.HasRun(made_.base)) return TimeBudgetSpent();
    if (unfused->has_value() && points_.HasRun(**unfused)) {
      made_.chain = std::make_unique<GradientChain>(
          points_.Summarize(**unfused).collectives->collectives, scenario_);
      made_.layers = BackwardLayers();
    }
    for (const TuningMethod method : query_.methods) {
      const absl::StatusOr<std::optional<size_t>> found = Find(method);
      if (!found.ok()) return found.status();
      if (found->has_value()) made_.found.emplace_back(method, **found);
    }
    for (auto& [method, index] : made_.found) {
      // A point that has been tried is in the set: adding it in full cannot fail but by `stop`.
      const absl::StatusOr<size_t> added = points_.AddAlone(points_.scenario(index), stop_);
      if (!added.ok() && !IsTimeBudgetSpent(added.status())) return added.status();
    }
    if (absl::Status status = Simulate(); !status.ok()) return status;
    return std::move(made_);
  }

 private:
  // The point of that fusion; none: in its groups a collective would wait for itself, or time is
  // spent.
  absl::StatusOr<std::optional<size_t>> Try(Fusion fusion) {
    return TryScenario(WithFusion(scenario_, std::move(fusion)));
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

  // The fastest of what was tried, the first of those that are as fast.
  std::optional<size_t> Fastest(const std::vector<std::optional<size_t>>& tried) const {
    std::optional<size_t> best;
    for (const std::optional<size_t>& index : tried) {
      if (!index.has_value() || !points_.HasRun(*index)) continue;
      constexpr double kMore = 1 + 1e-9;
      if (!best.has_value() ||
          StepsPerSecond(points_, *index) > kMore * StepsPerSecond(points_, *best))
        best = index;
    }
    return best;
  }

  absl::StatusOr<std::optional<size_t>> Find(TuningMethod method) {
    switch (method) {
      case TuningMethod::kAsRecorded:
        return made_.base;
      case TuningMethod::kDdpBuckets:
        return SweepCaps();
      case TuningMethod::kHorovod:
        return SweepCycles();
      case TuningMethod::kMgWfbp:
        return Merge();
      case TuningMethod::kByteScheduler:
        return SweepPartitions();
      case TuningMethod::kLibra:
      case TuningMethod::kLibraM:
        return Allocate(method);
      case TuningMethod::kSearch:
        return Search();
      case TuningMethod::kSequential:
        return TogetherAll();
      case TuningMethod::kMgCf:
        return MergeWithoutContention();
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
      made_.curve.push_back({.cap_bytes = cap,
                             .step_seconds = prediction.step_time.mean,
                             .examples_per_second = prediction.examples_per_second,
                             .confidence_interval = prediction.simulation_interval});
    }
    // Caps nearest to PyTorch's own go first: of those about as good, the least change is taken.
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
          StepsPerSecond(points_, *index) >= (1 - kLeastGain) * StepsPerSecond(points_, *fastest))
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
      if (absl::Status status = attempt(*mebibytes * (1 << 20), kHorovodCycleSeconds); !status.ok())
        return status;
    }
    if (absl::Status status = Simulate(); !status.ok()) return status;
    const std::optional<size_t> best = Fastest(tried);
    if (!best.has_value()) return best;
    const auto& fastest = std::get<Horovod>(points_.scenario(*best).fusion());
    const auto fusion_bytes = static_cast<double>(fastest.fusion_bytes);
    tried = {best};
    for (const double seconds : kCycleSeconds) {
      if (absl::Status status = attempt(fusion_bytes, seconds); !status.ok()) return status;
    }
    if (absl::Status status = Simulate(); !status.ok()) return status;
    return Fastest(tried);
  }

  // Partitions first, with ByteScheduler's own credit of four of them; then other credits.
  absl::StatusOr<std::optional<size_t>> SweepPartitions() {
    std::vector<std::optional<size_t>> tried;
    const auto attempt = [&](int64_t partition_bytes, int64_t partitions) {
      if (!CanPartition(partition_bytes)) return absl::OkStatus();
      const int64_t of_one = partition_bytes > 0 ? partition_bytes : LargestGradient();
      const absl::StatusOr<std::optional<size_t>> index = TryScenario(WithFusion(
          scenario_, ByteScheduler{.credit_bytes = std::max<int64_t>(1, partitions * of_one)},
          partition_bytes));
      if (index.ok()) tried.push_back(*index);
      return index.status();
    };
    for (const int64_t bytes : kPartitionBytes) {
      if (absl::Status status = attempt(bytes, kOwnCredit); !status.ok()) return status;
    }
    if (absl::Status status = Simulate(); !status.ok()) return status;
    const std::optional<size_t> best = Fastest(tried);
    if (!best.has_value()) return best;
    const int64_t partition_bytes = points_.scenario(*best).partition_bytes();
    tried = {best};
    for (const int64_t partitions : kCreditPartitions) {
      if (absl::Status status = attempt(partition_bytes, partitions); !status.ok()) return status;
    }
    if (absl::Status status = Simulate(); !status.ok()) return status;
    return Fastest(tried);
  }

  int64_t LargestGradient() const {
    int64_t largest = 1;
    for (const Operation& operation : profile_.operations())
      largest = std::max(largest, operation.size_bytes);
    return largest;
  }

  // True if the simulation takes so many pieces.
  bool CanPartition(int64_t partition_bytes) const {
    auto pieces = static_cast<int64_t>(profile_.operations().size());
    for (const Operation& operation : profile_.operations())
      pieces += partition_bytes > 0 ? operation.size_bytes / partition_bytes : 0;
    return pieces <= AllReduceLimits{}.max_pieces &&
           pieces * scenario_.workers <= kMaxWorkerOperations / 2;
  }

  RecordedBuckets BucketsOf(const std::vector<int32_t>& counts) const {
    return {.sizes_bytes = made_.chain->BytesOf(counts), .rule = std::nullopt};
  }

  // Tries the scenario, and runs it. None: in its groups a collective would wait for itself.
  absl::StatusOr<std::optional<size_t>> Run(const Scenario& scenario) {
    absl::StatusOr<std::optional<size_t>> index = TryScenario(scenario);
    if (!index.ok()) return index;
    if (absl::Status status = Simulate(); !status.ok()) return status;
    return index;
  }

  bool HasChain() const { return made_.chain != nullptr && made_.chain->size() > 0; }

  absl::StatusOr<std::optional<size_t>> TogetherAll() {
    if (!HasChain()) return made_.base;
    return Run(WithFusion(scenario_, BucketsOf({static_cast<int32_t>(made_.chain->size())})));
  }

  // Nothing where the value's work ended for the time budget.
  template <typename Value>
  static absl::StatusOr<std::optional<size_t>> LeftOut(const absl::StatusOr<Value>& value) {
    if (IsTimeBudgetSpent(value.status())) return std::nullopt;
    return value.status();
  }

  absl::StatusOr<std::optional<size_t>> Merge() {
    if (!HasChain()) return made_.base;
    const absl::StatusOr<std::vector<int32_t>> counts = made_.chain->SoonestEnd(stop_);
    if (!counts.ok()) return LeftOut(counts);
    return Run(WithFusion(scenario_, BucketsOf(*counts)));
  }

  // Computation at its own speed, and collectives at the rates that they have alone.
  absl::StatusOr<std::optional<size_t>> MergeWithoutContention() {
    if (!HasChain()) return made_.base;
    const absl::StatusOr<std::vector<int32_t>> counts = made_.chain->SoonestEnd(stop_);
    if (!counts.ok()) return LeftOut(counts);
    return Run(AsIfAlone(WithFusion(scenario_, BucketsOf(*counts))));
  }

  // The chain as LIBRA sees it: what is computed between one gradient and the next, from the first
  // computation that a gradient waits for.
  std::vector<BackwardLayer> BackwardLayers() const {
    double before = BackwardBegin();
    std::vector<BackwardLayer> layers;
    for (const ReadyGradient& gradient : made_.chain->gradients()) {
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
      if (!made_.chain->Has(gradient.name)) continue;
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

  absl::StatusOr<ThreadAllocation> AllocationOf(TuningMethod method) const {
    const OverlapSetting setting = OverlapSettingOf(scenario_);
    if (method == TuningMethod::kLibra)
      return AllocateThreads(made_.layers, setting, query_.allocation, stop_);
    const absl::StatusOr<std::vector<int32_t>> counts = made_.chain->SoonestEnd(stop_);
    if (!counts.ok()) return counts.status();
    return AllocateThreadsToGroups(made_.layers, *counts, setting, query_.allocation, stop_);
  }

  absl::StatusOr<std::optional<size_t>> Allocate(TuningMethod method) {
    if (!HasChain()) return made_.base;
    absl::StatusOr<ThreadAllocation> allocation = AllocationOf(method);
    if (!allocation.ok()) return LeftOut(allocation);
    GradientGroups groups;
    for (const TensorGroup& group : allocation->groups) {
      GradientGroup& carried = groups.groups.emplace_back();
      carried.threads = group.threads;
      for (int32_t i = group.first; i < group.first + group.count; ++i)
        carried.operations.push_back(made_.chain->names()[Index(i)]);
    }
    absl::StatusOr<std::optional<size_t>> index = Run(WithFusion(scenario_, std::move(groups)));
    if (index.ok() && method == TuningMethod::kLibra) {
      made_.allocation = *std::move(allocation);
      made_.libra = *index;
    }
    return index;
  }

  // Simulates groupings, each once; the fastest of them.
  absl::StatusOr<std::optional<size_t>> TryAll(const std::vector<std::vector<int32_t>>& groupings) {
    std::vector<std::optional<size_t>> tried;
    for (const std::vector<int32_t>& counts : groupings) {
      const auto [at, is_new] = known_.try_emplace(counts);
      if (!is_new) {
        tried.push_back(at->second);
        continue;
      }
      absl::StatusOr<std::optional<size_t>> index = Try(BucketsOf(counts));
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
    const auto size = static_cast<int32_t>(made_.chain->size());
    std::vector<std::vector<int32_t>> groupings = {std::vector<int32_t>(made_.chain->size(), 1),
                                                   {size}};
    absl::StatusOr<std::vector<int32_t>> soonest = made_.chain->SoonestEnd(stop_);
    if (!soonest.ok()) return soonest.status();
    groupings.push_back(*std::move(soonest));
    for (const int64_t cap : query_.bucket_caps_bytes) {
      groupings.push_back(GradientsByBucket(
          made_.chain->bytes(),
          AsSent({.first_bytes = std::min(query_.first_bucket_bytes, cap), .cap_bytes = cap},
                 profile_.content().buckets)));
    }
    return groupings;
  }

  absl::StatusOr<std::optional<size_t>> Search() {
    std::vector<std::optional<size_t>> best = {made_.base};
    for (const auto& [method, index] : made_.found) {
      if (method != TuningMethod::kMgCf) best.emplace_back(index);
    }
    if (!HasChain()) return Fastest(best);
    if (made_.chain->size() <= kExhaustiveGradients) {
      absl::StatusOr<std::optional<size_t>> found = TryAll(AllGroupings(made_.chain->size()));
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
    const double end = made_.chain->EndOf(counts);
    std::vector<std::pair<double, std::vector<int32_t>>> promising;
    for (std::vector<int32_t>& neighbour : OneBoundaryAway(counts)) {
      if (known_.contains(neighbour)) continue;
      const double promised = made_.chain->EndOf(neighbour);
      if (promised <= kChainMargin * end) promising.emplace_back(promised, std::move(neighbour));
    }
    std::sort(promising.begin(), promising.end());
    promising.resize(
        std::min(promising.size(), kTriesOfARound / (1 + Index(scenario_.workers / kManyWorkers))));
    std::vector<std::vector<int32_t>> neighbours;
    neighbours.reserve(promising.size());
    for (auto& [promised, neighbour] : promising) neighbours.push_back(std::move(neighbour));
    return neighbours;
  }

  const Profile& profile_;
  const Scenario& scenario_;
  const TuningQuery& query_;
  PointSet& points_;
  const StopCheck stop_;
  const Executor& executor_;
  bool is_spent_ = false;
  TriedMethods made_;
  std::map<std::vector<int32_t>, std::optional<size_t>> known_;  // of the search
  std::map<size_t, std::vector<int32_t>> groups_of_;             // likewise, by point
};

}  // namespace

double StepsPerSecond(const PointSet& points, size_t index) {
  if (!points.HasRun(index)) return 0;
  const std::vector<double> runs = points.RunsOf(index);
  return std::accumulate(runs.begin(), runs.end(), 0.0) / static_cast<double>(runs.size());
}

OverlapSetting OverlapSettingOf(const Scenario& scenario) {
  const AllReduce& job = scenario.all_reduce();
  return {.workers = scenario.workers,
          .latency_seconds = job.latency_seconds,
          .contention =
              job.contention.value_or(WithoutContention(scenario.bandwidth_bytes_per_second))};
}

absl::StatusOr<TriedMethods> TryMethods(const Profile& profile, const Scenario& scenario,
                                        const TuningQuery& query, PointSet& points, StopCheck stop,
                                        const Executor& executor) {
  return MethodTrials(profile, scenario, query, points, stop, executor).Run();
}

}  // namespace stepcast
