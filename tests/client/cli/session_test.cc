#include "client/cli/session.h"

#include <gtest/gtest.h>

#include "absl/strings/cord.h"
#include "google/rpc/error_details.pb.h"

namespace stepcast::client::session_test {
namespace {

void Add(const google::protobuf::Message& detail, absl::Status& status) {
  status.SetPayload("type.googleapis.com/" + detail.GetDescriptor()->full_name(),
                    absl::Cord(detail.SerializeAsString()));
}

TEST(ErrorReportTest, HasCodeReasonAndEachViolationOnALine) {
  absl::Status status = absl::InvalidArgumentError("workers: 0 is too few (and 1 more)");
  google::rpc::ErrorInfo info;
  info.set_reason("REQUEST_INVALID");
  (*info.mutable_metadata())["violations_left_out"] = "7";
  Add(info, status);
  google::rpc::BadRequest bad;
  for (const auto& [field, description] :
       {std::pair("workers", "0 is too few"), std::pair("seed", "no")}) {
    auto* violation = bad.add_field_violations();
    violation->set_field(field);
    violation->set_description(description);
  }
  Add(bad, status);
  EXPECT_EQ(ErrorReport(status),
            "error: INVALID_ARGUMENT: REQUEST_INVALID: workers: 0 is too few (and 1 more)\n"
            "  workers: 0 is too few\n"
            "  seed: no\n"
            "  and 7 more\n");
}

TEST(ErrorReportTest, HasLimitResourceAndDelay) {
  absl::Status status = absl::ResourceExhaustedError("full");
  google::rpc::QuotaFailure quota;
  quota.add_violations()->set_subject("queue_max");
  quota.mutable_violations(0)->set_description("64 jobs wait");
  Add(quota, status);
  google::rpc::ResourceInfo resource;
  resource.set_resource_type("profile");
  resource.set_resource_name("profiles/a");
  Add(resource, status);
  google::rpc::RetryInfo retry;
  retry.mutable_retry_delay()->set_nanos(500'000'000);
  Add(retry, status);
  EXPECT_EQ(ErrorReport(status),
            "error: RESOURCE_EXHAUSTED: full\n"
            "  limit queue_max: 64 jobs wait\n"
            "  profile: profiles/a\n"
            "  try again in: 500.0 ms\n");
}

TEST(ErrorReportTest, NothingInItDrivesATerminal) {
  EXPECT_EQ(ErrorReport(absl::InternalError("a\x1b[31mb\nc")), "error: INTERNAL: a\\x1b[31mb c\n");
}

}  // namespace
}  // namespace stepcast::client::session_test
