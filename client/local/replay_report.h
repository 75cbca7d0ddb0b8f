// How well the model explains a recording: what `profile check` says beyond "valid".
#pragma once

#include <string_view>

#include "absl/status/statusor.h"

namespace stepcast::client {

// Of one worker's step, in seconds; core/predict/replay_check.h says what it means.
struct ReplayReport {
  double recorded_step_seconds = 0;
  double replayed_step_seconds = 0;
  double fitted_transfer_seconds = 0;  // 0: the replay is not faster than the recording
};

// Replays a profile in this process. `bytes`: as in a file, in any encoding. Cost: some forty
// replays of every recorded step. Failure: as ParseProfile; INVALID_ARGUMENT, reason
// PROFILE_INVALID; where the simulation fails.
absl::StatusOr<ReplayReport> ReplayProfile(std::string_view bytes);

}  // namespace stepcast::client
