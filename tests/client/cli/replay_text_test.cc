#include "client/cli/replay_text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace stepcast::client::replay_text_test {
namespace {

using ::testing::EndsWith;
using ::testing::HasSubstr;

TEST(ReplayTextTest, AFasterReplayComesWithTheCostThatWouldExplainIt) {
  EXPECT_EQ(ReplayText({.recorded_step_seconds = 0.1, .replayed_step_seconds = 0.09, .fitted_transfer_seconds = 42e-6}),
            "replay: one worker's step was recorded with 100 ms, and takes 90 ms in the model (-10.0%)\n"
            "        a cost of 42 us a transfer would explain the rest: try --parsing-seconds 4.2e-05\n");
}

TEST(ReplayTextTest, ASlowerReplayComesWithItsUsualCauses) {
  EXPECT_THAT(ReplayText({.recorded_step_seconds = 0.1, .replayed_step_seconds = 0.11}), HasSubstr("slower than recorded"));
}

TEST(ReplayTextTest, AnEqualReplayNeedsNoAdvice) {
  EXPECT_THAT(ReplayText({.recorded_step_seconds = 0.1, .replayed_step_seconds = 0.1}), EndsWith("takes 100 ms in the model (+0.0%)\n"));
}

}  // namespace
}  // namespace stepcast::client::replay_text_test
