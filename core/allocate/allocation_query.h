// The request for an allocation as a whole: as asked for, and checked.
//
// Threads: pure functions.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

#include "core/allocate/allocation_job.h"
#include "core/allocate/claim.h"
#include "core/model/simulation_options.h"

namespace stepcast {

// Unchecked, without the jobs themselves.
struct AllocationDraft {
  std::vector<std::string> job_ids;
  std::optional<ClusterCapacity> capacity;
  AllocationObjective objective = AllocationObjective::kTotalUtility;
  SimulationOptionsDraft options;
};

// Checked.
struct AllocationQuery {
  std::vector<absl::StatusOr<AllocationJob>>
      jobs;  // one with an error is passed over: it does not fail the others
  ClusterCapacity capacity;
  AllocationObjective objective = AllocationObjective::kTotalUtility;
  SimulationOptions options;
};

struct AllocationLimits {
  size_t max_jobs = 256;
  size_t max_id_bytes = 128;
  int32_t max_workers = 65'536;
  int32_t max_parameter_servers = 4096;
};

// Without jobs: see ResolveAllocationJob. Fails with INVALID_ARGUMENT, reason REQUEST_INVALID, and
// every fault, paths relative to the request
// (`jobs[2].id`, `capacity.workers`).
absl::StatusOr<AllocationQuery> ResolveAllocation(const AllocationDraft& draft,
                                                  const AllocationLimits& limits = {});

}  // namespace stepcast
