// The fit of the model of one worker to its own recording.
//
// A replay of one worker at the recorded bandwidth, in the recorded order, should take as long as
// the recorded steps did.
// A faster replay means that something costs time that the model does not know: most often a cost
// per transfer (dispatch, parsing; ICPE 2020, 3.2.1).
// A slower one means that recorded computations overlapped on several cores or streams, or that the
// bandwidth is higher than claimed.
// Threads: pure functions of their arguments; any number at once.
#pragma once

#include "absl/status/statusor.h"

#include "core/base/stop_check.h"
#include "core/model/profile.h"

namespace stepcast {

struct ReplayCheck {
  double recorded_step_seconds = 0;  // mean over the recorded steps, of their last end
  double replayed_step_seconds = 0;  // mean over the same steps
  // Seconds per transfer that, added to the profile's parsing overhead, make the replay as long as
  // the recording; 0 where it is as long or longer without.
  double fitted_transfer_seconds = 0;

  // Above 0: the replay is faster than the recording by this share of the recording.
  double gap() const {
    return (recorded_step_seconds - replayed_step_seconds) / recorded_step_seconds;
  }
};

// Cost: some forty replays of every recorded step. Failure: what `stop` returns; as Simulate.
absl::StatusOr<ReplayCheck> CheckReplay(const Profile& profile, StopCheck stop);

}  // namespace stepcast
