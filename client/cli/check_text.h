// What `profile check` says of a valid profile, for people: first how much of it is explained and
// what to do, on request everything that was found.
#pragma once

#include <string>

#include "client/local/recording_report.h"
#include "client/local/replay_report.h"

namespace stepcast::client {

// How much of a recorded step the model explains, a line for each link and where clocks disagree,
// and at least one line `to do: ...`.
std::string CheckSummary(const ReplayReport& replay, const RecordingReport& recording);

// For each link its bandwidth, its start, its window, and a table of how well each way of sharing
// it explains the recording, the nearest one marked.
std::string CheckDetails(const RecordingReport& recording);

}  // namespace stepcast::client
