#include "core/allocate/allocation_query.h"

#include <algorithm>
#include <map>
#include <type_traits>
#include <utility>

#include "absl/strings/str_cat.h"

#include "core/base/message_text.h"
#include "core/predict/request_faults.h"

namespace stepcast {

namespace {

// True if it is, else with a fault.
template <typename Number>
bool IsFrom(std::type_identity_t<Number> least, std::type_identity_t<Number> most, Number value,
            const char* field, RequestFaults& faults) {
  const bool is_from = value >= least && value <= most;
  faults.AddIf(!is_from, field, value, " is not from ", least, " to ", most);
  return is_from;
}

constexpr int32_t kDefaultMaxWorkers = 16;

struct GangCounts {
  std::vector<int32_t> counts;
  bool cut = false;  // by `most`
};

// Multiples of the gang from min to max; none, and faults, where the bounds make no sense. Nothing
// above `most` but the lowest.
GangCounts CountsOf(const AllocationJobDraft& draft, int32_t most,
                    const AllocationJobLimits& limits, RequestFaults& faults) {
  const int32_t gang = draft.gang.value_or(1);
  const bool gang_ok = IsFrom(1, limits.max_workers, gang, "gang", faults);
  const int32_t min = draft.min_workers.value_or(gang_ok ? gang : 1);
  const bool min_ok = IsFrom(0, limits.max_workers, min, "min_workers", faults);
  if (!gang_ok || !min_ok) return {};
  const int32_t usual =
      std::min(std::max(kDefaultMaxWorkers, min + kDefaultMaxWorkers - 1), limits.max_workers);
  const int32_t lowest = std::max(1, (min + gang - 1) / gang) * gang;
  const int32_t max = draft.max_workers.value_or(std::max(std::min(usual, most), lowest));
  if (max < 1 || max > limits.max_workers) {
    faults.Add("max_workers", absl::StrCat(max, " is not from 1 to ", limits.max_workers));
  } else if (max < min) {
    faults.Add("max_workers", absl::StrCat(max, " is less than min_workers ", min));
  } else if (lowest > max) {
    faults.Add("gang", absl::StrCat("no multiple of ", gang, " lies between min_workers ", min,
                                    " and max_workers ", max));
  } else {
    std::vector<int32_t> counts = {lowest};
    for (int64_t count = int64_t{lowest} + gang; count <= std::min(max, most); count += gang)
      counts.push_back(static_cast<int32_t>(count));
    return {.counts = counts, .cut = int64_t{counts.back()} + gang <= max};
  }
  return {};
}

void CheckNumbers(const AllocationJobDraft& draft, AllocationObjective objective,
                  const AllocationJobLimits& limits, RequestFaults& faults) {
  IsFrom(limits.min_weight, limits.max_weight, draft.weight.value_or(1), "weight", faults);
  faults.AddIf(draft.remaining_examples && *draft.remaining_examples < 1, "remaining_examples",
               draft.remaining_examples, " is less than 1");
  faults.AddIf(!draft.remaining_examples && objective == AllocationObjective::kMinMakespan,
               "remaining_examples", "must be given: MIN_MAKESPAN needs to know when the job ends");
  if (!draft.current) return;
  IsFrom(1, limits.max_workers, draft.current->workers, "current.workers", faults);
  IsFrom(1, ScenarioLimits{}.max_parameter_servers, draft.current->servers.value_or(1),
         "current.parameter_servers", faults);
  const double seconds = draft.current->rescale_seconds;
  if (IsFrom(0, limits.max_rescale_seconds, seconds, "current.rescale_seconds", faults) &&
      seconds > 0 && !draft.remaining_examples) {
    faults.Add("remaining_examples",
               "must be given: without it nobody can say what current.rescale_seconds are worth");
  }
}

// Workers of so many devices that the capacity holds.
int32_t WorkersOf(const ClusterCapacity& capacity, int64_t devices) {
  return capacity.devices.has_value() ? static_cast<int32_t>(*capacity.devices / devices)
                                      : capacity.workers;
}

std::vector<Scenario> ServerChoicesOf(const Profile& profile, const ScenarioDraft& draft,
                                      int32_t max_servers, RequestFaults& faults) {
  std::vector<Scenario> choices;
  for (int32_t servers = 1; servers <= max_servers; ++servers) {
    absl::StatusOr<Scenario> scenario = ResolveWithServers(profile, draft, servers, max_servers);
    faults.AddPart("scenario", scenario.status(),
                   {{"scenario.parameter_servers.servers", "max_parameter_servers"}});
    if (scenario.ok()) choices.push_back(*std::move(scenario));
  }
  return choices;
}

// Leaves out the numbers of workers that the job cannot have; a fault where none is left of some.
void KeepPossible(const Scenario& one_worker, const std::optional<SharedBatch>& shared,
                  std::vector<int32_t>& counts, RequestFaults& faults) {
  if (counts.empty()) return;
  const int32_t lowest = counts.front();
  const int32_t highest = counts.back();
  const bool any_fills_nodes =
      std::ranges::any_of(counts, [&](int32_t count) { return one_worker.Allows(count); });
  std::erase_if(counts, [&](int32_t count) {
    return !one_worker.Allows(count) ||
           (shared.has_value() && !one_worker.CanShare(shared->micro_batch_examples(), count));
  });
  if (!counts.empty()) return;
  faults.Add("min_workers",
             absl::StrCat("none of the numbers of workers from ", lowest, " to ", highest,
                          any_fills_nodes && shared.has_value()
                              ? " divides " + shared->Name()
                              : " fills nodes as scenario.all_reduce says"));
}

}  // namespace

absl::StatusOr<AllocationJob> ResolveAllocationJob(const Profile& profile,
                                                   const AllocationJobDraft& draft,
                                                   const ClusterCapacity& capacity,
                                                   AllocationObjective objective,
                                                   std::optional<SharedBatch> shared,
                                                   const AllocationJobLimits& limits) {
  RequestFaults faults;
  ScenarioDraft any_workers = WithVariedWorkers(
      draft.scenario, "min_workers and max_workers say what the job may get", faults);
  if (shared.has_value()) shared->Share(any_workers, "scenario", "", faults);
  const bool chooses_servers =
      draft.max_parameter_servers.has_value() &&
      std::holds_alternative<ParameterServersDraft>(any_workers.communication) &&
      !any_workers.servers().servers.has_value();
  auto [one_worker, meets_in_collectives] =
      ResolveBeforeServers(profile, any_workers, chooses_servers, {.pipelines = true});
  faults.AddPart("scenario", one_worker.status());
  std::vector<Scenario> server_choices;
  if (const int32_t servers = draft.max_parameter_servers.value_or(1);
      servers < 1 || servers > limits.max_parameter_servers) {
    faults.Add("max_parameter_servers",
               absl::StrCat(servers, " is not from 1 to ", limits.max_parameter_servers));
  } else if (draft.max_parameter_servers && meets_in_collectives) {
    faults.Add("max_parameter_servers",
               absl::StrCat(servers, " given, and the job's workers meet in collectives"));
  } else if (draft.max_parameter_servers && one_worker.ok()) {
    server_choices = ServerChoicesOf(profile, any_workers,
                                     std::min(servers, capacity.servers.value_or(servers)), faults);
  } else if (one_worker.ok()) {
    server_choices = {*one_worker};
  }
  CheckNumbers(draft, objective, limits, faults);
  const int64_t devices = one_worker.ok() ? one_worker->DevicesPerWorker(profile) : 1;
  auto [counts, is_cut] = CountsOf(draft, WorkersOf(capacity, devices) + 1, limits, faults);
  if (one_worker.ok()) KeepPossible(*one_worker, shared, counts, faults);
  if (absl::Status status = std::move(faults).ToStatus("JOB_INVALID"); !status.ok()) return status;
  const AllocationJobDraft::Current current = draft.current.value_or(AllocationJobDraft::Current{});
  const int32_t scenario_servers = one_worker->server_count();
  return AllocationJob{.profile = profile,
                       .one_worker = *std::move(one_worker),
                       .server_choices = std::move(server_choices),
                       .worker_counts = std::move(counts),
                       .may_rest = draft.min_workers == 0,
                       .cut_by_capacity = is_cut,
                       .devices_per_worker = devices,
                       .weight = draft.weight.value_or(1),
                       .remaining_examples = draft.remaining_examples.value_or(0),
                       .current_workers = current.workers,
                       .current_servers = current.servers.value_or(scenario_servers),
                       .rescale_seconds = current.rescale_seconds,
                       .shared = std::move(shared)};
}

namespace {

void CheckIds(const std::vector<std::string>& ids, const AllocationLimits& limits,
              RequestFaults& faults) {
  if (ids.empty()) faults.Add("jobs", "at least one is required");
  if (ids.size() > limits.max_jobs)
    return faults.Add(
        "jobs", absl::StrCat(ids.size(), " are above the limit max_jobs = ", limits.max_jobs));
  std::map<std::string, size_t> first;
  for (size_t i = 0; i < ids.size(); ++i) {
    const std::string path = absl::StrCat("jobs[", i, "].id");
    if (ids[i].empty()) {
      faults.Add(path, "is empty");
    } else if (ids[i].size() > limits.max_id_bytes) {
      faults.Add(path, absl::StrCat(ids[i].size(), " bytes are above the limit max_id_bytes = ",
                                    limits.max_id_bytes));
    } else if (const auto [other, is_new] = first.emplace(ids[i], i); !is_new) {
      faults.Add(path,
                 absl::StrCat(Quoted(ids[i]), " is the id of jobs[", other->second, "], too"));
    }
  }
}

void CheckCapacity(const std::optional<ClusterCapacity>& capacity, const AllocationLimits& limits,
                   RequestFaults& faults) {
  if (!capacity) return faults.Add("capacity", "is required");
  IsFrom(1, limits.max_devices, capacity->devices.value_or(1), "capacity.devices", faults);
  if (capacity->devices.has_value()) {
    if (capacity->workers != 0)
      faults.Add("capacity.workers",
                 absl::StrCat(capacity->workers, " given beside devices: give either"));
  } else {
    IsFrom(1, limits.max_workers, capacity->workers, "capacity.workers", faults);
  }
  IsFrom(1, limits.max_parameter_servers, capacity->servers.value_or(1),
         "capacity.parameter_servers", faults);
}

}  // namespace

absl::StatusOr<AllocationQuery> ResolveAllocation(const AllocationDraft& draft,
                                                  const AllocationLimits& limits) {
  RequestFaults faults;
  CheckIds(draft.job_ids, limits, faults);
  CheckCapacity(draft.capacity, limits, faults);
  absl::StatusOr<SimulationOptions> options = ResolveOptions(draft.options);
  faults.AddPart("options", options.status());
  if (absl::Status status = std::move(faults).ToStatus("REQUEST_INVALID"); !status.ok())
    return status;
  return AllocationQuery{
      .capacity = *draft.capacity, .objective = draft.objective, .options = *options};
}

}  // namespace stepcast
