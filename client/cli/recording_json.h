// The JSON of `profile check`: the profile as the service returned it, and what its recording says,
// as a member `recording` beside its fields.
#pragma once

#include <string>

#include "client/local/recording_report.h"
#include "client/local/replay_report.h"

#include "stepcast/profile.h"

namespace stepcast::client {

// recording { replay { recordedStepSeconds replayedStepSeconds fittedTransferSeconds } clocks {..}
// links [..] }: the members of the reports, in lowerCamelCase.
std::string CheckJson(const Profile& profile, const ReplayReport& replay,
                      const RecordingReport& recording);

}  // namespace stepcast::client
