#include "core/advise/group_rules.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <queue>
#include <utility>

#include "core/base/index.h"

namespace stepcast {

namespace {

std::vector<double> BytesBefore(std::span<const ReadyGradient> gradients) {
  std::vector<double> before = {0};
  for (const ReadyGradient& gradient : gradients)
    before.push_back(before.back() + static_cast<double>(gradient.bytes));
  return before;
}

// The number of consecutive gradients, from `first` on and before `end`, in its buffer.
size_t BufferAt(std::span<const ReadyGradient> gradients, size_t first, size_t end,
                int64_t fusion_bytes) {
  int64_t left = fusion_bytes - gradients[first].bytes;
  size_t next = first + 1;
  for (; next < end && gradients[next].bytes <= left; ++next) left -= gradients[next].bytes;
  return next - first;
}

// `delay`: of the gradients behind their own clock, which `all_reduce(bytes, begin)` may let grow;
// it returns its seconds.
template <typename AllReduce>
std::vector<HorovodBuffer> BuffersOfCycles(std::span<const ReadyGradient> gradients,
                                           const HorovodCycles& cycles, const double& delay,
                                           AllReduce all_reduce) {
  std::vector<HorovodBuffer> buffers;
  double cycle = cycles.first_seconds;
  for (size_t next = 0; next < gradients.size();) {
    // Cycles that find nothing pass.
    const double ready = gradients[next].ready_seconds + delay;
    if (ready > cycle) {
      const double length = cycles.cycle_seconds;
      const double passed = length > 0 ? std::ceil((ready - cycle) / length) * length : 0;
      cycle = std::max(cycle + passed, ready);  // with a length no more, but for rounding
    }
    size_t end = next + 1;
    while (end < gradients.size() && gradients[end].ready_seconds + delay <= cycle) ++end;
    double now = cycle;
    while (next < end) {
      const size_t count = BufferAt(gradients, next, end, cycles.fusion_bytes);
      double bytes = 0;
      for (const ReadyGradient& gradient : gradients.subspan(next, count))
        bytes += static_cast<double>(gradient.bytes);
      const double done = now + all_reduce(bytes, now);
      buffers.push_back({.gradients = static_cast<int32_t>(count),
                         .cycle_seconds = cycle,
                         .begin_seconds = now,
                         .end_seconds = done});
      now = done;
      next += count;
    }
    cycle = std::max(cycle + cycles.cycle_seconds, now);
  }
  return buffers;
}

}  // namespace

std::vector<ReadyGradient> GradientsOf(std::span<const BackwardLayer> layers) {
  std::vector<ReadyGradient> gradients;
  double now = 0;
  for (const BackwardLayer& layer : layers) {
    now += layer.seconds;
    if (layer.bytes > 0) gradients.push_back({.ready_seconds = now, .bytes = layer.bytes});
  }
  return gradients;
}

std::vector<int32_t> LayersByGroup(std::span<const BackwardLayer> layers,
                                   std::span<const int32_t> gradients_by_group) {
  std::vector<int32_t> counts;
  size_t next = 0;
  for (const int32_t gradients : gradients_by_group) {
    const size_t first = next;
    for (int32_t left = gradients; left > 0; ++next) left -= layers[next].bytes > 0 ? 1 : 0;
    counts.push_back(static_cast<int32_t>(next - first));
  }
  const auto rest = static_cast<int32_t>(layers.size() - next);
  if (counts.empty() && rest > 0) counts.push_back(0);
  if (!counts.empty()) counts.back() += rest;
  return counts;
}

double SerialEnd(std::span<const ReadyGradient> gradients,
                 std::span<const int32_t> gradients_by_group, SecondsOfBytes seconds_of) {
  double end = 0;
  size_t next = 0;
  for (const int32_t count : gradients_by_group) {
    double bytes = 0;
    for (const ReadyGradient& gradient : gradients.subspan(next, Index(count)))
      bytes += static_cast<double>(gradient.bytes);
    next += Index(count);
    end = std::max(end, gradients[next - 1].ready_seconds) + seconds_of(bytes);
  }
  return end;
}

absl::StatusOr<std::vector<int32_t>> EarliestEndGroups(std::span<const ReadyGradient> gradients,
                                                       SecondsOfBytes seconds_of, StopCheck stop) {
  struct Best {
    double end = std::numeric_limits<double>::infinity();
    int32_t groups = 0;
    size_t begin = 0;  // of the last group
  };
  const std::vector<double> bytes = BytesBefore(gradients);
  std::vector<Best> best(gradients.size() + 1);
  best[0] = {.end = 0};
  PacedStopCheck paced(stop);
  for (size_t end = 1; end <= gradients.size(); ++end) {
    for (size_t begin = 0; begin < end; ++begin) {
      const Best candidate{.end = std::max(best[begin].end, gradients[end - 1].ready_seconds) +
                                  seconds_of(bytes[end] - bytes[begin]),
                           .groups = best[begin].groups + 1,
                           .begin = begin};
      if (candidate.end > best[end].end ||
          (candidate.end == best[end].end && candidate.groups >= best[end].groups))
        continue;
      best[end] = candidate;
    }
    if (!paced.GoesOn(static_cast<int64_t>(end))) return paced.status();
  }
  std::vector<int32_t> counts;
  for (size_t end = gradients.size(); end > 0; end = best[end].begin)
    counts.push_back(static_cast<int32_t>(end - best[end].begin));
  std::reverse(counts.begin(), counts.end());
  return counts;
}

std::vector<int32_t> MgWfbpGroups(std::span<const ReadyGradient> gradients, double startup_seconds,
                                  SecondsOfBytes seconds_of) {
  std::vector<int32_t> counts;
  double end_before = 0;
  double bytes = 0;
  int32_t count = 0;
  for (size_t i = 0; i < gradients.size(); ++i) {
    bytes += static_cast<double>(gradients[i].bytes);
    ++count;
    const double begin = std::max(end_before, gradients[i].ready_seconds);
    if (i + 1 < gradients.size() && gradients[i + 1].ready_seconds < begin + startup_seconds)
      continue;
    counts.push_back(count);
    end_before = begin + seconds_of(bytes);
    bytes = 0;
    count = 0;
  }
  return counts;
}

std::vector<HorovodBuffer> HorovodBuffers(std::span<const ReadyGradient> gradients,
                                          const HorovodCycles& cycles, SecondsOfBytes seconds_of) {
  const double delay = 0;
  return BuffersOfCycles(gradients, cycles, delay,
                         [&](double bytes, double /*begin*/) { return seconds_of(bytes); });
}

HorovodTime HorovodBackward(std::span<const BackwardLayer> layers, const OverlapSetting& setting,
                            const HorovodCycles& cycles,
                            absl::FunctionRef<int32_t(double bytes)> threads_of) {
  double total = 0;
  for (const BackwardLayer& layer : layers) total += layer.seconds;
  HorovodTime time;
  double delay = 0;
  const auto all_reduce = [&](double bytes, double begin) {
    const double left = std::max(0.0, total - (begin - delay));
    const OverlapStage stage = OverlapOf(RatesOf(setting, threads_of(bytes)), bytes, left);
    time.exposed_seconds += stage.communication;
    delay += stage.overlapped - (left - stage.computation);
    return stage.overlapped + stage.communication;
  };
  time.buffers = BuffersOfCycles(GradientsOf(layers), cycles, delay, all_reduce);
  time.seconds = total + delay;
  if (!time.buffers.empty()) time.seconds = std::max(time.seconds, time.buffers.back().end_seconds);
  return time;
}

namespace {

class LightestMerger {
 public:
  explicit LightestMerger(std::vector<LayerBlock> blocks) : blocks_(std::move(blocks)) {
    for (const LayerBlock& block : blocks_) {
      bytes_ += block.bytes;
      seconds_ += block.seconds;
    }
    const auto count = static_cast<int32_t>(blocks_.size());
    for (int32_t i = 0; i < count; ++i) {
      next_.push_back(i + 1);
      previous_.push_back(i - 1);
      Offer(i);
    }
  }

  std::vector<LayerBlock> DownTo(size_t most) && {
    for (size_t left = blocks_.size(); left > most;) {
      const Pair pair = pairs_.top();
      pairs_.pop();
      if (!IsCurrent(pair)) continue;
      Merge(pair.first);
      --left;
    }
    std::vector<LayerBlock> merged;
    for (const LayerBlock& block : blocks_) {
      if (block.count > 0) merged.push_back(block);
    }
    return merged;
  }

 private:
  // Two neighbours, as they were when they were weighed.
  struct Pair {
    double weight = 0;
    int32_t first = 0;
    int32_t layers = 0;

    bool operator<(const Pair& other) const {  // the lightest, then the first, on top
      return std::pair(weight, first) > std::pair(other.weight, other.first);
    }
  };

  bool HasNext(int32_t i) const { return next_[Index(i)] < static_cast<int32_t>(blocks_.size()); }
  int32_t LayersOf(int32_t i) const {
    return blocks_[Index(i)].count + blocks_[Index(next_[Index(i)])].count;
  }
  bool IsCurrent(const Pair& pair) const {
    return blocks_[Index(pair.first)].count > 0 && HasNext(pair.first) &&
           LayersOf(pair.first) == pair.layers;
  }
  void Offer(int32_t i) {
    if (i < 0 || !HasNext(i)) return;
    const LayerBlock& a = blocks_[Index(i)];
    const LayerBlock& b = blocks_[Index(next_[Index(i)])];
    const double of_seconds = seconds_ > 0 ? (a.seconds + b.seconds) / seconds_ : 0;
    pairs_.push(
        {.weight = (a.bytes + b.bytes) / bytes_ + of_seconds, .first = i, .layers = LayersOf(i)});
  }
  void Merge(int32_t i) {
    const int32_t other = next_[Index(i)];
    LayerBlock& a = blocks_[Index(i)];
    LayerBlock& b = blocks_[Index(other)];
    a.count += std::exchange(b.count, 0);
    a.bytes += b.bytes;
    a.seconds += b.seconds;
    a.ready = b.ready;
    next_[Index(i)] = next_[Index(other)];
    if (HasNext(i)) previous_[Index(next_[Index(i)])] = i;
    Offer(i);
    Offer(previous_[Index(i)]);
  }

  std::vector<LayerBlock> blocks_;  // merged into another: of no layers
  std::vector<int32_t> next_;
  std::vector<int32_t> previous_;
  double bytes_ = 0;
  double seconds_ = 0;
  std::priority_queue<Pair> pairs_;
};

}  // namespace

std::vector<LayerBlock> BlocksOf(std::span<const BackwardLayer> layers,
                                 std::span<const int32_t> layers_by_group) {
  std::vector<LayerBlock> blocks;
  LayerBlock block;
  double now = 0;
  for (const int32_t count : layers_by_group) {
    for (int32_t i = 0; i < count; ++i) {
      const BackwardLayer& layer = layers[Index(block.first + block.count)];
      ++block.count;
      now += layer.seconds;
      block.seconds += layer.seconds;
      block.bytes += static_cast<double>(layer.bytes);
      if (layer.bytes > 0) block.ready = now;
    }
    if (!(block.bytes > 0)) continue;
    const int32_t next = block.first + block.count;
    blocks.push_back(std::exchange(block, {.first = next}));
  }
  if (!blocks.empty()) blocks.back().count += block.count;
  return blocks;
}

std::vector<LayerBlock> MergedLightest(std::vector<LayerBlock> blocks, size_t most) {
  return LightestMerger(std::move(blocks)).DownTo(most);
}

}  // namespace stepcast
