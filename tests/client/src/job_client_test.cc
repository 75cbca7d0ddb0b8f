#include "stepcast/job_client.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "client/src/remote_connection.h"
#include "google/rpc/error_details.pb.h"

#include "stepcast/client.h"
#include "stepcast/error_details.h"
#include "tests/client/support/fake_retry_environment.h"
#include "tests/client/support/fake_stub.h"
#include "tests/client/support/text_proto.h"

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
  EXPECT_TRUE(jobs_.Start(Proto<v1::StartJobRequest>(R"pb(request_id: "mine")pb")).ok());
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
  const absl::StatusOr<google::longrunning::ListOperationsResponse> all = jobs_.ListAll();
  ASSERT_TRUE(all.ok()) << all.status();
  ASSERT_EQ(all->operations_size(), 3);
  EXPECT_EQ(all->operations(0).name(), "operations/after-");
  EXPECT_EQ(all->operations(2).name(), "operations/after-p3");
}

TEST_F(JobClientTest, MorePagesThanAllowedAndRepeatedTokensAreErrors) {
  script_.page_tokens = {"p2", "p3", "p4", ""};
  EXPECT_EQ(GetErrorDetails(jobs_.ListAll({}, 2).status()).reason, "TOO_MANY_JOBS");
  script_.page_tokens = {"again", "again", "again"};
  EXPECT_EQ(GetErrorDetails(jobs_.ListAll().status()).reason, "PAGE_TOKEN_REPEATED");
}

TEST(JobStatusTest, IsThatOfTheCallWithItsDetails) {
  google::longrunning::Operation job;
  EXPECT_TRUE(GetJobStatus(job).ok());
  google::rpc::ErrorInfo info;
  info.set_reason("PROFILE_INVALID");
  job.mutable_error()->set_code(3);
  job.mutable_error()->set_message("wrong");
  job.mutable_error()->add_details()->PackFrom(info);
  EXPECT_TRUE(absl::IsInvalidArgument(GetJobStatus(job)));
  EXPECT_EQ(GetErrorDetails(GetJobStatus(job)).reason, "PROFILE_INVALID");
}

TEST(JobMetadataTest, IsEmptyWhereItCannotBeRead) {
  google::longrunning::Operation job;
  EXPECT_THAT(GetJobMetadata(job), EqualsProto(v1::JobMetadata()));
  const auto metadata = Proto<v1::JobMetadata>(R"pb(method: "OptimizeOrder" state: QUEUED)pb");
  job.mutable_metadata()->PackFrom(metadata);
  EXPECT_THAT(GetJobMetadata(job), EqualsProto(metadata));
  job.mutable_metadata()->set_value("no message");
  EXPECT_THAT(GetJobMetadata(job), EqualsProto(v1::JobMetadata()));
}

}  // namespace
}  // namespace stepcast::client::job_client_test
