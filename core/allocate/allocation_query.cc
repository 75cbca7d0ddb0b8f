#include "core/allocate/allocation_query.h"

#include <map>
#include <utility>

#include "absl/strings/str_cat.h"

#include "core/base/quoted.h"
#include "core/predict/request_faults.h"

namespace stepcast {

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
  if (capacity->workers < 1 || capacity->workers > limits.max_workers) {
    faults.Add("capacity.workers",
               absl::StrCat(capacity->workers, " is not from 1 to ", limits.max_workers));
  }
  if (capacity->servers &&
      (*capacity->servers < 1 || *capacity->servers > limits.max_parameter_servers)) {
    faults.Add("capacity.parameter_servers", absl::StrCat(*capacity->servers, " is not from 1 to ",
                                                          limits.max_parameter_servers));
  }
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
