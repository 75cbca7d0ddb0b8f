#include "client/src/remote_connection.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <deque>
#include <memory>
#include <set>
#include <string>

#include "stepcast/client.h"
#include "stepcast/error_details.h"
#include "tests/client/support/fake_retry_environment.h"
#include "tests/client/support/fake_stub.h"
#include "tests/client/support/text_proto.h"

namespace stepcast::client::remote_connection_test {
namespace {

using std::chrono::seconds;

class RemoteConnectionTest : public testing::Test {
 protected:
  RemoteConnectionTest()
      : client_(MakeRemoteConnection(std::make_unique<FakeStub>(script_),
                                     std::make_unique<FakeRetryEnvironment>(world_)),
                {}) {}

  void FailTwice() {
    script_.statuses = {absl::UnavailableError("one"), absl::UnavailableError("two")};
  }

  // The ids of all attempts so far.
  std::set<std::string> RequestIds() const {
    std::set<std::string> ids;
    for (const FakeStub::Attempt& attempt : script_.attempts) ids.insert(attempt.request_id);
    return ids;
  }

  FakeStub::Script script_;
  FakeRetryEnvironment::World world_;
  Client client_;
};

TEST_F(RemoteConnectionTest, CallsThatChangeNothingAreRetried) {
  FailTwice();
  EXPECT_TRUE(client_.GetProfile({}).ok());
  FailTwice();
  EXPECT_TRUE(client_.ListProfiles({}).ok());
  FailTwice();
  EXPECT_TRUE(client_.PredictThroughput({}).ok());
  FailTwice();
  EXPECT_TRUE(client_.RecommendWorkers({}).ok());
  FailTwice();
  EXPECT_TRUE(client_.OptimizeOrder({}).ok());
  FailTwice();
  EXPECT_TRUE(client_.OptimizeCommunication({}).ok());
  FailTwice();
  EXPECT_TRUE(client_.AllocateWorkers({}).ok());
  FailTwice();
  EXPECT_TRUE(client_.CompareModels({}).ok());
  FailTwice();
  EXPECT_TRUE(client_.DiagnoseJob({}).ok());
  FailTwice();
  EXPECT_TRUE(client_.OptimizeJob({}).ok());
  FailTwice();
  EXPECT_TRUE(client_.FitParsingOverhead({}).ok());
  FailTwice();
  EXPECT_TRUE(client_.FitCollectives({}).ok());
  FailTwice();
  EXPECT_TRUE(client_.FitContention({}).ok());
  EXPECT_EQ(script_.attempts.size(), 39);
}

TEST_F(RemoteConnectionTest, AStreamIsRetriedUntilItsFirstPieceHasCome) {
  std::string text;
  const auto take = [&text](std::string_view piece) {
    text += piece;
    return absl::OkStatus();
  };
  FailTwice();
  EXPECT_TRUE(client_.GenerateTrace({}, take).ok());
  EXPECT_EQ(script_.attempts.size(), 3);
  script_.chunks = {"a", "b"};
  FailTwice();
  EXPECT_EQ(client_.GenerateTrace({}, take), absl::UnavailableError("one"));
  EXPECT_EQ(script_.attempts.size(), 4);
  EXPECT_EQ(text, "ab") << "once";
}

TEST_F(RemoteConnectionTest, WhoeverTakesAStreamMayEndIt) {
  script_.chunks = {"a", "b"};
  int taken = 0;
  const auto refuse = [&taken](std::string_view) {
    ++taken;
    return absl::UnavailableError("the disk is full");
  };
  EXPECT_EQ(client_.GenerateTrace({}, refuse), absl::UnavailableError("the disk is full"));
  EXPECT_EQ(taken, 1) << "not retried, though the code is one that is";
}

TEST_F(RemoteConnectionTest, CallsThatStoreAreRetriedUnderOneRequestId) {
  FailTwice();
  EXPECT_TRUE(client_.CreateProfile({}).ok());
  ASSERT_EQ(script_.attempts.size(), 3);
  EXPECT_EQ(RequestIds().size(), 1);
  EXPECT_EQ(RequestIds().begin()->size(), 36) << "a UUID";
  FailTwice();
  EXPECT_TRUE(client_.UploadProfile(v1::Profile()).ok());
  FailTwice();
  EXPECT_TRUE(
      client_.ImportProfile(Proto<v1::ImportProfileRequest::Header>("layer_profile {}")).ok());
  FailTwice();
  EXPECT_TRUE(client_.ImportProfile(Proto<v1::ImportProfileRequest::Header>("model_zoo {}")).ok());
  EXPECT_EQ(script_.attempts.size(), 12);
  EXPECT_EQ(RequestIds().size(), 4) << "every call has its own";
}

TEST_F(RemoteConnectionTest, AnOwnRequestIdIsSentAsItIs) {
  EXPECT_TRUE(
      client_.CreateProfile(Proto<v1::CreateProfileRequest>(R"pb(request_id: "mine")pb")).ok());
  EXPECT_TRUE(client_
                  .UploadProfileBytes(
                      "", Proto<v1::UploadProfileRequest::Header>(R"pb(request_id: "mine")pb"))
                  .ok());
  EXPECT_TRUE(
      client_.ImportProfile(Proto<v1::ImportProfileRequest::Header>(R"pb(request_id: "mine")pb"))
          .ok());
  EXPECT_EQ(RequestIds(), std::set<std::string>{"mine"});
}

TEST_F(RemoteConnectionTest, WithoutARequestIdStoringIsNotRepeated) {
  const auto connection = MakeRemoteConnection(std::make_unique<FakeStub>(script_),
                                               std::make_unique<FakeRetryEnvironment>(world_));
  const CallTerms call{.timeout = seconds(60), .retry = {}};
  FailTwice();
  v1::Profile stored;
  EXPECT_FALSE(CallMethod(*connection, v1::CreateProfileRequest(), stored, call).ok());
  EXPECT_FALSE(connection->UploadProfile({}, "", call).ok());
  FailTwice();
  TextStream nothing("");
  EXPECT_FALSE(connection->ImportProfile({}, {.recording = nothing}, call).ok());
  EXPECT_EQ(script_.attempts.size(), 3);
}

TEST_F(RemoteConnectionTest, DeletingIsNeverRetried) {
  FailTwice();
  EXPECT_EQ(client_.DeleteProfile({}), absl::UnavailableError("one"));
  EXPECT_EQ(script_.attempts.size(), 1);
}

TEST_F(RemoteConnectionTest, OptionsOfACallOverrideThoseOfTheClient) {
  EXPECT_TRUE(client_.GetProfile({}).ok());
  EXPECT_TRUE(client_.GetProfile({}, {.timeout = seconds(3)}).ok());
  EXPECT_EQ(script_.attempts[0].timeout, seconds(60));
  EXPECT_EQ(script_.attempts[1].timeout, seconds(3));
  FailTwice();
  EXPECT_FALSE(client_.GetProfile({}, {.retry = RetryPolicy{.max_attempts = 1}}).ok());
  EXPECT_EQ(script_.attempts.size(), 3);
}

using std::chrono::milliseconds;

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
}  // namespace stepcast::client::remote_connection_test
