#include "stepcast/job_client.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "client/src/remote_connection.h"

#include "stepcast/client.h"
#include "stepcast/error_details.h"
#include "tests/client/support/fake_retry_environment.h"
#include "tests/client/support/fake_stub.h"

namespace stepcast::client::job_client_test {
namespace {

class JobClientTest : public testing::Test {
 protected:
  void FailTwice() {
    script_.statuses = {absl::UnavailableError("one"), absl::UnavailableError("two")};
  }

  FakeStub::Script script_;
  FakeRetryEnvironment::World world_;
  JobClient jobs_ = Client(MakeRemoteConnection(std::make_unique<FakeStub>(script_),
                                                std::make_unique<FakeRetryEnvironment>(world_)),
                           {})
                        .Jobs();
};

TEST_F(JobClientTest, AStartIsRepeatedUnderOneRequestIdAndEachHasItsOwn) {
  FailTwice();
  EXPECT_TRUE(jobs_.Start({}).ok());
  ASSERT_EQ(script_.attempts.size(), 3);
  const std::string first = script_.attempts[0].request_id;
  EXPECT_EQ(first.size(), 36) << "a UUID";
  EXPECT_EQ(script_.attempts[1].request_id, first);
  EXPECT_EQ(script_.attempts[2].request_id, first);
  EXPECT_TRUE(jobs_.Start({}).ok());
  EXPECT_NE(script_.attempts[3].request_id, first);
  EXPECT_TRUE(jobs_.Start({.request_id = "mine"}).ok());
  EXPECT_EQ(script_.attempts[4].request_id, "mine");
}

TEST_F(JobClientTest, AllButADeletionAreRetried) {
  FailTwice();
  EXPECT_TRUE(jobs_.Get("operations/o-1").ok());
  FailTwice();
  EXPECT_TRUE(jobs_.Wait("operations/o-1").ok());
  FailTwice();
  EXPECT_TRUE(jobs_.Cancel("operations/o-1").ok());
  FailTwice();
  EXPECT_TRUE(jobs_.List().ok());
  EXPECT_EQ(script_.attempts.size(), 12);
  FailTwice();
  EXPECT_EQ(jobs_.Delete("operations/o-1"), absl::UnavailableError("one"));
  EXPECT_EQ(script_.attempts.size(), 13);
}

TEST_F(JobClientTest, AllPagesAreRead) {
  script_.page_tokens = {"p2", "p3", ""};
  const absl::StatusOr<std::vector<Job>> all = jobs_.ListAll();
  ASSERT_TRUE(all.ok()) << all.status();
  ASSERT_EQ(all->size(), 3);
  EXPECT_EQ((*all)[0].name, "operations/after-");
  EXPECT_EQ((*all)[2].name, "operations/after-p3");
}

TEST_F(JobClientTest, MorePagesThanAllowedAndRepeatedTokensAreErrors) {
  script_.page_tokens = {"p2", "p3", "p4", ""};
  EXPECT_EQ(GetErrorDetails(jobs_.ListAll({}, 2).status()).reason, "TOO_MANY_JOBS");
  script_.page_tokens = {"again", "again", "again"};
  EXPECT_EQ(GetErrorDetails(jobs_.ListAll().status()).reason, "PAGE_TOKEN_REPEATED");
}

}  // namespace
}  // namespace stepcast::client::job_client_test
