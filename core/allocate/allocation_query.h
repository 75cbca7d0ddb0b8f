// The request for an allocation, as a whole and of each job: as asked for, and checked.
//
// Threads: pure functions.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

#include "core/allocate/claim.h"
#include "core/model/profile.h"
#include "core/model/scenario.h"
#include "core/model/simulation_options.h"
#include "core/predict/run_memory.h"
#include "core/predict/shared_batch.h"

namespace stepcast {

enum class AllocationObjective : uint8_t { kTotalUtility, kMaxMinFair, kMinMakespan };

// A job as it is asked for, unchecked.
struct AllocationJobDraft {
  ScenarioDraft scenario;  // everything but the number of workers
  std::optional<double> weight;
  std::optional<int32_t> min_workers;  // 0: may get none
  std::optional<int32_t> max_workers;
  std::optional<int32_t> gang;
  std::optional<int32_t> max_parameter_servers;
  std::optional<int64_t> remaining_examples;
  struct Current {
    int32_t workers = 0;
    double rescale_seconds = 0;
    std::optional<int32_t> servers;  // the scenario's
  };
  std::optional<Current> current;
};

// A checked job.
struct AllocationJob {
  Profile profile;
  Scenario one_worker;  // on the servers asked for: what speedup is measured against
  std::vector<Scenario> server_choices;  // one a number of servers, ascending, none above the
                                         // capacity but for the lowest
  std::vector<int32_t> worker_counts;    // that it may get, ascending, above 0; none above the
                                         // capacity and one more, but for the lowest
  bool may_rest = false;                 // it may get none
  bool cut_by_capacity = false;          // it might get more than worker_counts of a larger cluster
  int64_t devices_per_worker = 1;
  double weight = 1;
  int64_t remaining_examples = 0;  // 0: not known
  int32_t current_workers = 0;     // 0: it is not running
  int32_t current_servers = 0;
  double rescale_seconds = 0;
  std::optional<SharedBatch> shared;  // that its workers divide; every worker count divides it
  KnownRuns known;                    // of its profile; may be set once it is checked
};

struct AllocationJobLimits {
  double min_weight = 1e-6;
  double max_weight = 1e6;
  int32_t max_workers = 4096;
  int32_t max_parameter_servers = 16;
  double max_rescale_seconds = 1e9;
};

// Fails with INVALID_ARGUMENT, reason JOB_INVALID, and every fault, paths relative to the job.
// `shared`: the batch that its workers divide; it then gets only numbers that do.
absl::StatusOr<AllocationJob> ResolveAllocationJob(const Profile& profile,
                                                   const AllocationJobDraft& draft,
                                                   const ClusterCapacity& capacity,
                                                   AllocationObjective objective,
                                                   std::optional<SharedBatch> shared = {},
                                                   const AllocationJobLimits& limits = {});

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
  int32_t max_devices = 1 << 20;
  int32_t max_parameter_servers = 4096;
};

// Without jobs: see ResolveAllocationJob. Fails with INVALID_ARGUMENT, reason REQUEST_INVALID, and
// every fault, paths relative to the request
// (`jobs[2].id`, `capacity.workers`).
absl::StatusOr<AllocationQuery> ResolveAllocation(const AllocationDraft& draft,
                                                  const AllocationLimits& limits = {});

}  // namespace stepcast
