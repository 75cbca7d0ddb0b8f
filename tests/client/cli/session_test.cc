#include "client/cli/session.h"

#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "absl/strings/cord.h"
#include "google/rpc/error_details.pb.h"

namespace stepcast::client::session_test {
namespace {

void Add(const google::protobuf::Message& detail, absl::Status& status) {
  status.SetPayload("type.googleapis.com/" + detail.GetDescriptor()->full_name(),
                    absl::Cord(detail.SerializeAsString()));
}

using Violations = std::vector<std::pair<std::string, std::string>>;

absl::Status Invalid(const std::string& message, const Violations& violations,
                     const std::string& left_out = "") {
  absl::Status status = absl::InvalidArgumentError(message);
  google::rpc::ErrorInfo info;
  info.set_reason("REQUEST_INVALID");
  if (!left_out.empty()) (*info.mutable_metadata())["violations_left_out"] = left_out;
  Add(info, status);
  google::rpc::BadRequest bad;
  for (const auto& [field, description] : violations) {
    auto* violation = bad.add_field_violations();
    violation->set_field(field);
    violation->set_description(description);
  }
  Add(bad, status);
  return status;
}

TEST(ErrorReportTest, HasCodeReasonAndEachViolationOnALine) {
  EXPECT_EQ(ErrorReport(Invalid("workers: 0 is too few (and 1 more)",
                                {{"workers", "0 is too few"}, {"seed", "no"}}, "7")),
            "error: INVALID_ARGUMENT: REQUEST_INVALID: 2 faults and more:\n"
            "  workers: 0 is too few\n"
            "  seed: no\n"
            "  and 7 more\n");
  EXPECT_EQ(ErrorReport(Invalid("workers: 0 is too few (and 1 more)",
                                {{"workers", "0 is too few"}, {"seed", "no"}})),
            "error: INVALID_ARGUMENT: REQUEST_INVALID: 2 faults:\n"
            "  workers: 0 is too few\n"
            "  seed: no\n");
}

TEST(ErrorReportTest, OneFaultIsSaidOnce) {
  EXPECT_EQ(ErrorReport(Invalid("workers: 0 is too few", {{"workers", "0 is too few"}})),
            "error: INVALID_ARGUMENT: REQUEST_INVALID: workers: 0 is too few\n");
  EXPECT_EQ(ErrorReport(Invalid("0 is too few", {{"", "0 is too few"}})),
            "error: INVALID_ARGUMENT: REQUEST_INVALID: 0 is too few\n");
  const std::string longest(5000, 'x');
  EXPECT_EQ(ErrorReport(Invalid(longest.substr(0, 4096), {{"", longest.substr(0, 2048)}})),
            "error: INVALID_ARGUMENT: REQUEST_INVALID: " + longest.substr(0, 2048) + "\n");
  // A server cuts its message at 512 bytes, and not the violation.
  EXPECT_EQ(ErrorReport(Invalid(longest.substr(0, 512), {{"", longest.substr(0, 1200)}})),
            "error: INVALID_ARGUMENT: REQUEST_INVALID: " + longest.substr(0, 1200) + "\n");
}

TEST(ErrorReportTest, AMessageThatSaysMoreThanItsFaultStays) {
  EXPECT_EQ(ErrorReport(Invalid("the clocks cannot be reconciled", {{"messages[0]", "late"}})),
            "error: INVALID_ARGUMENT: REQUEST_INVALID: the clocks cannot be reconciled\n"
            "  messages[0]: late\n");
}

TEST(ErrorReportTest, FieldsThatFlagsSetAreNamedByThese) {
  const absl::Status status =
      Invalid("scenario.all_reduce.latency_seconds: 20 is not from 0 to 10",
              {{"scenario.all_reduce.latency_seconds", "20 is not from 0 to 10"}});
  EXPECT_EQ(ErrorReport(status, {"--latency"}),
            "error: INVALID_ARGUMENT: REQUEST_INVALID: --latency: 20 is not from 0 to 10\n");
  EXPECT_EQ(ErrorReport(status, {"--bandwidth"}),
            "error: INVALID_ARGUMENT: REQUEST_INVALID: scenario.all_reduce.latency_seconds: 20 is "
            "not from 0 to 10\n");
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
