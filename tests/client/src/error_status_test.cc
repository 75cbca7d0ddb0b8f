#include "client/src/error_status.h"

#include <gmock/gmock.h>
#include <google/protobuf/any.pb.h>
#include <gtest/gtest.h>

#include "absl/strings/cord.h"
#include "google/rpc/error_details.pb.h"
#include "google/rpc/status.pb.h"

#include "stepcast/error_details.h"

namespace stepcast::client::error_status_test {
namespace {

// As a server sends it: everything in one google.rpc.Status.
absl::Status ServersStatus() {
  google::rpc::ErrorInfo info;
  info.set_reason("PROFILE_INVALID");
  info.set_domain("stepcast");
  (*info.mutable_metadata())["faults"] = "2";
  google::rpc::BadRequest bad;
  auto* violation = bad.add_field_violations();
  violation->set_field("profile.batch_size");
  violation->set_description("must be at least 1, is 0");
  google::rpc::QuotaFailure quota;
  quota.add_violations()->set_subject("queue_max");
  quota.mutable_violations(0)->set_description("64");
  google::rpc::ResourceInfo resource;
  resource.set_resource_type("profile");
  resource.set_resource_name("profiles/a");
  resource.set_description("taken");
  google::rpc::RetryInfo retry;
  retry.mutable_retry_delay()->set_nanos(500'000'000);
  google::rpc::Status status;
  status.set_code(3);
  for (const google::protobuf::Message* detail :
       std::initializer_list<const google::protobuf::Message*>{&info, &bad, &quota, &resource,
                                                               &retry}) {
    status.add_details()->PackFrom(*detail);
  }
  return StatusFromWire(absl::StatusCode::kInvalidArgument,
                        "profile.batch_size: must be at least 1, is 0", status.SerializeAsString());
}

TEST(ErrorDetailsTest, EverythingTheServerSaysCanBeRead) {
  const absl::Status status = ServersStatus();
  EXPECT_TRUE(absl::IsInvalidArgument(status));
  EXPECT_EQ(status.message(), "profile.batch_size: must be at least 1, is 0");
  const ErrorDetails expected{
      .reason = "PROFILE_INVALID",
      .domain = "stepcast",
      .metadata = {{"faults", "2"}},
      .violations = {{.field = "profile.batch_size", .description = "must be at least 1, is 0"}},
      .quota_violations = {{.subject = "queue_max", .description = "64"}},
      .resource = ErrorResource{.type = "profile", .name = "profiles/a", .description = "taken"},
      .retry_delay = std::chrono::milliseconds(500)};
  EXPECT_EQ(GetErrorDetails(status), expected);
}

TEST(ErrorDetailsTest, AnErrorInAReplyHasTheSameDetails) {
  google::rpc::ErrorInfo info;
  info.set_reason("PROFILE_NOT_FOUND");
  google::rpc::Status error;
  error.set_code(5);
  error.set_message("there is none");
  error.add_details()->PackFrom(info);
  const absl::Status status = ToStatus(error);
  EXPECT_TRUE(absl::IsNotFound(status));
  EXPECT_EQ(status.message(), "there is none");
  EXPECT_EQ(GetErrorDetails(status).reason, "PROFILE_NOT_FOUND");
}

TEST(ErrorDetailsTest, ADelayBeyondNanosecondsIsTheLongest) {
  google::rpc::RetryInfo retry;
  retry.mutable_retry_delay()->set_seconds(int64_t{300'000'000'000});
  absl::Status status = absl::UnavailableError("later");
  status.SetPayload("type.googleapis.com/google.rpc.RetryInfo",
                    absl::Cord(retry.SerializeAsString()));
  EXPECT_EQ(GetErrorDetails(status).retry_delay, std::chrono::nanoseconds::max());
}

TEST(ErrorDetailsTest, AStatusWithoutDetailsHasNone) {
  EXPECT_EQ(GetErrorDetails(absl::NotFoundError("x")), ErrorDetails{});
  EXPECT_EQ(GetErrorDetails(absl::OkStatus()), ErrorDetails{});
  EXPECT_EQ(GetErrorDetails(StatusFromWire(absl::StatusCode::kInternal, "x", "no message")),
            ErrorDetails{});
}

TEST(ErrorDetailsTest, ADetailThatCannotBeReadIsLeftOut) {
  absl::Status status = MakeLocalError(absl::StatusCode::kInternal, "WHY", "x");
  status.SetPayload("type.googleapis.com/google.rpc.BadRequest", absl::Cord("\xff\xff\xff"));
  EXPECT_EQ(GetErrorDetails(status).reason, "WHY");
  EXPECT_TRUE(GetErrorDetails(status).violations.empty());
}

TEST(ErrorDetailsTest, ErrorsOfTheClientItselfLookLikeThoseOfTheService) {
  const absl::Status status = MakeLocalError(absl::StatusCode::kNotFound, "FILE_UNREADABLE",
                                             "cannot read x", {{"path", "x"}});
  const ErrorDetails expected{
      .reason = "FILE_UNREADABLE", .domain = "stepcast", .metadata = {{"path", "x"}}};
  EXPECT_EQ(GetErrorDetails(status), expected);
}

}  // namespace
}  // namespace stepcast::client::error_status_test
