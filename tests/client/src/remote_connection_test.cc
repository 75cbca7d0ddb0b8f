#include "client/src/remote_connection.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <set>
#include <string>

#include "stepcast/client.h"
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

}  // namespace
}  // namespace stepcast::client::remote_connection_test
