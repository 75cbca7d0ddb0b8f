#include "core/advise/baselines.h"

#include <algorithm>
#include <utility>

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

}  // namespace stepcast
