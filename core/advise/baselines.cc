#include "core/advise/baselines.h"

#include <algorithm>
#include <cstdint>
#include <unordered_map>
#include <utility>

#include "absl/strings/str_cat.h"

#include "core/advise/method_trials.h"
#include "core/advise/strategy.h"
#include "core/base/error.h"
#include "core/base/index.h"
#include "core/model/scenario_edits.h"

namespace stepcast {

namespace {

struct HorovodDefault {
  const char* name;
  Horovod setting;
};
constexpr HorovodDefault kHorovodDefaults[] = {
    {"HOROVOD_64MB_5MS", {.fusion_bytes = kFormerHorovodBytes, .cycle_seconds = 0.005}},
    {"HOROVOD_128MB_1MS", {}},
};

}  // namespace

absl::StatusOr<std::vector<NamedBaseline>> HorovodDefaults(const Profile& job,
                                                           const TuningQuery& query, StopCheck stop,
                                                           const Executor& executor,
                                                           const KnownRuns& known,
                                                           SimulationStatistics& statistics) {
  std::vector<NamedBaseline> defaults;
  for (const HorovodDefault& each : kHorovodDefaults) {
    TuningQuery alone = query;
    alone.methods = {TuningMethod::kAsRecorded};
    alone.scenarios = {WithFusion(alone.scenarios.front(), each.setting)};
    absl::StatusOr<TuningAnswer> judged = OptimizeCommunication(job, alone, stop, executor, known);
    if (IsTimeBudgetSpent(judged.status())) break;
    if (!judged.ok()) return judged.status();
    statistics.Add(judged->simulation);
    defaults.push_back(
        {.name = each.name, .strategy = std::move(judged->tunings.front().strategies.front())});
  }
  return defaults;
}

namespace {

// By operation: exchanges, and changes of stream, on the longest way to it. What waits through one
// for another operation of its stream has more of them than that.
std::vector<int32_t> DepthsOf(const std::vector<Operation>& operations) {
  std::vector<std::vector<int32_t>> dependents(operations.size());
  std::vector<size_t> waits(operations.size());
  std::vector<int32_t> ready;
  for (size_t i = 0; i < operations.size(); ++i) {
    const auto at = static_cast<int32_t>(i);
    for (const int32_t before : operations[i].waiting_for) dependents[Index(before)].push_back(at);
    waits[i] = operations[i].waiting_for.size();
    if (waits[i] == 0) ready.push_back(at);
  }
  std::vector<int32_t> depth(operations.size(), 0);
  while (!ready.empty()) {
    const int32_t before = ready.back();
    ready.pop_back();
    const Operation& from = operations[Index(before)];
    for (const int32_t after : dependents[Index(before)]) {
      const Operation& to = operations[Index(after)];
      const bool crosses = to.resource == Resource::kWorker &&
                           (from.resource != Resource::kWorker || from.stream != to.stream);
      depth[Index(after)] = std::max(depth[Index(after)], depth[Index(before)] + (crosses ? 1 : 0));
      if (--waits[Index(after)] == 0) ready.push_back(after);
    }
  }
  return depth;
}

}  // namespace

std::vector<std::vector<int32_t>> AllFused(const Profile& profile) {
  const std::vector<int32_t> depth = DepthsOf(profile.operations());
  std::vector<std::vector<int32_t>> groups;
  for (const std::vector<int32_t>& stream : StreamOrders(profile)) {
    std::vector<int32_t> group;
    const auto close = [&] {
      if (group.size() > 1) groups.push_back(std::move(group));
      group.clear();
    };
    for (const int32_t op : stream) {
      if (!group.empty() && depth[Index(group.back())] != depth[Index(op)]) close();
      group.push_back(op);
    }
    close();
  }
  return groups;
}

namespace {

// BytePS's own bytes of a part (BYTEPS_PARTITION_BYTES), and others that are tried.
constexpr int64_t kBytePsBytes = 4'096'000;
constexpr int64_t kPartBytes[] = {1'024'000, 2'048'000, 8'192'000, 16'384'000};
// Bytes up to which neighbours are tried together at parameter servers.
constexpr int64_t kTogetherBytes[] = {1 << 16, 1 << 18, 1 << 20, 1 << 22, 1 << 25};
// Operations of a job of parts that is tried, at most.
constexpr int64_t kMostParts = 4000;

// Every gradient in parts of so many bytes, but for rounding, as BytePS cuts them. None: they are
// more than are tried, or than were asked for.
std::optional<Strategy> InParts(const Profile& job, const StrategyQuery& query, int64_t bytes) {
  Strategy strategy = NothingFused(job);
  int64_t parts = 0;
  for (FusedTensors& tensors : strategy.tensors) {
    const int64_t size = job.operations()[Index(tensors.gradients.front())].size_bytes;
    const int64_t own = (size + bytes - 1) / bytes;
    parts += own;
    if (parts > kMostParts || (query.bounds_partitions && own > query.max_partitions))
      return std::nullopt;
    tensors.partitions = static_cast<int32_t>(own);
  }
  return strategy;
}

// Neighbours together until they have so many bytes, in so many parts where they are several.
Strategy Together(const Profile& job, int64_t bytes, int32_t parts) {
  Strategy strategy;
  int64_t held = bytes;
  for (const FusedTensors& alone : NothingFused(job).tensors) {
    if (held >= bytes) {
      strategy.tensors.push_back({.gradients = {}, .partitions = parts});
      held = 0;
    }
    const int32_t gradient = alone.gradients.front();
    strategy.tensors.back().gradients.push_back(gradient);
    held += job.operations()[Index(gradient)].size_bytes;
  }
  return strategy;
}

}  // namespace

std::optional<Strategy> FromGroups(const Profile& job, const std::vector<TunedGroup>& groups) {
  std::unordered_map<std::string, int32_t> index;
  const std::vector<Operation>& operations = job.operations();
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
  const size_t expected = NothingFused(job).tensors.size();
  if (all.size() != expected || !std::is_sorted(all.begin(), all.end()) ||
      std::adjacent_find(all.begin(), all.end()) != all.end())
    return std::nullopt;
  return strategy;
}

std::vector<BeginStrategy> StartsOfServers(const Profile& job, const StrategyQuery& query) {
  std::vector<BeginStrategy> starts;
  const auto in_parts = [&](int64_t bytes, const char* name) {
    std::optional<Strategy> strategy = InParts(job, query, bytes);
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
  if (std::optional<Strategy> strategy = InParts(job, query, kBytePsBytes); strategy.has_value())
    starts.push_back({.strategy = *std::move(strategy)});
  const int32_t servers = query.scenario.server_count();
  for (const int64_t bytes : kTogetherBytes) {
    starts.push_back({.strategy = Together(job, bytes, 1)});
    if (servers > 1 && servers <= query.max_partitions && servers <= bytes)
      starts.push_back({.strategy = Together(job, bytes, servers)});
  }
  return starts;
}

std::optional<Strategy> FuseAll(const Profile& job, const StrategyQuery& query,
                                const FusionCosts& costs) {
  std::vector<std::vector<int32_t>> fused = AllFused(job);
  const auto known = [&](const std::vector<int32_t>& group) {
    return costs.SecondsOf(group).has_value();
  };
  if (fused.empty() || !std::all_of(fused.begin(), fused.end(), known)) return std::nullopt;
  Strategy strategy = NothingFused(job);
  if (query.baselines.has_value()) {
    strategy = Together(job, kFormerHorovodBytes, 1);
  } else if (std::optional<Strategy> parts = InParts(job, query, kBytePsBytes); parts.has_value()) {
    strategy = *std::move(parts);
  }
  strategy.fused = std::move(fused);
  return strategy;
}

}  // namespace stepcast
