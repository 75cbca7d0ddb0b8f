#include "client/cli/recording_json.h"

#include <vector>

#include "absl/strings/str_cat.h"
#include "client/cli/json_object.h"

#include "stepcast/json.h"

namespace stepcast::client {

namespace {

JsonObject JsonOf(const EndErrorReport& errors) {
  JsonObject object;
  object.Add("average", errors.average);
  object.Add("median", errors.median);
  object.Add("p95", errors.p95);
  object.Add("maximum", errors.maximum);
  return object;
}

JsonObject JsonOf(const ConfidenceInterval& interval) {
  JsonObject object;
  object.Add("lower", interval.lower);
  object.Add("upper", interval.upper);
  object.Add("level", interval.level);
  return object;
}

JsonObject JsonOf(const DisciplineReport& discipline) {
  JsonObject object;
  object.Add("discipline", discipline.name);
  object.Add("bandwidthBytesPerSecond", discipline.bandwidth_bytes_per_second);
  object.Add("windowBytes", discipline.window_bytes);
  object.Add("quantumBytes", discipline.quantum_bytes);
  object.Add("endTimeError", JsonOf(discipline.errors));
  return object;
}

JsonObject JsonOf(const LinkReport& link) {
  JsonObject object;
  object.Add("direction", link.direction);
  object.Add("unavailableReason", link.unavailable_reason);
  if (!link.unavailable_reason.empty()) return object;
  object.Add("bandwidthBytesPerSecond", link.bandwidth_bytes_per_second);
  object.Add("bandwidthInterval", JsonOf(link.bandwidth_interval));
  object.Add("statedBytesPerSecond", link.stated_bytes_per_second);
  object.Add("startSeconds", link.start_seconds);
  object.Add("startInterval", JsonOf(link.start_interval));
  object.Add("busyPeriods", link.busy_periods);
  object.Add("outlierPeriods", link.outlier_periods);
  object.Add("windowIdentified", link.window_identified);
  object.Add("windowBytes", link.window_bytes);
  object.Add("windowLowerBytes", link.window_lower_bytes);
  object.Add("windowUpperBytes", link.window_upper_bytes);
  object.Add("largestTransferBytes", link.largest_transfer_bytes);
  std::vector<JsonObject> disciplines;
  for (const DisciplineReport& discipline : link.disciplines)
    disciplines.push_back(JsonOf(discipline));
  object.Add("disciplines", disciplines);
  object.Add("nearest", link.nearest);
  object.Add("nearestWithStart", JsonOf(link.with_start));
  return object;
}

JsonObject JsonOf(const ClockReport& clocks) {
  JsonObject object;
  object.Add("orders", clocks.orders);
  object.Add("impossibleOrders", clocks.impossible_orders);
  object.Add("worstSeconds", clocks.worst_seconds);
  object.Add("serverAheadSeconds", clocks.server_ahead_seconds);
  object.Add("clampedOrders", clocks.clamped_orders);
  object.Add("worstClampedSeconds", clocks.worst_clamped_seconds);
  return object;
}

JsonObject JsonOf(const ReplayReport& replay) {
  JsonObject object;
  object.Add("recordedStepSeconds", replay.recorded_step_seconds);
  object.Add("replayedStepSeconds", replay.replayed_step_seconds);
  object.Add("fittedTransferSeconds", replay.fitted_transfer_seconds);
  return object;
}

}  // namespace

std::string CheckJson(const Profile& profile, const ReplayReport& replay,
                      const RecordingReport& recording) {
  JsonObject object;
  object.Add("replay", JsonOf(replay));
  object.Add("clocks", JsonOf(recording.clocks));
  std::vector<JsonObject> links;
  for (const LinkReport& link : recording.links) links.push_back(JsonOf(link));
  object.Add("links", links);
  // A profile's JSON always has fields and ends with "\n}\n".
  std::string json = ToJson(profile);
  json.resize(json.rfind('}'));
  while (!json.empty() && json.back() == '\n') json.pop_back();
  return absl::StrCat(json, ",\n \"recording\": ", object.Text(1), "\n}\n");
}

}  // namespace stepcast::client
