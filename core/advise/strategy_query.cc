#include "core/advise/strategy_query.h"

#include <algorithm>
#include <cmath>
#include <set>
#include <unordered_map>
#include <utility>
#include <variant>

#include "absl/strings/str_cat.h"

#include "core/base/error.h"
#include "core/base/index.h"
#include "core/base/message_text.h"
#include "core/base/stop_check.h"
#include "core/communication/server_step.h"
#include "core/model/job_change.h"
#include "core/model/scenario_edits.h"
#include "core/model/step_model.h"
#include "core/predict/request_faults.h"
#include "core/predict/throughput.h"

namespace stepcast {

namespace {

using OperationIndex = std::unordered_map<std::string, int32_t>;

OperationIndex IndexOf(const Profile& profile) {
  OperationIndex index;
  for (size_t i = 0; i < profile.operations().size(); ++i)
    index.emplace(profile.operations()[i].name, static_cast<int32_t>(i));
  return index;
}

// The computation of that name; none: a fault was added.
std::optional<int32_t> ComputationOf(const Profile& profile, const OperationIndex& index,
                                     const std::string& name, const std::string& path,
                                     RequestFaults& faults) {
  const auto found = index.find(name);
  if (found == index.end()) {
    faults.Add(path, absl::StrCat(Quoted(name), " is not an operation of the profile"));
    return std::nullopt;
  }
  if (profile.operations()[Index(found->second)].resource != Resource::kWorker) {
    faults.Add(path, absl::StrCat(Quoted(name), " is not a computation of a worker"));
    return std::nullopt;
  }
  return found->second;
}

std::vector<FusedCost> ResolveCosts(const Profile& profile, const OperationIndex& index,
                                    const StrategyDraft& draft, const StrategyLimits& limits,
                                    RequestFaults& faults) {
  std::vector<FusedCost> costs;
  if (draft.fused_costs.size() > limits.max_fused_costs) {
    faults.Add("fused_costs",
               absl::StrCat("has ", draft.fused_costs.size(),
                            " entries, more than max_fused_costs ", limits.max_fused_costs));
    return costs;
  }
  std::set<std::vector<int32_t>> known;
  for (size_t i = 0; i < draft.fused_costs.size(); ++i) {
    const StrategyDraft::Cost& entry = draft.fused_costs[i];
    const std::string path = absl::StrCat("fused_costs[", i, "]");
    if (!(entry.seconds >= 0) || !std::isfinite(entry.seconds)) {
      faults.Add(absl::StrCat(path, ".seconds"),
                 absl::StrCat(entry.seconds, " is not a finite number of at least 0"));
    }
    if (entry.operations.size() < 2 || entry.operations.size() > limits.max_fused_operations) {
      faults.Add(absl::StrCat(path, ".operations"),
                 absl::StrCat("has ", entry.operations.size(), " operations, not from 2 to ",
                              limits.max_fused_operations));
      continue;
    }
    FusedCost cost{.operations = {}, .seconds = entry.seconds};
    for (size_t o = 0; o < entry.operations.size(); ++o) {
      const auto operation = ComputationOf(profile, index, entry.operations[o],
                                           absl::StrCat(path, ".operations[", o, "]"), faults);
      if (operation.has_value()) cost.operations.push_back(*operation);
    }
    if (cost.operations.size() != entry.operations.size()) continue;
    std::sort(cost.operations.begin(), cost.operations.end());
    if (std::adjacent_find(cost.operations.begin(), cost.operations.end()) !=
        cost.operations.end()) {
      faults.Add(absl::StrCat(path, ".operations"), "names an operation twice");
    } else if (!known.insert(cost.operations).second) {
      faults.Add(absl::StrCat(path, ".operations"), "are those of an entry before it");
    } else {
      costs.push_back(std::move(cost));
    }
  }
  return costs;
}

MemoryModel ModelOf(const Profile& profile, const OperationIndex& index,
                    const std::vector<StrategyDraft::KeptOutput>& outputs, RequestFaults& faults) {
  MemoryModel model{.kept_bytes = std::vector<int64_t>(profile.operations().size(), 0)};
  std::set<int32_t> known;
  for (size_t i = 0; i < outputs.size(); ++i) {
    const StrategyDraft::KeptOutput& output = outputs[i];
    const std::string path = absl::StrCat("memory.kept_outputs[", i, "]");
    if (output.bytes < 0 || output.bytes > kMaxKeptBytes) {
      faults.Add(absl::StrCat(path, ".bytes"),
                 absl::StrCat(output.bytes, " is not from 0 to ", kMaxKeptBytes));
      continue;
    }
    const auto operation =
        ComputationOf(profile, index, output.operation, absl::StrCat(path, ".operation"), faults);
    if (!operation.has_value()) continue;
    if (!known.insert(*operation).second)
      faults.Add(absl::StrCat(path, ".operation"),
                 absl::StrCat(Quoted(output.operation), " is there twice"));
    model.kept_bytes[Index(*operation)] = output.bytes;
  }
  return model;
}

// The time that half a batch takes: as a second recording tells, or the request, or dPRO.
void ResolveHalfBatch(const Profile& profile, std::optional<double> share, const Profile* second,
                      StrategyQuery& query, RequestFaults& faults) {
  const double all = share.value_or(kHalfBatchShare);
  query.half_batch_shares.assign(profile.operations().size(), all);
  query.half_batch_told =
      absl::StrCat("half a batch takes ", all, " of the time of the whole one, each time");
  if (!share.has_value()) {
    absl::StrAppend(
        &query.half_batch_told,
        ", as dPRO's Table 4 has it of BERT Base: nothing tells it of this job; a second "
        "recording with another batch would");
  }
  if (!(all > 0) || all > 1)
    faults.Add("memory.half_batch_share", absl::StrCat(all, " is not above 0 and at most 1"));
  if (second == nullptr) return;
  constexpr char kPath[] = "memory.second_profile";
  if (share.has_value())
    faults.Add("memory.half_batch_share", "given, and a second recording, which tells it: which?");
  const AppliedChange* const change = profile.change().get();
  if (change != nullptr &&
      (change->change.accumulate.has_value() || change->change.compute_speed_factor.has_value())) {
    faults.Add(kPath,
               "given, and a scenario.change that adds micro-batches up or changes the devices' "
               "speed, of which the second recording knows nothing");
  }
  FaultList found;
  CheckSecondRecording(profile, *second, kPath, found);
  const bool can_tell = found.empty();
  for (Fault& fault : std::move(found).Take())
    faults.Add(std::move(fault.field), std::move(fault.description));
  if (!can_tell) return;
  BatchGrowth growth = GrowthByTwoRecordings(profile, *second, profile.batch_size() / 2.0);
  query.half_batch_shares = std::move(growth.factors);
  query.half_batch_told = absl::StrCat("half a batch, by operation: ", growth.told);
}

double DefaultCopies(const Profile& profile) {
  return profile.has_collectives() ? kParameterCopies : kParameterCopiesBesideServers;
}

void ResolveMemory(const Profile& profile, const OperationIndex& index,
                   const StrategyDraft::Memory& draft, StrategyQuery& query,
                   RequestFaults& faults) {
  if (!draft.kept_outputs.empty()) {
    query.memory = ModelOf(profile, index, draft.kept_outputs, faults);
    query.memory_is_requests = true;
  }
  const double copies = draft.parameter_copies.value_or(DefaultCopies(profile));
  if (!(copies >= 1) || copies > 100)
    faults.Add("memory.parameter_copies", absl::StrCat(copies, " is not from 1 to 100"));
  if (query.memory.has_value()) query.memory->parameter_copies = copies;
  if (draft.budget_bytes.value_or(0) < 0)
    faults.Add("memory.budget_bytes", absl::StrCat(*draft.budget_bytes, " is negative"));
  query.memory_budget_bytes = draft.budget_bytes;
}

// Scenario, options and baselines of a job of all-reduces.
absl::Status ResolveCollectives(const Profile& profile, const StrategyDraft& draft,
                                StrategyQuery& query) {
  absl::StatusOr<TuningQuery> tuning =
      ResolveTuning(profile, {.scenario = draft.scenario,
                              .options = draft.options,
                              .bucket_caps_bytes = {kBucketCapBytes}});
  if (!tuning.ok()) return tuning.status();
  query.scenario = tuning->scenarios.front();
  query.options = tuning->options;
  query.baselines = *std::move(tuning);
  std::erase_if(query.baselines->methods,
                [](TuningMethod method) { return method >= TuningMethod::kByteScheduler; });
  return absl::OkStatus();
}

// The same of one with parameter servers, which has no baselines. `sources`: by operation of
// query.job, the one of the profile that it was made of.
absl::Status ResolveServers(const Profile& profile, const StrategyDraft& draft,
                            StrategyQuery& query, std::vector<int32_t>& sources) {
  RequestFaults faults;
  if (!profile.has_collectives()) {
    if (absl::Status status = CheckParameters(profile); !status.ok())
      faults.Add("profile", std::string(status.message()));
  }
  if (std::holds_alternative<AllReduceDraft>(draft.scenario.communication) &&
      !draft.scenario.recorded_kind_only) {
    faults.Add("scenario.all_reduce",
               "the profile is of a job with parameter servers: its strategies are for such jobs");
    return std::move(faults).ToStatus("REQUEST_INVALID");
  }
  if (!draft.shortcuts.partial_replay) {
    faults.Add("shortcuts.partial_replay",
               "must be on: what a tensor takes to parameter servers is not told from a replay of "
               "the whole job");
  }
  ScenarioDraft scenario = draft.scenario;
  if (scenario.workers.value_or(0) == 0)
    scenario.workers = WorkersByLists(scenario).value_or(kDefaultTunedWorkers);
  absl::StatusOr<ThroughputQuery> throughput =
      ResolveThroughput(profile, {.scenario = scenario, .options = draft.options}, {});
  for (Fault& fault : DetailsOf(throughput.status()).faults)
    faults.Add(std::move(fault.field), std::move(fault.description));
  if (absl::Status status = std::move(faults).ToStatus("REQUEST_INVALID"); !status.ok())
    return status;
  if (!throughput.ok()) return throughput.status();
  query.scenario = std::move(throughput->scenarios.front());
  query.options = throughput->options;
  if (!profile.has_collectives()) return absl::OkStatus();
  absl::StatusOr<ServerProfile> moved = ServerProfileOf(profile, query.scenario, NeverStop);
  if (!moved.ok()) return moved.status();
  query.job = std::move(moved->profile);
  query.asked = std::exchange(query.scenario, std::move(moved->scenario));
  sources = std::move(moved->sources);
  return absl::OkStatus();
}

// By operation of another job, what is known of its source.
std::vector<double> BySource(const std::vector<double>& known,
                             const std::vector<int32_t>& sources) {
  std::vector<double> shares;
  shares.reserve(sources.size());
  for (const int32_t source : sources) shares.push_back(known[Index(source)]);
  return shares;
}

// Servers that sum what was all-reduced have a step that begins with its backward pass, and an
// update of each gradient: its computations are not the profile's.
void RefuseOfSums(const StrategyDraft& draft, RequestFaults& faults) {
  constexpr char kWhy[] =
      "given, and servers sum what was all-reduced (--summed), whose step is written anew: ask "
      "with servers that do not sum (--sync)";
  faults.AddIf(draft.fused_share.has_value(), "fused_share", kWhy);
  faults.AddIf(!draft.fused_costs.empty(), "fused_costs", kWhy);
  faults.AddIf(draft.memory.has_value() && draft.memory->budget_bytes.value_or(0) > 0,
               "memory.budget_bytes", kWhy);
}

}  // namespace

absl::StatusOr<StrategyQuery> ResolveStrategies(const Profile& profile, const StrategyDraft& draft,
                                                const Profile* second,
                                                const StrategyLimits& limits) {
  RequestFaults faults;
  StrategyQuery query{.shortcuts = draft.shortcuts};
  std::vector<int32_t> sources;
  const absl::Status resolved =
      profile.has_collectives() && AsksForCollectives(profile, draft.scenario)
          ? ResolveCollectives(profile, draft, query)
          : ResolveServers(profile, draft, query, sources);
  const Profile& job = query.job.has_value() ? *query.job : profile;
  const auto operations = static_cast<int64_t>(job.operations().size());
  const auto times = operations * static_cast<int64_t>(job.steps().size());
  if (operations > limits.max_operations)
    faults.Add("profile", absl::StrCat("operations: ", OverLimit(operations, "max_operations",
                                                                 limits.max_operations)));
  if (times > limits.max_recorded_times) {
    faults.Add("profile",
               absl::StrCat("operations x steps: ",
                            OverLimit(times, "max_recorded_times", limits.max_recorded_times)));
  }
  for (Fault& fault : DetailsOf(resolved).faults)
    faults.Add(std::move(fault.field), std::move(fault.description));
  const OperationIndex index = IndexOf(job);
  if (query.job.has_value() && query.scenario.sums()) {
    RefuseOfSums(draft, faults);
  } else {
    query.fused_costs = ResolveCosts(job, index, draft, limits, faults);
  }
  query.fused_share = draft.fused_share;
  if (draft.fused_share.has_value() && (!(*draft.fused_share > 0) || *draft.fused_share > 1)) {
    faults.Add("fused_share", absl::StrCat(*draft.fused_share, " is not above 0 and at most 1"));
  }
  query.max_partitions = draft.max_partitions.value_or(kMaxPartitions);
  query.bounds_partitions = draft.max_partitions.has_value();
  if (query.max_partitions < 1 || query.max_partitions > kMaxPartitions) {
    faults.Add("max_partitions",
               absl::StrCat(query.max_partitions, " is not from 1 to ", kMaxPartitions));
  }
  if (auto kept_bytes = KeptBytesOf(job); kept_bytes.has_value())
    query.memory =
        MemoryModel{.kept_bytes = *std::move(kept_bytes), .parameter_copies = DefaultCopies(job)};
  if (draft.memory.has_value()) ResolveMemory(job, index, *draft.memory, query, faults);
  ResolveHalfBatch(profile,
                   draft.memory.has_value() ? draft.memory->half_batch_share : std::nullopt, second,
                   query, faults);
  if (query.job.has_value()) query.half_batch_shares = BySource(query.half_batch_shares, sources);
  if (absl::Status status = std::move(faults).ToStatus("REQUEST_INVALID"); !status.ok())
    return status;
  if (!resolved.ok()) return resolved;
  if (query.memory_budget_bytes.has_value() && !query.memory.has_value()) {
    return MakeError(absl::StatusCode::kFailedPrecondition,
                     absl::StrCat("memory.budget_bytes is ", *query.memory_budget_bytes,
                                  ", but nothing says what operations keep: no operation of the "
                                  "profile has kept_bytes, and memory.kept_outputs is empty"),
                     {.reason = "MEMORY_UNKNOWN"});
  }
  return query;
}

}  // namespace stepcast
