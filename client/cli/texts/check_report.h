// The report of `profile check` on a valid profile, for people and for programs.
#pragma once

#include <string>

#include "server/local/recording_report.h"
#include "stepcast/v1/profile.pb.h"

namespace stepcast::client {

// The share of a recorded step that the model explains, a line for each link and for clocks, or of
// collectives what a step is made of, the buckets and DistributedDataParallel's rule; and at least
// one line `to do: ...`.
std::string CheckSummary(const server::RecordingReport& recording);

// For each link its bandwidth, its start, its window, and a table of how well each way of sharing
// it explains the recording, the nearest one marked; and the scheduling efficiency of each step.
std::string CheckDetails(const server::RecordingReport& recording);

// The profile as the service returned it, and the report as a member `recording` beside its fields:
// { replay {..} clocks {..} links [..] orders {..} }, or of collectives { replay {..} allReduce
// {..} }, the members of the reports in lowerCamelCase.
std::string CheckJson(const v1::Profile& profile, const server::RecordingReport& recording);

}  // namespace stepcast::client
