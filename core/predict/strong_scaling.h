// Throughput of a job whose workers divide one batch among them (strong scaling).
//
// Threads: pure functions of their arguments; any number at once.
#pragma once

#include <cstdint>
#include <optional>

#include "absl/status/statusor.h"

#include "core/base/executor.h"
#include "core/base/stop_check.h"
#include "core/model/job_change.h"
#include "core/model/profile.h"
#include "core/model/profile_limits.h"
#include "core/predict/throughput.h"

namespace stepcast {

// A checked request; its scenarios are of the recorded profile.
struct StrongScalingQuery : ThroughputQuery {
  Profile recorded;
  std::optional<Profile> second;
  JobChange change;  // with a global_batch_size
  ProfileLimits limits;
};

// Fails as ResolveThroughput and ChangedProfile do (paths below `scenario.change`), and where a
// number of workers does not divide the batch. REQUIRES: change.global_batch_size is set.
absl::StatusOr<StrongScalingQuery> ResolveStrongScaling(const Profile& recorded,
                                                        const ThroughputDraft& draft,
                                                        const JobChange& change,
                                                        const Profile* second,
                                                        const ProfileLimits& limits);

// Predicts each scenario as PredictThroughput does, of the profile changed to its workers' share of
// the batch; speedup is over one worker with all of it. Cost and failure: as there.
absl::StatusOr<ThroughputAnswer> PredictStrongScaling(const StrongScalingQuery& query,
                                                      StopCheck stop, const Executor& executor);

}  // namespace stepcast
