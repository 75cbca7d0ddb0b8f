// One batch that the workers of a job divide among them (strong scaling): with W workers each has
// 1/W of it, and its profile is the recorded one changed to that share.
//
// Threads: pure functions of their arguments; any number at once.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "absl/status/statusor.h"

#include "core/model/job_change.h"
#include "core/model/profile.h"
#include "core/model/profile_limits.h"
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
  // True if the job is changed in something else, too.
  bool ChangesMore() const {
    JobChange other = change_;
    other.global_batch_size.reset();
    return other.any();
  }
  // True if so many workers can have equal shares.
  bool DividesAmong(int32_t workers) const { return examples() % workers == 0; }
  // Adds the fault at `path` where they cannot.
  void CheckDividesAmong(int32_t workers, const std::string& path, RequestFaults& faults) const;

  // The job as one of so many workers would have recorded it. Cost: as ChangedProfile. REQUIRES:
  // DividesAmong(workers).
  absl::StatusOr<Profile> ProfileOf(int32_t workers) const;

 private:
  SharedBatch(const Profile& recorded, const JobChange& change, const Profile* second,
              const ProfileLimits& limits)
      : recorded_(recorded),
        change_(change),
        second_(second == nullptr ? std::nullopt : std::optional(*second)),
        limits_(limits) {}

  Profile recorded_;
  JobChange change_;
  std::optional<Profile> second_;
  ProfileLimits limits_;
};

}  // namespace stepcast
