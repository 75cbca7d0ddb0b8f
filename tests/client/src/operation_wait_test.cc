#include "client/src/operation_wait.h"

#include <gtest/gtest.h>

#include <deque>

#include "stepcast/error_details.h"
#include "tests/client/support/fake_retry_environment.h"
#include "tests/client/support/fake_stub.h"

namespace stepcast::client::operation_wait_test {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

class OperationWaitTest : public testing::Test {
 protected:
  absl::Status Await(const CallTerms& terms) {
    return AwaitOperation("operations/o-1", terms, stub_, environment_).status();
  }
  // Each wait takes as long as it was asked to.
  void WaitInFull() {
    script_.on_wait = [this] { world_.now += script_.waits.back(); };
  }
  size_t Waits() const { return script_.waits.size(); }

  FakeStub::Script script_;
  FakeRetryEnvironment::World world_;
  FakeStub stub_{script_};
  FakeRetryEnvironment environment_{world_};
};

TEST_F(OperationWaitTest, WhatIsDoneIsNotWaitedFor) {
  EXPECT_TRUE(Await({.timeout = seconds(60)}).ok());
  ASSERT_EQ(script_.attempts.size(), 1);
  EXPECT_EQ(script_.attempts[0].method, "GetOperation");
}

TEST_F(OperationWaitTest, WaitsRoundByRoundUntilItIsDone) {
  WaitInFull();
  script_.open_for = 3;
  EXPECT_TRUE(Await({.timeout = seconds(1000)}).ok());
  EXPECT_EQ(script_.waits, (std::vector<seconds>{seconds(60), seconds(60), seconds(60)}));
}

TEST_F(OperationWaitTest, AsksForNoMoreThanIsLeftAndThenSaysThatItGoesOn) {
  WaitInFull();
  script_.open_for = 1000;
  const absl::Status status = Await({.timeout = seconds(70)});
  EXPECT_TRUE(absl::IsDeadlineExceeded(status)) << status;
  EXPECT_EQ(GetErrorDetails(status).reason, "JOB_NOT_DONE");
  EXPECT_EQ(GetErrorDetails(status).metadata.at("name"), "operations/o-1");
  EXPECT_EQ(script_.waits, (std::vector<seconds>{seconds(60), seconds(10)}));
}

TEST_F(OperationWaitTest, ADeadlineThatPassesWithinACallIsTheSame) {
  script_.open_for = 1;
  script_.statuses = {absl::OkStatus(), absl::DeadlineExceededError("Deadline Exceeded")};
  EXPECT_EQ(GetErrorDetails(Await({.timeout = seconds(5)})).reason, "JOB_NOT_DONE");
}

TEST_F(OperationWaitTest, AServerThatIsNotReachedIsSaidAsSoonAsByAnyCall) {
  script_.statuses = std::deque<absl::Status>(100, absl::UnavailableError("gone"));
  EXPECT_EQ(Await({.timeout = seconds(3600), .retry = {.max_attempts = 3}}),
            absl::UnavailableError("gone"));
  EXPECT_EQ(script_.attempts.size(), 3);
}

TEST_F(OperationWaitTest, ARestartAmidAWaitIsSurvivedWhateverTheNumberOfAttempts) {
  script_.open_for = 1;
  script_.statuses = std::deque<absl::Status>(9, absl::UnavailableError("restarting"));
  script_.statuses.push_front(absl::OkStatus());
  EXPECT_TRUE(Await({.timeout = seconds(3600), .retry = {.max_attempts = 2}}).ok());
  EXPECT_EQ(script_.attempts.size(), 11);
}

TEST_F(OperationWaitTest, AnOutageThatDoesNotEndEndsTheWait) {
  script_.open_for = 1;
  script_.statuses = std::deque<absl::Status>(1000, absl::UnavailableError("gone"));
  script_.statuses.push_front(absl::OkStatus());
  EXPECT_EQ(Await({.timeout = std::chrono::hours(10)}), absl::UnavailableError("gone"));
  EXPECT_LE(world_.now.time_since_epoch(), kWaitRound + kMaxOutage);
  EXPECT_GE(world_.now.time_since_epoch(), kMaxOutage);
}

TEST_F(OperationWaitTest, WhoWantsNoRetriesGetsNone) {
  script_.open_for = 1;
  script_.statuses = {absl::OkStatus(), absl::UnavailableError("restarting")};
  EXPECT_EQ(Await({.timeout = seconds(60), .retry = {.max_attempts = 1}}),
            absl::UnavailableError("restarting"));
}

TEST_F(OperationWaitTest, WhatIsDeletedMeanwhileIsNotWaitedFor) {
  script_.open_for = 1;
  script_.statuses = {absl::OkStatus(), absl::NotFoundError("deleted")};
  EXPECT_EQ(Await({.timeout = seconds(60)}), absl::NotFoundError("deleted"));
}

TEST_F(OperationWaitTest, AServerThatEndsWaitsAtOnceIsNotAskedWithoutAPause) {
  script_.open_for = 1000;
  EXPECT_FALSE(Await({.timeout = seconds(1)}).ok());
  EXPECT_EQ(Waits(), 10);
  EXPECT_EQ(world_.sleeps.at(0), milliseconds(100));
}

TEST_F(OperationWaitTest, TimeWithoutEndDoesNotOverflow) {
  WaitInFull();
  script_.open_for = 2;
  EXPECT_TRUE(Await({.timeout = std::chrono::nanoseconds::max()}).ok());
  EXPECT_EQ(Waits(), 2);
}

}  // namespace
}  // namespace stepcast::client::operation_wait_test
