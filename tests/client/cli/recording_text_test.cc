#include "client/cli/recording_text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace stepcast::client::recording_text_test {
namespace {

using testing::HasSubstr;

LinkReport Link() {
  return {.direction = "DOWNLINK",
          .bandwidth_bytes_per_second = 119e6,
          .bandwidth_interval = {.lower = 118e6, .upper = 120e6},
          .stated_bytes_per_second = 125e6,
          .start_seconds = 250e-6,
          .start_interval = {.lower = 200e-6, .upper = 300e-6},
          .window_upper_bytes = 2 << 20,
          .largest_transfer_bytes = 2 << 20,
          .disciplines = {{.name = "PROFILE", .plain_name = "as the profile says", .window_bytes = 5, .errors = {0.1, 0.02, 0.3, 1}},
                          {.name = "FIRST_COME", .plain_name = "whole, first come", .errors = {0.05, 0.01, 0.2, 0.9}},
                          {.name = "WINDOW", .plain_name = "window", .window_bytes = 65536, .errors = {0.5, 0.5, 0.5, 2}}},
          .nearest = "FIRST_COME",
          .with_start = {0.04, 0.005, 0.1, 0.8}};
}

TEST(RecordingTextTest, EachLinkHasItsBandwidthItsWindowAndATable) {
  LinkReport link = Link();
  link.window_lower_bytes = 1 << 20;
  EXPECT_EQ(
      RecordingText({.links = {link, {.direction = "UPLINK", .unavailable_reason = "because"}}}),
      "downlink: 119 MB/s of payload (118 to 120), the profile says 125; an idle link takes 250.0 us (200.0 us to 300.0 us) to start\n"
      "  window: not identifiable: no tensor is larger than 2.000 MiB, and whole streams explain the ends as well as any window from 1.000 MiB on\n"
      "  error of end times, as a share of the time since the phase began:\n"
      "  streams                     average  median    95th  maximum\n"
      "  as the profile says          10.00%   2.00%  30.00%  100.00%\n"
      "* whole, first come             5.00%   1.00%  20.00%   90.00%\n"
      "    and an idle link's start    4.00%   0.50%  10.00%   80.00%\n"
      "  window (64.00 KiB)           50.00%  50.00%  50.00%  200.00%\n"
      "uplink: because\n");
}

TEST(RecordingTextTest, AWindowThatWasFoundIsSaidWithItsRange) {
  LinkReport link = Link();
  link.window_identified = true;
  link.window_bytes = 3 << 10;
  link.window_lower_bytes = 2 << 10;
  link.window_upper_bytes = 4 << 10;
  EXPECT_THAT(RecordingText({.links = {link}}),
              HasSubstr("window: a window of 3.000 KiB explains the ends best; 2.000 KiB to 4.000 KiB do about as well"));
}

TEST(RecordingTextTest, ClocksAreSpokenOfWhereTheyDisagree) {
  const ClockReport clocks{.orders = 100,
                           .impossible_orders = 10,
                           .worst_seconds = 0.002,
                           .server_ahead_seconds = -0.0015,
                           .clamped_orders = 1,
                           .worst_clamped_seconds = 0.0005};
  EXPECT_EQ(
      RecordingText({.clocks = clocks}),
      "clocks: 10 of 100 recorded orders are impossible, by up to 2.000 ms; the server's clock is taken to be 1.500 ms behind; 1 clamped, by up to "
      "500.0 us\n");
  EXPECT_EQ(RecordingText({}), "");
}

}  // namespace
}  // namespace stepcast::client::recording_text_test
