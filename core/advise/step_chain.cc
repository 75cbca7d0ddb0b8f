#include "core/advise/step_chain.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <unordered_map>

#include "core/base/index.h"

namespace stepcast {

namespace {

constexpr double kNever = std::numeric_limits<double>::infinity();
constexpr int32_t kPartitionChoices[] = {2, 3, 4, 6, 8, 12, 16};
// Below a tick, times are equal.
constexpr double kHardly = 1e-12;

}  // namespace

double SyncTimes::SecondsOf(const Range& range, int32_t partitions) {
  if (!status_.ok()) return 0;
  const auto [at, is_new] = known_.try_emplace({KeyOf(range), partitions}, 0);
  if (!is_new) return at->second;
  ++measured_;
  const absl::StatusOr<double> seconds = measure_(range, partitions);
  if (!seconds.ok()) {
    status_ = seconds.status();
    return 0;
  }
  return at->second = *seconds;
}

SyncTimes::Best SyncTimes::BestOf(const Range& range) {
  const auto [at, is_new] = best_.try_emplace(KeyOf(range));
  if (!is_new) return at->second;
  Best best{.partitions = 1, .seconds = SecondsOf(range, 1)};
  for (const int32_t partitions : kPartitionChoices) {
    if (partitions > max_partitions_ || partitions > range.bytes) break;
    const double seconds = SecondsOf(range, partitions);
    if (seconds < best.seconds * (1 - 1e-9)) best = {.partitions = partitions, .seconds = seconds};
  }
  return at->second = best;
}

StepChain::StepChain(const Profile& profile, const std::vector<double>& ready_seconds,
                     const FusionCosts& costs, SyncTimes& sync)
    : costs_(costs), sync_(sync) {
  const std::vector<Operation>& operations = profile.operations();
  // The stream that most gradients wait for.
  const std::vector<std::vector<int32_t>> streams = StreamOrders(profile);
  std::vector<size_t> waited(streams.size(), 0);
  for (const Operation& operation : operations) {
    if (!IsGradient(operation)) continue;
    for (const int32_t before : operation.waiting_for) {
      if (operations[Index(before)].resource == Resource::kWorker)
        ++waited[Index(operations[Index(before)].stream)];
    }
  }
  if (!streams.empty()) {
    computations_ = streams[static_cast<size_t>(std::max_element(waited.begin(), waited.end()) -
                                                waited.begin())];
  }
  std::vector<int32_t> position(operations.size(), -1);
  for (size_t i = 0; i < computations_.size(); ++i)
    position[Index(computations_[i])] = static_cast<int32_t>(i);
  int32_t after = -1;
  double last_ready = 0;
  for (size_t i = 0; i < operations.size(); ++i) {
    if (!IsGradient(operations[i])) continue;
    // Gradients before it go first, so it is as good as ready no sooner than they.
    for (const int32_t before : operations[i].waiting_for)
      after = std::max(after, position[Index(before)]);
    last_ready = std::max(last_ready, ready_seconds[i]);
    gradients_.push_back({.operation = static_cast<int32_t>(i),
                          .bytes = operations[i].size_bytes,
                          .after = after,
                          .ready_seconds = last_ready});
  }
  Prepare();
}

StepChain::StepChain(std::vector<int32_t> computations, std::vector<ChainGradient> gradients,
                     const FusionCosts& costs, SyncTimes& sync)
    : computations_(std::move(computations)),
      gradients_(std::move(gradients)),
      costs_(costs),
      sync_(sync) {
  Prepare();
}

void StepChain::Prepare() {
  prefix_.assign(1, 0);
  for (const int32_t operation : computations_)
    prefix_.push_back(prefix_.back() + costs_.SecondsOf(operation));
  prefix_bytes_.assign(1, 0);
  for (const ChainGradient& gradient : gradients_)
    prefix_bytes_.push_back(prefix_bytes_.back() + gradient.bytes);
  // A computation ends when the gradient that waits for it is ready; between two of those, as long
  // before the next one as what is computed until then takes.
  ends_.assign(computations_.size(), 0);
  std::vector<double> known(computations_.size(), -1);
  for (const ChainGradient& gradient : gradients_) {
    if (gradient.after < 0) continue;
    double& end = known[Index(gradient.after)];
    end = std::max(end, gradient.ready_seconds);
    last_producer_ = std::max(last_producer_, gradient.after);
  }
  double offset =
      last_producer_ >= 0 ? known[Index(last_producer_)] - prefix_[Index(last_producer_) + 1] : 0;
  for (size_t i = computations_.size(); i > 0; --i) {
    if (known[i - 1] >= 0) offset = known[i - 1] - prefix_[i];
    ends_[i - 1] = prefix_[i] + offset;
  }
}

std::optional<double> StepChain::SecondsOf(int32_t first, int32_t end) const {
  if (end - first == 1) return costs_.SecondsOf(computations_[Index(first)]);
  // Computations after the last gradient wait for gradients: never with what they wait for.
  if (first <= last_producer_ && end - 1 > last_producer_) return std::nullopt;
  const std::span<const int32_t> operations(computations_.data() + first, Index(end - first));
  if (costs_.InTable(operations)) return costs_.SecondsOf(operations);
  if (!costs_.share().has_value()) return std::nullopt;
  return *costs_.share() * SumOf(first, end - 1) + SumOf(end - 1, end);
}

SyncTimes::Range StepChain::RangeOf(int32_t first, int32_t end) const {
  return {.first = first,
          .count = end - first,
          .bytes = prefix_bytes_[Index(end)] - prefix_bytes_[Index(first)]};
}

ChainTimes StepChain::TimesOf(const ChainGrouping& grouping) const {
  ChainTimes times;
  std::vector<int32_t> group_of(computations_.size(), 0);
  double saved = 0;
  double tail = 0;
  double last_computed = 0;
  bool known = true;
  for (int32_t first = 0, i = 0; i < static_cast<int32_t>(computations_.size()); ++i) {
    group_of[Index(i)] = static_cast<int32_t>(times.computations.size());
    if (!grouping.computation_ends[Index(i)]) continue;
    const std::optional<double> seconds = SecondsOf(first, i + 1);
    known = known && seconds.has_value();
    saved += SumOf(first, i + 1) - seconds.value_or(0);
    times.computations.emplace_back(first, i + 1);
    times.computed.push_back(ends_[Index(i)] - saved);
    if (i <= last_producer_) last_computed = times.computed.back();
    if (first > last_producer_) tail += seconds.value_or(0);
    first = i + 1;
  }
  double end = 0;
  for (int32_t first = 0, i = 0; i < static_cast<int32_t>(gradients_.size()); ++i) {
    if (!grouping.gradient_ends[Index(i)]) continue;
    ChainTensor tensor{.range = RangeOf(first, i + 1)};
    const ChainGradient& last = gradients_[Index(i)];
    tensor.ready = last.ready_seconds;
    if (last.after >= 0) {
      tensor.after = group_of[Index(last.after)];
      tensor.ready = times.computed[Index(tensor.after)];
    }
    tensor.begin = std::max(tensor.ready, end);
    double seconds = 0;
    if (grouping.cuts) {
      const SyncTimes::Best best = sync_.BestOf(tensor.range);
      tensor.partitions = best.partitions;
      seconds = best.seconds;
    } else {
      seconds = sync_.SecondsOf(tensor.range);
    }
    tensor.end = end = tensor.begin + seconds;
    if (tensor.begin <= tensor.ready + kHardly)
      times.turn = static_cast<int32_t>(times.tensors.size());
    times.tensors.push_back(tensor);
    first = i + 1;
  }
  times.makespan = known ? std::max(last_computed, end) + tail : kNever;
  return times;
}

ChainGrouping StepChain::Alone() const {
  return {.computation_ends = std::vector<uint8_t>(computations_.size(), 1),
          .gradient_ends = std::vector<uint8_t>(gradients_.size(), 1)};
}

ChainGrouping StepChain::Coarsened() const {
  ChainGrouping coarse = Alone();
  std::vector<uint8_t> produces(computations_.size(), 0);
  for (size_t i = 0; i < gradients_.size(); ++i) {
    const int32_t after = gradients_[i].after;
    if (after >= 0) produces[Index(after)] = 1;
    if (i + 1 < gradients_.size() && gradients_[i + 1].after == after) coarse.gradient_ends[i] = 0;
  }
  for (int32_t first = 0, i = 0; i < static_cast<int32_t>(computations_.size()); ++i) {
    if (!produces[Index(i)]) continue;
    const std::optional<double> seconds = SecondsOf(first, i + 1);
    if (seconds.has_value() && *seconds <= SumOf(first, i + 1)) {
      for (int32_t inside = first; inside < i; ++inside) coarse.computation_ends[Index(inside)] = 0;
    }
    first = i + 1;
  }
  return coarse;
}

ChainGrouping StepChain::WithTensors(const ChainGrouping& computations_of,
                                     std::span<const int32_t> gradient_counts) const {
  ChainGrouping grouping = computations_of;
  std::fill(grouping.gradient_ends.begin(), grouping.gradient_ends.end(), 0);
  size_t end = 0;
  for (const int32_t count : gradient_counts) {
    end += Index(count);
    if (end > 0 && end <= gradients_.size()) grouping.gradient_ends[end - 1] = 1;
  }
  if (!gradients_.empty()) grouping.gradient_ends.back() = 1;
  return grouping;
}

void StepChain::FuseTensors(const ChainTimes& times, size_t first, size_t last,
                            ChainGrouping& grouping) const {
  for (size_t t = first; t < last; ++t) {
    const SyncTimes::Range& range = times.tensors[t].range;
    grouping.gradient_ends[Index(range.first + range.count - 1)] = 0;
  }
}

bool StepChain::FuseComputations(const ChainTimes& times, int32_t first, int32_t last,
                                 ChainGrouping& grouping) const {
  const int32_t begin = times.computations[Index(first)].first;
  const int32_t end = times.computations[Index(last)].second;
  const std::optional<double> fused = SecondsOf(begin, end);
  if (!fused.has_value()) return false;
  double apart = 0;
  for (int32_t g = first; g <= last; ++g) {
    const auto [from, to] = times.computations[Index(g)];
    apart += SecondsOf(from, to).value_or(0);
  }
  if (*fused > apart) return false;
  for (int32_t inside = begin; inside + 1 < end; ++inside)
    grouping.computation_ends[Index(inside)] = 0;
  return true;
}

absl::StatusOr<ChainGrouping> StepChain::Decide(ChainGrouping grouping, StopCheck stop) const {
  const auto seconds_of = [&](const SyncTimes::Range& range) {
    return grouping.cuts ? sync_.BestOf(range).seconds : sync_.SecondsOf(range);
  };
  const auto goes_on = [&] {
    if (absl::Status status = stop(); !status.ok()) return status;
    return sync_.status();
  };
  ChainTimes times = TimesOf(grouping);
  // Computations of the critical path.
  int32_t last = times.turn >= 0 ? times.tensors[Index(times.turn)].after
                                 : static_cast<int32_t>(times.computations.size()) - 1;
  for (int32_t n = 1; n <= last;) {
    if (absl::Status status = goes_on(); !status.ok()) return status;
    double sync_before = 0;
    size_t first_tensor = times.tensors.size();
    size_t last_tensor = 0;
    for (size_t t = 0; t < times.tensors.size(); ++t) {
      const int32_t after = times.tensors[t].after;
      if (after == n - 1) sync_before += times.tensors[t].end - times.tensors[t].begin;
      if (after != n - 1 && after != n) continue;
      first_tensor = std::min(first_tensor, t);
      last_tensor = t;
    }
    const auto [first, middle] = times.computations[Index(n - 1)];
    const int32_t end = times.computations[Index(n)].second;
    const std::optional<double> fused = SecondsOf(first, end);
    if (!fused.has_value() ||
        !FusingOperationsPays(sync_before, SecondsOf(first, middle).value_or(0),
                              SecondsOf(middle, end).value_or(0), *fused)) {
      ++n;
      continue;
    }
    grouping.computation_ends[Index(middle - 1)] = 0;
    if (first_tensor < last_tensor) FuseTensors(times, first_tensor, last_tensor, grouping);
    times = TimesOf(grouping);
    --last;
  }
  // Tensors of it.
  for (size_t t = static_cast<size_t>(std::max(times.turn, 0)) + 1; t < times.tensors.size();) {
    if (absl::Status status = goes_on(); !status.ok()) return status;
    const ChainTensor& before = times.tensors[t - 1];
    const ChainTensor& tensor = times.tensors[t];
    const double both =
        seconds_of(RangeOf(before.range.first, tensor.range.first + tensor.range.count));
    if (!FusingTensorsPays(before.end, tensor.ready, both, seconds_of(tensor.range))) {
      ++t;
      continue;
    }
    FuseTensors(times, t - 1, t, grouping);
    if (before.after >= 0 && before.after < tensor.after)
      FuseComputations(times, before.after, tensor.after, grouping);
    times = TimesOf(grouping);
  }
  if (absl::Status status = goes_on(); !status.ok()) return status;
  return grouping;
}

Strategy StepChain::StrategyOf(const ChainGrouping& grouping) const {
  Strategy strategy;
  const ChainTimes times = TimesOf(grouping);
  for (const auto& [first, end] : times.computations) {
    if (end - first > 1)
      strategy.fused.emplace_back(computations_.begin() + first, computations_.begin() + end);
  }
  for (const ChainTensor& tensor : times.tensors) {
    FusedTensors& fused = strategy.tensors.emplace_back();
    fused.partitions = tensor.partitions;
    for (int32_t i = tensor.range.first; i < tensor.range.first + tensor.range.count; ++i)
      fused.gradients.push_back(gradients_[Index(i)].operation);
  }
  return strategy;
}

ChainGrouping StepChain::GroupingOf(const Strategy& strategy) const {
  ChainGrouping grouping = Alone();
  std::unordered_map<int32_t, size_t> position;
  for (size_t i = 0; i < computations_.size(); ++i) position[computations_[i]] = i;
  for (const std::vector<int32_t>& fused : strategy.fused) {
    for (size_t i = 0; i + 1 < fused.size(); ++i)
      grouping.computation_ends[position.at(fused[i])] = 0;
  }
  std::vector<int32_t> counts;
  for (const FusedTensors& tensors : strategy.tensors) {
    counts.push_back(static_cast<int32_t>(tensors.gradients.size()));
    grouping.cuts = grouping.cuts || tensors.partitions > 1;
  }
  ChainGrouping made = WithTensors(grouping, counts);
  made.cuts = grouping.cuts;
  return made;
}

}  // namespace stepcast
