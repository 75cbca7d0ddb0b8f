#include "core/predict/replay_check.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <utility>

#include "core/base/stop_check.h"

namespace stepcast::replay_check_test {
namespace {

// A download of 1 ms, a computation of 2 ms, an upload of 1 ms, an update of 1 ms, recorded as if
// each transfer had cost `lost_ns` more at its receiver.
Profile Recording(int64_t lost_ns) {
  ProfileDraft draft{.batch_size = 1, .platform = {.bandwidth_bytes_per_second = 1e9}};
  draft.operations = {
      {.name = "download", .resource = Resource::kDownlink, .size_bytes = 1'000'000},
      {.name = "compute", .resource = Resource::kWorker, .waiting_for = {0}},
      {.name = "upload",
       .resource = Resource::kUplink,
       .size_bytes = 1'000'000,
       .waiting_for = {1}},
      {.name = "update", .resource = Resource::kParameterServer, .waiting_for = {2}}};
  const int64_t ms = 1'000'000;
  draft.steps = {
      {.start_ns = {0, ms + lost_ns, 3 * ms + lost_ns, 4 * ms + 2 * lost_ns},
       .end_ns = {ms + lost_ns, 3 * ms + lost_ns, 4 * ms + 2 * lost_ns, 5 * ms + 2 * lost_ns}}};
  return Profile::Create(std::move(draft)).value();
}

TEST(ReplayCheckTest, ARecordingThatTheModelExplainsHasNoGap) {
  const ReplayCheck check = CheckReplay(Recording(0), NeverStop).value();
  EXPECT_DOUBLE_EQ(check.recorded_step_seconds, 0.005);
  EXPECT_DOUBLE_EQ(check.replayed_step_seconds, 0.005);
  EXPECT_EQ(check.gap(), 0);
  EXPECT_EQ(check.fitted_transfer_seconds, 0);
}

TEST(ReplayCheckTest, ACostPerTransferIsFound) {
  const ReplayCheck check = CheckReplay(Recording(250'000), NeverStop).value();
  EXPECT_DOUBLE_EQ(check.recorded_step_seconds, 0.0055);
  EXPECT_DOUBLE_EQ(check.replayed_step_seconds, 0.005);
  EXPECT_NEAR(check.gap(), 1.0 / 11, 1e-12);
  EXPECT_NEAR(check.fitted_transfer_seconds, 250e-6, 1e-9);
}

TEST(ReplayCheckTest, AReplaySlowerThanItsRecordingIsGivenNoCost) {
  ProfileDraft draft = Recording(0).content();
  draft.platform.bandwidth_bytes_per_second = 0.5e9;
  const ReplayCheck check =
      CheckReplay(Profile::Create(std::move(draft)).value(), NeverStop).value();
  EXPECT_DOUBLE_EQ(check.replayed_step_seconds, 0.007);
  EXPECT_LT(check.gap(), 0);
  EXPECT_EQ(check.fitted_transfer_seconds, 0);
}

TEST(ReplayCheckTest, StopsWhenTold) {
  EXPECT_EQ(CheckReplay(Recording(250'000), [] { return absl::CancelledError(); }).status().code(),
            absl::StatusCode::kCancelled);
}

}  // namespace
}  // namespace stepcast::replay_check_test
