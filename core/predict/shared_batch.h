// One batch that the workers of a job divide among them (strong scaling): with W workers each has
// 1/W of it, and its profile is the recorded one changed to that share; where gradients of K
// micro-batches add up, a micro-batch has 1/(W K) of it. Replicas of a pipeline have theirs in
// micro-batches, each of the profile's batch.
//
// Threads: pure functions of their arguments; any number at once.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>

#include "absl/status/statusor.h"

#include "core/model/job_change.h"
#include "core/model/profile.h"
#include "core/model/scenario.h"
#include "core/predict/request_faults.h"

namespace stepcast {

class SharedBatch {
 public:
  // Fails as ChangedProfile does (paths below `scenario.change`), and where the batch is out of
  // range, or a batch of each worker is given, too. `second`: as for ChangedProfile; null: none.
  // REQUIRES: change.global_batch_size is set.
  static absl::StatusOr<SharedBatch> Of(const Profile& recorded, const JobChange& change,
                                        const Profile* second, const ProfileLimits& limits);

  int64_t examples() const { return *change_.global_batch_size; }
  // Examples of one micro-batch of all workers together, which their number must divide.
  int64_t micro_batch_examples() const { return examples() / micro_batches(); }
  // The batch as it is divided: `the global batch of 96 examples in 2 micro-batches`.
  std::string Name() const;
  // True if the job is changed in something else, too.
  bool ChangesMore() const {
    JobChange other = change_;
    other.global_batch_size.reset();
    return other.any();
  }
  // Gives a pipeline the micro-batches of one of the draft's workers (1: all). Adds faults at
  // `path`.pipeline.micro_batches, below scenario.change, and at `workers_path` where the workers
  // do not divide the batch. In a scenario whose gradients cannot add up, that is a fault, too.
  void Share(ScenarioDraft& draft, const std::string& path, const std::string& workers_path,
             RequestFaults& faults) const;
  // Adds the fault at `path` where so many workers cannot have equal shares. `one_worker`: the
  // scenario of one that has all.
  void CheckShares(const Scenario& one_worker, int32_t workers, const std::string& path,
                   RequestFaults& faults) const;

  // The job as one of so many workers, which divide the examples, would have recorded it. Cost: as
  // ChangedProfile.
  absl::StatusOr<Profile> ProfileOf(int32_t workers) const;

 private:
  SharedBatch(const Profile& recorded, const JobChange& change, const Profile* second,
              const ProfileLimits& limits)
      : recorded_(recorded),
        change_(change),
        second_(second == nullptr ? std::nullopt : std::optional(*second)),
        limits_(limits) {}

  int64_t micro_batches() const { return std::max(change_.accumulate.value_or(1), 1); }

  Profile recorded_;
  JobChange change_;
  std::optional<Profile> second_;
  ProfileLimits limits_;
};

}  // namespace stepcast
