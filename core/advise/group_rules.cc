#include "core/advise/group_rules.h"

#include <algorithm>
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

}  // namespace

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
