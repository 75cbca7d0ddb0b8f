#include "server/jobs/job_admission.h"

#include <string>

#include "gtest/gtest.h"

#include "core/base/error.h"

namespace stepcast::server::job_admission_test {
namespace {

constexpr int64_t kSecond = 1'000'000'000;

PoolLoad Busy() { return {.now_ns = 0, .threads = 2, .unfinished = 2}; }

TEST(JobAdmissionTest, NothingIsWaitedForWhileAThreadIsIdle) {
  EXPECT_EQ(ExpectedWaitSeconds({.threads = 2, .unfinished = 1, .running_seconds = 100}), 0);
}

TEST(JobAdmissionTest, TheWaitIsWhatRunsAndWhatIsAheadOverTheThreads) {
  EXPECT_DOUBLE_EQ(ExpectedWaitSeconds({.threads = 2,
                                        .unfinished = 5,
                                        .queue_seconds = 30,
                                        .running_seconds = 4,
                                        .ahead_seconds = 10}),
                   7);
}

TEST(JobAdmissionTest, AFullCountNamesItsLimitAndWhenHalfOfTheQueueIsServed) {
  PoolLoad load = Busy();
  load.unfinished = 2 + 8;
  load.queue_seconds = 40;
  const absl::Status refused = CheckRoom({}, load, {.queue_max = 8});
  EXPECT_EQ(refused.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(DetailsOf(refused).reason, "QUEUE_FULL");
  EXPECT_EQ(DetailsOf(refused).quota_subject, "queue_max");
  EXPECT_EQ(DetailsOf(refused).retry_delay_ms, 10'000);
  EXPECT_EQ(DetailsOf(CheckRoom({}, load, {.queue_max = 8, .queue_max_name = "store_queue_max"}))
                .quota_subject,
            "store_queue_max");
  --load.unfinished;
  EXPECT_TRUE(CheckRoom({}, load, {.queue_max = 8}).ok());
}

TEST(JobAdmissionTest, ExpectedWorkIsBoundedToo) {
  PoolLoad load = Busy();
  load.queue_seconds = 50;
  const absl::Status refused =
      CheckRoom({.expected_seconds = 11}, load, {.queue_max = 8, .queue_seconds_max = 60});
  EXPECT_EQ(DetailsOf(refused).quota_subject, "queue_max_seconds");
  EXPECT_EQ(DetailsOf(refused).retry_delay_ms, 12'500);
  EXPECT_TRUE(
      CheckRoom({.expected_seconds = 10}, load, {.queue_max = 8, .queue_seconds_max = 60}).ok());
}

TEST(JobAdmissionTest, ASingleJobIsTakenHoweverLongItIs) {
  EXPECT_TRUE(
      CheckRoom({.expected_seconds = 1e6}, Busy(), {.queue_max = 8, .queue_seconds_max = 60}).ok());
}

TEST(JobAdmissionTest, ADeadlineBehindTheWaitIsRefusedWithTheTimeAfterWhichItWouldHold) {
  PoolLoad load = Busy();
  load.running_seconds = 8;
  load.ahead_seconds = 8;
  const absl::Status refused =
      CheckDeadline({.expected_seconds = 1, .deadline_ns = 5 * kSecond}, load);
  EXPECT_EQ(refused.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(DetailsOf(refused).reason, "DEADLINE_UNREACHABLE");
  EXPECT_EQ(DetailsOf(refused).retry_delay_ms,
            5000);  // 8 s of waiting and 1 of computing, against four fifths of 5
  EXPECT_TRUE(CheckDeadline({.expected_seconds = 1, .deadline_ns = 12 * kSecond}, load).ok());
}

TEST(JobAdmissionTest, WhatIsTooLongByItselfIsNotToBeRepeatedWhateverWaits) {
  PoolLoad load = Busy();
  load.ahead_seconds = 8;
  const absl::Status refused =
      CheckDeadline({.expected_seconds = 4.1, .deadline_ns = kSecond}, load);
  EXPECT_EQ(refused.code(), absl::StatusCode::kDeadlineExceeded);
  EXPECT_EQ(DetailsOf(refused).retry_delay_ms, 0);
}

TEST(JobAdmissionTest, AQueueOfNoneIsRoomAgainWhenWhatRunsIsDone) {
  PoolLoad load = Busy();
  load.running_seconds = 6;
  EXPECT_EQ(DetailsOf(CheckRoom({}, load, {.queue_max = 0})).retry_delay_ms, 3000);
}

TEST(JobAdmissionTest, WithoutADeadlineAnyWaitIsGoodEnough) {
  PoolLoad load = Busy();
  load.ahead_seconds = 1e9;
  EXPECT_TRUE(CheckDeadline({.expected_seconds = 1e9}, load).ok());
}

TEST(JobAdmissionTest, OnAnIdleThreadAnExpectationMayBeWrongByFour) {
  const PoolLoad idle{.threads = 2};
  EXPECT_TRUE(CheckDeadline({.expected_seconds = 4, .deadline_ns = kSecond}, idle).ok());
  const absl::Status refused =
      CheckDeadline({.expected_seconds = 4.1, .deadline_ns = kSecond}, idle);
  EXPECT_EQ(refused.code(), absl::StatusCode::kDeadlineExceeded);
  EXPECT_EQ(DetailsOf(refused).reason, "DEADLINE_UNREACHABLE");
  EXPECT_EQ(DetailsOf(refused).retry_delay_ms, 0);
}

TEST(CostModelTest, KnowsNothingAtFirst) {
  EXPECT_EQ(CostModel().ExpectedSeconds({.group = "g", .kind = "k", .size = 5}), 0);
}

TEST(CostModelTest, TakesTheTimeOfAUnitTimesTheSize) {
  CostModel model;
  model.Observe({.group = "g", .kind = "k", .size = 10}, 2);
  EXPECT_DOUBLE_EQ(model.ExpectedSeconds({.group = "g", .kind = "k", .size = 100}), 20);
}

TEST(CostModelTest, AKindNotSeenIsLikeItsGroupAndUnlikeOthers) {
  CostModel model;
  model.Observe({.group = "g", .kind = "k", .size = 1}, 3);
  EXPECT_DOUBLE_EQ(model.ExpectedSeconds({.group = "g", .kind = "other", .size = 1}), 3);
  EXPECT_EQ(model.ExpectedSeconds({.group = "h", .kind = "k", .size = 1}), 0);
}

TEST(CostModelTest, FollowsAMachineThatBecameSlower) {
  CostModel model;
  for (int i = 0; i < 100; ++i) model.Observe({.group = "g", .kind = "k", .size = 1}, 1);
  for (int i = 0; i < 10; ++i) model.Observe({.group = "g", .kind = "k", .size = 1}, 5);
  EXPECT_NEAR(model.ExpectedSeconds({.group = "g", .kind = "k", .size = 1}), 5, 0.3);
}

TEST(CostModelTest, WorkWithoutASizeTeachesNothing) {
  CostModel model;
  model.Observe({.group = "g", .kind = "k", .size = 0}, 5);
  EXPECT_EQ(model.ExpectedSeconds({.group = "g", .kind = "k", .size = 1}), 0);
}

TEST(CostModelTest, ForgetsTheKindsLearnedLongestAgo) {
  CostModel model;
  model.Observe({.group = "old", .kind = "old", .size = 1}, 7);
  for (size_t i = 0; i < CostModel::kMaxKinds; ++i)
    model.Observe({.group = "g", .kind = std::to_string(i), .size = 1}, 1);
  EXPECT_EQ(model.ExpectedSeconds({.group = "old", .kind = "old", .size = 1}), 0);
  EXPECT_EQ(model.ExpectedSeconds({.group = "g", .kind = "1023", .size = 1}), 1);
}

}  // namespace
}  // namespace stepcast::server::job_admission_test
