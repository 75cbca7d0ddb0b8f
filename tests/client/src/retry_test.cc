#include "client/src/retry.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>
#include <vector>

#include "absl/strings/cord.h"
#include "google/rpc/error_details.pb.h"

#include "tests/client/support/fake_retry_environment.h"

namespace stepcast::client::retry_test {
namespace {

using std::chrono::milliseconds;
using std::chrono::nanoseconds;
using std::chrono::seconds;
using testing::ElementsAre;
using testing::IsEmpty;

absl::Status WithRetryInfo(absl::StatusCode code, nanoseconds delay) {
  google::rpc::RetryInfo info;
  info.mutable_retry_delay()->set_seconds(delay / seconds(1));
  info.mutable_retry_delay()->set_nanos(static_cast<int32_t>((delay % seconds(1)).count()));
  absl::Status status(code, "later");
  status.SetPayload("type.googleapis.com/google.rpc.RetryInfo",
                    absl::Cord(info.SerializeAsString()));
  return status;
}

class RetryLoopTest : public testing::Test {
 protected:
  // Fails with `status` for ever; notes what each attempt was given.
  absl::Status RunFailing(const absl::Status& status, Repeatable repeatable = Repeatable::kYes) {
    return RetryLoop(call_, repeatable, environment_, [&](nanoseconds timeout) {
      timeouts_.push_back(timeout);
      world_.now += attempt_length_;
      return status;
    });
  }

  CallTerms call_{.timeout = seconds(60), .retry = {}};
  FakeRetryEnvironment::World world_;
  FakeRetryEnvironment environment_{world_};
  nanoseconds attempt_length_{0};
  std::vector<nanoseconds> timeouts_;
};

TEST_F(RetryLoopTest, SuccessIsNotRepeated) {
  EXPECT_TRUE(RunFailing(absl::OkStatus()).ok());
  EXPECT_THAT(timeouts_, ElementsAre(seconds(60)));
}

TEST_F(RetryLoopTest, UnavailableIsRetriedWithPausesThatDouble) {
  world_.chance = 1;
  EXPECT_EQ(RunFailing(absl::UnavailableError("down")), absl::UnavailableError("down"));
  EXPECT_THAT(world_.sleeps, ElementsAre(milliseconds(100), milliseconds(200), milliseconds(400),
                                         milliseconds(800)));
  EXPECT_EQ(timeouts_.size(), 5);
}

TEST_F(RetryLoopTest, WhatAServersShutdownCancelledIsRetried) {
  RunFailing(absl::CancelledError("CANCELLED")).IgnoreError();
  EXPECT_EQ(timeouts_.size(), 5);
}

TEST_F(RetryLoopTest, ACancellationWithAReasonIsFinal) {
  google::rpc::ErrorInfo info;
  info.set_reason("CANCELLED");
  info.set_domain("stepcast");
  absl::Status status = absl::CancelledError("somebody cancelled it");
  status.SetPayload("type.googleapis.com/google.rpc.ErrorInfo",
                    absl::Cord(info.SerializeAsString()));
  RunFailing(status).IgnoreError();
  EXPECT_EQ(timeouts_.size(), 1);
}

TEST_F(RetryLoopTest, ChanceTakesUpToHalfOfAPause) {
  world_.chance = 0;
  RunFailing(absl::UnavailableError("down")).IgnoreError();
  EXPECT_THAT(world_.sleeps, ElementsAre(milliseconds(50), milliseconds(100), milliseconds(200),
                                         milliseconds(400)));
}

TEST_F(RetryLoopTest, PausesStopGrowingAtTheLongest) {
  world_.chance = 1;
  call_.retry = {
      .max_attempts = 6, .initial_backoff = seconds(1), .max_backoff = seconds(3), .multiplier = 2};
  RunFailing(absl::UnavailableError("down")).IgnoreError();
  EXPECT_THAT(world_.sleeps,
              ElementsAre(seconds(1), seconds(2), seconds(3), seconds(3), seconds(3)));
}

TEST_F(RetryLoopTest, AFullQueueIsRetriedNoSoonerThanTheServerAsked) {
  world_.chance = 1;
  call_.retry.max_attempts = 3;
  RunFailing(WithRetryInfo(absl::StatusCode::kResourceExhausted, milliseconds(1500))).IgnoreError();
  EXPECT_THAT(world_.sleeps, ElementsAre(milliseconds(1600), milliseconds(1700)));
}

TEST_F(RetryLoopTest, AMessageThatIsTooLargeIsNotRetried) {
  RunFailing(absl::ResourceExhaustedError("Received message larger than max")).IgnoreError();
  EXPECT_THAT(world_.sleeps, IsEmpty());
}

TEST_F(RetryLoopTest, OtherCodesAreNotRetried) {
  for (const absl::StatusCode code :
       {absl::StatusCode::kUnknown, absl::StatusCode::kInvalidArgument,
        absl::StatusCode::kDeadlineExceeded, absl::StatusCode::kNotFound,
        absl::StatusCode::kAlreadyExists, absl::StatusCode::kPermissionDenied,
        absl::StatusCode::kFailedPrecondition, absl::StatusCode::kAborted,
        absl::StatusCode::kOutOfRange, absl::StatusCode::kUnimplemented,
        absl::StatusCode::kInternal, absl::StatusCode::kDataLoss,
        absl::StatusCode::kUnauthenticated}) {
    EXPECT_EQ(RunFailing(WithRetryInfo(code, milliseconds(1))).code(), code);
    EXPECT_THAT(world_.sleeps, IsEmpty()) << absl::StatusCodeToString(code);
  }
}

TEST_F(RetryLoopTest, WhatIsNotRepeatableIsTriedOnce) {
  RunFailing(absl::UnavailableError("down"), Repeatable::kNo).IgnoreError();
  EXPECT_EQ(timeouts_.size(), 1);
}

TEST_F(RetryLoopTest, APolicyOfOneAttemptNeverRetries) {
  call_.retry.max_attempts = 1;
  RunFailing(absl::UnavailableError("down")).IgnoreError();
  EXPECT_EQ(timeouts_.size(), 1);
}

TEST_F(RetryLoopTest, EachAttemptGetsWhatIsLeftOfTheCall) {
  world_.chance = 1;
  call_ = {.timeout = seconds(10),
           .retry = {.max_attempts = 3, .initial_backoff = seconds(1), .multiplier = 1}};
  attempt_length_ = seconds(2);
  RunFailing(absl::UnavailableError("down")).IgnoreError();
  EXPECT_THAT(timeouts_, ElementsAre(seconds(10), seconds(7), seconds(4)));
}

TEST_F(RetryLoopTest, APauseThatWouldEndAfterTheDeadlineIsNotBegun) {
  world_.chance = 1;
  call_ = {.timeout = seconds(10),
           .retry = {.max_attempts = 100, .initial_backoff = seconds(4), .multiplier = 1}};
  EXPECT_EQ(RunFailing(absl::UnavailableError("down")), absl::UnavailableError("down"));
  EXPECT_THAT(world_.sleeps, ElementsAre(seconds(4), seconds(4)));
  EXPECT_LT(world_.now.time_since_epoch(), seconds(10));
}

TEST_F(RetryLoopTest, WithoutTimeNothingIsTried) {
  for (const nanoseconds timeout : {nanoseconds(0), nanoseconds(-1), nanoseconds::min()}) {
    call_.timeout = timeout;
    EXPECT_TRUE(absl::IsDeadlineExceeded(RunFailing(absl::OkStatus())));
  }
  EXPECT_THAT(timeouts_, IsEmpty());
}

TEST_F(RetryLoopTest, ADelayOfAgesFromTheServerEndsTheCall) {
  const absl::Status later =
      WithRetryInfo(absl::StatusCode::kUnavailable, std::chrono::hours(24 * 365 * 250));
  EXPECT_EQ(RunFailing(later), later);
  EXPECT_THAT(world_.sleeps, IsEmpty());
}

TEST(PauseBeforeRetryTest, AnAbsurdPolicyGivesAPauseAllTheSame) {
  const RetryPolicy policy{.max_attempts = 1 << 30,
                           .initial_backoff = nanoseconds::max(),
                           .max_backoff = nanoseconds::max(),
                           .multiplier = 1e300};
  const auto pause = PauseBeforeRetry(policy, absl::UnavailableError("down"), 1 << 20, 1);
  ASSERT_TRUE(pause.has_value());
  EXPECT_GT(*pause, std::chrono::hours(24));
  const RetryPolicy negative{
      .initial_backoff = seconds(-5), .max_backoff = seconds(-5), .multiplier = -1};
  EXPECT_EQ(PauseBeforeRetry(negative, absl::UnavailableError("down"), 1, 1), nanoseconds(0));
}

TEST(RequestIdTest, IsAUuidOfVersionFour) {
  EXPECT_THAT(
      NewRequestId(),
      testing::MatchesRegex("[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}"));
}

TEST(RequestIdTest, NeverComesTwice) {
  std::set<std::string> ids;
  for (int i = 0; i < 1000; ++i) ids.insert(NewRequestId());
  EXPECT_EQ(ids.size(), 1000);
}

}  // namespace
}  // namespace stepcast::client::retry_test
