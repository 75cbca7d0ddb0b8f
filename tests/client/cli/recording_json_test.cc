#include "client/cli/recording_json.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "stepcast/json.h"
#include "tests/client/support/tiny_profile.h"

namespace stepcast::client::recording_json_test {
namespace {

using Json = nlohmann::json;

const RecordingReport kRecording = {
    .clocks = {.orders = 1,
               .impossible_orders = 2,
               .worst_seconds = 3,
               .server_ahead_seconds = 4,
               .clamped_orders = 5,
               .worst_clamped_seconds = 6},
    .links = {{.direction = "DOWNLINK",
               .bandwidth_bytes_per_second = 1,
               .bandwidth_interval = {2, 3, 0.95},
               .stated_bytes_per_second = 4,
               .start_seconds = 5,
               .start_interval = {6, 7, 0.95},
               .busy_periods = 8,
               .outlier_periods = 9,
               .window_identified = true,
               .window_bytes = 10,
               .window_lower_bytes = 11,
               .window_upper_bytes = 12,
               .largest_transfer_bytes = 13,
               .disciplines = {{.name = "WINDOW",
                                .bandwidth_bytes_per_second = 14,
                                .window_bytes = 15,
                                .quantum_bytes = 16,
                                .errors = {17, 18, 19, 20}}},
               .nearest = "WINDOW",
               .with_start = {21, 22, 23, 24}},
              {.direction = "UPLINK", .unavailable_reason = "because"}}};

TEST(RecordingJsonTest, TheProfilesFieldsStayWhereTheyWere) {
  Json check = Json::parse(CheckJson(TinyProfile(), {}, kRecording));
  check.erase("recording");
  EXPECT_EQ(check, Json::parse(ToJson(TinyProfile())));
}

TEST(RecordingJsonTest, EverythingIsCarried) {
  const ReplayReport replay{
      .recorded_step_seconds = 0.1, .replayed_step_seconds = 0.2, .fitted_transfer_seconds = 0.3};
  EXPECT_EQ(Json::parse(CheckJson(TinyProfile(), replay, kRecording))["recording"],
            Json::parse(R"json({
    "replay": {"recordedStepSeconds": 0.1, "replayedStepSeconds": 0.2, "fittedTransferSeconds": 0.3},
    "clocks": {"orders": "1", "impossibleOrders": "2", "worstSeconds": 3.0, "serverAheadSeconds": 4.0, "clampedOrders": "5", "worstClampedSeconds": 6.0},
    "links": [{
      "direction": "DOWNLINK", "unavailableReason": "",
      "bandwidthBytesPerSecond": 1.0, "bandwidthInterval": {"lower": 2.0, "upper": 3.0, "level": 0.95}, "statedBytesPerSecond": 4.0,
      "startSeconds": 5.0, "startInterval": {"lower": 6.0, "upper": 7.0, "level": 0.95}, "busyPeriods": 8, "outlierPeriods": 9,
      "windowIdentified": true, "windowBytes": "10", "windowLowerBytes": "11", "windowUpperBytes": "12", "largestTransferBytes": "13",
      "disciplines": [{"discipline": "WINDOW", "bandwidthBytesPerSecond": 14.0, "windowBytes": "15", "quantumBytes": "16",
                       "endTimeError": {"average": 17.0, "median": 18.0, "p95": 19.0, "maximum": 20.0}}],
      "nearest": "WINDOW", "nearestWithStart": {"average": 21.0, "median": 22.0, "p95": 23.0, "maximum": 24.0}
    }, {"direction": "UPLINK", "unavailableReason": "because"}]
  })json"));
}

}  // namespace
}  // namespace stepcast::client::recording_json_test
