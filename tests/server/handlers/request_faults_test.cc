#include "server/handlers/request_faults.h"

#include <gtest/gtest.h>

namespace stepcast::server::request_faults_test {
namespace {

TEST(RequestFaultsTest, WithoutFaultsTheStatusStaysAsItIs) {
  EXPECT_TRUE(WithFaults({}, absl::OkStatus()).ok());
  const absl::Status status = FaultsError("SOME_REASON", {{.field = "a", .description = "b"}});
  EXPECT_EQ(WithFaults({}, status), status);
}

TEST(RequestFaultsTest, FaultsGoBeforeTheStatussOwn) {
  const absl::Status status =
      WithFaults({{.field = "x", .description = "bad"}},
                 FaultsError("SOME_REASON", {{.field = "a", .description = "b"}}));
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(status.message(), "x: bad (and 1 more)");
  EXPECT_EQ(DetailsOf(status).reason, "SOME_REASON");
  EXPECT_EQ(DetailsOf(status).faults, (std::vector<Fault>{{"x", "bad"}, {"a", "b"}}));
}

TEST(RequestFaultsTest, AFieldIsReportedOnce) {
  const absl::Status status = WithFaults(
      {{.field = "a", .description = "unknown number 7"}},
      FaultsError("SOME_REASON",
                  {{.field = "a", .description = "missing"}, {.field = "b", .description = "c"}}));
  EXPECT_EQ(DetailsOf(status).faults, (std::vector<Fault>{{"a", "unknown number 7"}, {"b", "c"}}));
}

TEST(RequestFaultsTest, AnythingElseGivesWay) {
  for (const absl::Status& other :
       {absl::OkStatus(), absl::NotFoundError("gone"), absl::UnimplementedError("not yet")}) {
    const absl::Status status = WithFaults({{.field = "a", .description = "b"}}, other);
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    EXPECT_EQ(DetailsOf(status).reason, "REQUEST_INVALID");
  }
}

TEST(RequestFaultsTest, WhatWasLeftOutStaysCounted) {
  std::vector<Fault> many(50, Fault{.field = "f", .description = "d"});
  for (size_t i = 0; i < many.size(); ++i) many[i].field += std::to_string(i);
  const ErrorDetails details =
      DetailsOf(WithFaults({{.field = "x", .description = "y"}}, FaultsError("SOME_REASON", many)));
  EXPECT_EQ(details.faults.size() + details.faults_left_out, 51U);
}

TEST(RequestFaultsTest, PathsGetLonger) {
  EXPECT_EQ(FaultsUnder("profile", {{.field = "steps[0]", .description = "d"}}).at(0).field,
            "profile.steps[0]");
}

}  // namespace
}  // namespace stepcast::server::request_faults_test
