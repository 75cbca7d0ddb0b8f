#include "core/advise/thread_allocation.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "absl/strings/str_cat.h"

#include "core/advise/group_rules.h"
#include "core/base/error.h"
#include "core/base/index.h"

namespace stepcast {

namespace {

constexpr double kNoTime = std::numeric_limits<double>::infinity();
// The share by which an edge may come before what ends there: both are sums of rounded numbers.
constexpr double kEdgeRounding = 1e-12;
// Additions of a table in the time of a unit of StopCheck.
constexpr int64_t kAdditionsPerUnit = 16;
// Each has a table of its own.
constexpr size_t kMaxGivenGroups = 10'000;

// Times of a chain of blocks, and the options by which it is cut.
struct ChunkedChain {
  std::vector<LayerBlock> blocks;
  std::vector<CollectiveRates> rates;
  int32_t chunks = 0;
  double chunk_seconds = 0;

  // The first edge at which all up to a block has been computed.
  int32_t FirstEdge(const LayerBlock& block) const {
    if (!(chunk_seconds > 0)) return chunks;
    const double edge = std::ceil(block.ready / chunk_seconds * (1 - kEdgeRounding));
    return static_cast<int32_t>(std::min<double>(edge, chunks));
  }
};

// The time of a stage by the chunks that it computes, least over the numbers of threads: where
// computation goes on after it, and so the all-reduce has ended, and at the end of the pass.
struct StageCosts {
  std::vector<double> within;
  std::vector<double> at_end;
};

class StageTable {
 public:
  explicit StageTable(const ChunkedChain& chain) : chain_(chain) {}

  StageCosts CostsOf(double bytes) const {
    const size_t sizes = Index(chain_.chunks) + 1;
    StageCosts costs{.within = std::vector<double>(sizes, kNoTime),
                     .at_end = std::vector<double>(sizes, kNoTime)};
    for (const CollectiveRates& rates : chain_.rates) {
      for (size_t chunks = 0; chunks < sizes; ++chunks) {
        const OverlapStage stage = StageOf(rates, bytes, static_cast<int32_t>(chunks));
        const double seconds = stage.Seconds();
        costs.at_end[chunks] = std::min(costs.at_end[chunks], seconds);
        if (!(stage.communication > 0))
          costs.within[chunks] = std::min(costs.within[chunks], seconds);
      }
    }
    return costs;
  }

  // The first number of threads with the least time.
  int32_t ThreadsOf(double bytes, int32_t chunks, bool is_at_end) const {
    double least = kNoTime;
    int32_t threads = chain_.rates.front().threads;
    for (const CollectiveRates& rates : chain_.rates) {
      const OverlapStage stage = StageOf(rates, bytes, chunks);
      if (!is_at_end && stage.communication > 0) continue;
      if (stage.Seconds() >= least) continue;
      least = stage.Seconds();
      threads = rates.threads;
    }
    return threads;
  }

 private:
  OverlapStage StageOf(const CollectiveRates& rates, double bytes, int32_t chunks) const {
    return OverlapOf(rates, bytes, chunks * chain_.chunk_seconds);
  }

  const ChunkedChain& chain_;
};

// T(i, l, .) for one i and l: seconds by chunks computed, after the last group's stage.
using TimesByChunk = std::vector<double>;

// The best of `times` and of a stage after `before` that begins at `first_edge` or later.
void Extend(const TimesByChunk& before, const StageCosts& costs, int32_t first_edge,
            TimesByChunk& times) {
  const size_t end = times.size() - 1;
  for (size_t from = Index(first_edge); from <= end; ++from) {
    const double base = before[from];
    if (base == kNoTime) continue;
    for (size_t to = from; to < end; ++to)
      times[to] = std::min(times[to], base + costs.within[to - from]);
    times[end] = std::min(times[end], base + costs.at_end[end - from]);
  }
}

// A stage's begin by which `times[to]` was reached from `before`; -1: by none.
int32_t BeginOf(const TimesByChunk& before, const StageCosts& costs, int32_t first_edge,
                double to_time, int32_t to, int32_t end) {
  for (int32_t from = first_edge; from <= to; ++from) {
    const double cost = (to == end ? costs.at_end : costs.within)[Index(to - from)];
    if (before[Index(from)] + cost == to_time) return from;
  }
  return -1;
}

TimesByChunk TimesBefore(const ChunkedChain& chain) {
  TimesByChunk times;
  for (int32_t z = 0; z <= chain.chunks; ++z) times.push_back(z * chain.chunk_seconds);
  return times;
}

// A group of a strategy, in blocks.
struct BlockGroup {
  int32_t first = 0;
  int32_t count = 0;
  int32_t threads = 0;
};

struct ChunkedStrategy {
  std::vector<BlockGroup> groups;
  double seconds = kNoTime;
};

// Algorithm 1: at most so many groups of blocks.
class JointAllocation {
 public:
  JointAllocation(const ChunkedChain& chain, int32_t max_groups, StopCheck stop)
      : chain_(chain),
        table_(chain),
        blocks_(static_cast<int32_t>(chain.blocks.size())),
        max_groups_(std::min(max_groups, blocks_)),
        stop_(stop) {}

  absl::Status Run() {
    if (absl::Status status = FillCosts(); !status.ok()) return status;
    times_.assign(Index(max_groups_) + 1,
                  std::vector<TimesByChunk>(Index(blocks_) + 1,
                                            TimesByChunk(Index(chain_.chunks) + 1, kNoTime)));
    times_[0][0] = TimesBefore(chain_);
    for (int32_t groups = 1; groups <= max_groups_; ++groups) {
      for (int32_t end = groups; end <= blocks_; ++end) {
        const int32_t first_edge = chain_.FirstEdge(chain_.blocks[Index(end - 1)]);
        const int64_t edges = chain_.chunks - first_edge + 1;
        for (int32_t begin = groups - 1; begin < end; ++begin) {
          Extend(times_[Index(groups - 1)][Index(begin)], CostsOf(begin, end), first_edge,
                 times_[Index(groups)][Index(end)]);
          if (!stop_.GoesOn(1 + edges * edges / 2 / kAdditionsPerUnit)) return stop_.status();
        }
      }
    }
    return absl::OkStatus();
  }

  int32_t max_groups() const { return max_groups_; }

  // The best with just so many groups, by chunks.
  ChunkedStrategy With(int32_t groups) const {
    int32_t end = blocks_;
    int32_t to = chain_.chunks;
    ChunkedStrategy strategy{.seconds = times_[Index(groups)][Index(end)][Index(to)]};
    if (strategy.seconds == kNoTime) return strategy;
    for (; groups > 0; --groups) {
      const double time = times_[Index(groups)][Index(end)][Index(to)];
      const int32_t first_edge = chain_.FirstEdge(chain_.blocks[Index(end - 1)]);
      int32_t begin = end;
      int32_t from = -1;
      while (from < 0 && begin > 0) {
        --begin;
        from = BeginOf(times_[Index(groups - 1)][Index(begin)], CostsOf(begin, end), first_edge,
                       time, to, chain_.chunks);
      }
      strategy.groups.push_back(
          {.first = begin,
           .count = end - begin,
           .threads = table_.ThreadsOf(BytesOf(begin, end), to - from, to == chain_.chunks)});
      end = begin;
      to = from;
    }
    std::reverse(strategy.groups.begin(), strategy.groups.end());
    return strategy;
  }

 private:
  double BytesOf(int32_t begin, int32_t end) const {
    double bytes = 0;
    for (int32_t i = begin; i < end; ++i) bytes += chain_.blocks[Index(i)].bytes;
    return bytes;
  }
  const StageCosts& CostsOf(int32_t begin, int32_t end) const {
    return costs_[Index(begin)][Index(end - begin - 1)];
  }
  absl::Status FillCosts() {
    costs_.resize(Index(blocks_));
    const int64_t units = static_cast<int64_t>(chain_.rates.size()) * chain_.chunks;
    for (int32_t begin = 0; begin < blocks_; ++begin) {
      for (int32_t end = begin + 1; end <= blocks_; ++end) {
        costs_[Index(begin)].push_back(table_.CostsOf(BytesOf(begin, end)));
        if (!stop_.GoesOn(units)) return stop_.status();
      }
    }
    return absl::OkStatus();
  }

  const ChunkedChain& chain_;
  const StageTable table_;
  const int32_t blocks_;
  const int32_t max_groups_;
  PacedStopCheck stop_;
  std::vector<std::vector<StageCosts>> costs_;    // by first block, by blocks less one
  std::vector<std::vector<TimesByChunk>> times_;  // by groups, by blocks
};

// The same where every block is a group.
absl::StatusOr<ChunkedStrategy> AllocateToBlocks(const ChunkedChain& chain, StopCheck stop) {
  PacedStopCheck paced(stop);
  const StageTable table(chain);
  std::vector<TimesByChunk> times = {TimesBefore(chain)};
  for (const LayerBlock& block : chain.blocks) {
    times.emplace_back(Index(chain.chunks) + 1, kNoTime);
    Extend(times[times.size() - 2], table.CostsOf(block.bytes), chain.FirstEdge(block),
           times.back());
    const int64_t rows = static_cast<int64_t>(chain.rates.size()) + chain.chunks;
    if (!paced.GoesOn(rows * chain.chunks)) return paced.status();
  }
  ChunkedStrategy strategy{.seconds = times.back().back()};
  int32_t to = chain.chunks;
  for (size_t i = chain.blocks.size(); i > 0; --i) {
    const LayerBlock& block = chain.blocks[i - 1];
    const int32_t from = BeginOf(times[i - 1], table.CostsOf(block.bytes), chain.FirstEdge(block),
                                 times[i][Index(to)], to, chain.chunks);
    strategy.groups.push_back(
        {.first = static_cast<int32_t>(i - 1),
         .count = 1,
         .threads = table.ThreadsOf(block.bytes, to - from, to == chain.chunks)});
    to = from;
  }
  std::reverse(strategy.groups.begin(), strategy.groups.end());
  return strategy;
}

void CheckRange(const char* field, int32_t value, int32_t most, FaultList& faults) {
  if (value < 1 || value > most) faults.Add(field, absl::StrCat(value, " is not from 1 to ", most));
}

FaultList FaultsOf(std::span<const BackwardLayer> layers, const OverlapSetting& setting,
                   const AllocationOptions& options) {
  constexpr int32_t kMaxGroups = 32;
  constexpr int32_t kMaxChunks = 500;
  constexpr int32_t kMaxLayers = 100;
  FaultList faults;
  CheckLayers(layers, faults);
  CheckSetting(setting, options.threads, faults);
  CheckRange("max_groups", options.max_groups, kMaxGroups, faults);
  CheckRange("chunks", options.chunks, kMaxChunks, faults);
  CheckRange("max_layers", options.max_layers, kMaxLayers, faults);
  return faults;
}

absl::Status StatusOf(FaultList faults) {
  if (faults.empty()) return absl::OkStatus();
  return FaultsError("ALLOCATION_INVALID", std::move(faults).Take());
}

ChunkedChain ChainOf(std::vector<LayerBlock> blocks, std::span<const BackwardLayer> layers,
                     const OverlapSetting& setting, const AllocationOptions& options) {
  ChunkedChain chain{.blocks = std::move(blocks), .chunks = options.chunks};
  double seconds = 0;
  for (const BackwardLayer& layer : layers) seconds += layer.seconds;
  chain.chunk_seconds = seconds / options.chunks;
  for (const int32_t threads : options.threads) chain.rates.push_back(RatesOf(setting, threads));
  return chain;
}

// Parts that are the same in every answer: layers, and how sure it is.
ThreadAllocation Described(std::span<const BackwardLayer> layers, const OverlapSetting& setting,
                           const AllocationOptions& options, const std::vector<LayerBlock>& blocks,
                           int32_t max_groups) {
  ThreadAllocation answer;
  answer.fused_layers = static_cast<int32_t>(blocks.size());
  answer.layers_with_parameters = static_cast<int32_t>(std::count_if(
      layers.begin(), layers.end(), [](const auto& layer) { return layer.bytes > 0; }));
  const OverlapAssumptions assumptions = CheckAssumptions(setting.contention, options.threads);
  answer.guarantee_holds = assumptions.Hold();
  answer.why_void = assumptions.why;
  // The last all-reduce begins at the last edge, unless something is left to compute beside it.
  const bool ends_with_parameters = layers.back().bytes > 0;
  const int32_t shifts = std::min(max_groups, answer.fused_layers) - (ends_with_parameters ? 1 : 0);
  answer.guarantee = 1 + static_cast<double>(std::max(0, shifts)) / options.chunks;
  return answer;
}

std::vector<TensorGroup> InLayers(const std::vector<BlockGroup>& groups,
                                  const std::vector<LayerBlock>& blocks) {
  std::vector<TensorGroup> in_layers;
  for (const BlockGroup& group : groups) {
    TensorGroup whole{.first = blocks[Index(group.first)].first, .threads = group.threads};
    for (int32_t i = 0; i < group.count; ++i) whole.count += blocks[Index(group.first + i)].count;
    in_layers.push_back(whole);
  }
  return in_layers;
}

// Keeps the strategy if it takes less than the one so far.
void Offer(const ChunkedStrategy& strategy, const ChunkedChain& chain,
           std::span<const BackwardLayer> layers, const OverlapSetting& setting,
           ThreadAllocation& best) {
  std::vector<TensorGroup> groups = InLayers(strategy.groups, chain.blocks);
  const double seconds = BackwardTimeOf(layers, groups, setting).seconds;
  if (!best.groups.empty() && seconds >= best.backward_seconds) return;
  best.groups = std::move(groups);
  best.backward_seconds = seconds;
}

// Nothing is to be all-reduced.
ThreadAllocation ComputationOnly(std::span<const BackwardLayer> layers,
                                 const AllocationOptions& options) {
  ThreadAllocation answer{.groups = {{.first = 0,
                                      .count = static_cast<int32_t>(layers.size()),
                                      .threads = options.threads.front()}}};
  for (const BackwardLayer& layer : layers) answer.backward_seconds += layer.seconds;
  answer.chunked_seconds = answer.backward_seconds;
  return answer;
}

}  // namespace

absl::StatusOr<ThreadAllocation> AllocateThreads(std::span<const BackwardLayer> layers,
                                                 const OverlapSetting& setting,
                                                 const AllocationOptions& options, StopCheck stop) {
  if (absl::Status status = StatusOf(FaultsOf(layers, setting, options)); !status.ok())
    return status;
  std::vector<LayerBlock> blocks = BlocksOf(layers, std::vector<int32_t>(layers.size(), 1));
  if (blocks.empty()) return ComputationOnly(layers, options);
  blocks = MergedLightest(std::move(blocks), Index(options.max_layers));
  const ChunkedChain chain = ChainOf(std::move(blocks), layers, setting, options);
  ThreadAllocation best = Described(layers, setting, options, chain.blocks, options.max_groups);
  JointAllocation allocation(chain, options.max_groups, stop);
  if (absl::Status status = allocation.Run(); !status.ok()) return status;
  // By chunks the best may have a few groups more than one that is as good without them.
  best.chunked_seconds = kNoTime;
  for (int32_t groups = 1; groups <= allocation.max_groups(); ++groups) {
    const ChunkedStrategy strategy = allocation.With(groups);
    if (strategy.seconds == kNoTime) continue;
    best.chunked_seconds = std::min(best.chunked_seconds, strategy.seconds);
    Offer(strategy, chain, layers, setting, best);
  }
  return best;
}

absl::StatusOr<ThreadAllocation> AllocateThreadsToGroups(std::span<const BackwardLayer> layers,
                                                         std::span<const int32_t> layers_by_group,
                                                         const OverlapSetting& setting,
                                                         const AllocationOptions& options,
                                                         StopCheck stop) {
  FaultList faults = FaultsOf(layers, setting, options);
  std::vector<TensorGroup> given;
  int64_t next = 0;
  if (layers_by_group.size() > kMaxGivenGroups) {
    faults.Add("groups", OverLimit(static_cast<int64_t>(layers_by_group.size()), "max_groups",
                                   static_cast<int64_t>(kMaxGivenGroups)));
    return StatusOf(std::move(faults));
  }
  for (const int32_t count : layers_by_group) {
    given.push_back({.first = static_cast<int32_t>(next), .count = count});
    next = std::min<int64_t>(next + std::max(count, 1), std::numeric_limits<int32_t>::max());
  }
  CheckGroups(given, layers.size(), faults);
  if (absl::Status status = StatusOf(std::move(faults)); !status.ok()) return status;
  const ChunkedChain chain = ChainOf(BlocksOf(layers, layers_by_group), layers, setting, options);
  const auto groups = static_cast<int32_t>(chain.blocks.size());
  ThreadAllocation answer = ComputationOnly(layers, options);
  if (groups > 0) {
    const absl::StatusOr<ChunkedStrategy> strategy = AllocateToBlocks(chain, stop);
    if (!strategy.ok()) return strategy.status();
    answer = Described(layers, setting, options, chain.blocks, groups);
    answer.chunked_seconds = strategy->seconds;
    Offer(*strategy, chain, layers, setting, answer);
    for (TensorGroup& group : given) group.threads = options.threads.front();
    // Groups without parameters stay as they were given.
    size_t at = 0;
    for (TensorGroup& group : given) {
      while (at + 1 < answer.groups.size() && answer.groups[at + 1].first <= group.first) ++at;
      group.threads = answer.groups[at].threads;
    }
  }
  answer.groups = std::move(given);
  return answer;
}

}  // namespace stepcast
