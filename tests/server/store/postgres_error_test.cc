#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "core/base/error.h"
#include "server/store/postgres_connection.h"

namespace stepcast::server::postgres_error_test {
namespace {

TEST(PostgresErrorTest, EachStateMeansWhatTheCallerCanDo) {
  const struct {
    const char* state;
    absl::StatusCode code;
    const char* reason;
    bool retry;
  } cases[] = {
      {"", absl::StatusCode::kUnavailable, "STORE_UNAVAILABLE", true},  // the connection is lost
      {"08006", absl::StatusCode::kUnavailable, "STORE_UNAVAILABLE",
       true},  // the same, as the server says it
      {"57P01", absl::StatusCode::kUnavailable, "STORE_UNAVAILABLE", true},  // shut down
      {"57014", absl::StatusCode::kUnavailable, "STORE_UNAVAILABLE", true},  // statement timeout
      {"53300", absl::StatusCode::kUnavailable, "STORE_UNAVAILABLE", true},  // too many connections
      {"53200", absl::StatusCode::kUnavailable, "STORE_UNAVAILABLE", true},  // out of memory
      {"53100", absl::StatusCode::kResourceExhausted, "DISK_FULL", false},
      {"25006", absl::StatusCode::kUnavailable, "STORE_UNAVAILABLE", true},  // read-only
      {"40001", absl::StatusCode::kUnavailable, "STORE_UNAVAILABLE",
       true},  // serialization failure
      {"28P01", absl::StatusCode::kUnavailable, "STORE_UNAVAILABLE", true},  // wrong password
      {"XX001", absl::StatusCode::kDataLoss, "STORE_CORRUPT", false},
      {"XX002", absl::StatusCode::kDataLoss, "STORE_CORRUPT", false},
      {"54000", absl::StatusCode::kResourceExhausted, "STORE_FULL", false},
      {"42601", absl::StatusCode::kInternal, "STORE_INTERNAL", false},  // a syntax error of ours
      {"XX000", absl::StatusCode::kInternal, "STORE_INTERNAL", false},
  };
  for (const auto& expected : cases) {
    const absl::Status status = PostgresError(expected.state, "write", "what it said");
    EXPECT_EQ(status.code(), expected.code) << expected.state;
    EXPECT_EQ(DetailsOf(status).reason, expected.reason) << expected.state;
    EXPECT_EQ(DetailsOf(status).retry_delay_ms > 0, expected.retry) << expected.state;
    EXPECT_EQ(DetailsOf(status).metadata.count("sqlstate"), *expected.state == '\0' ? 0 : 1);
    EXPECT_THAT(std::string(status.message()), testing::HasSubstr("cannot write: what it said"));
  }
}

TEST(PostgresErrorTest, TheMessageIsOneLine) {
  const absl::Status status = PostgresError("", "connect", "refused\n\tIs the server running?\n");
  EXPECT_EQ(status.message(), "cannot connect: refused Is the server running?");
}

TEST(PostgresErrorTest, OnlyWhatAnotherTransactionCausedMayRunAgain) {
  EXPECT_TRUE(MayRunAgain(PostgresError("40001", "write", "")));
  EXPECT_TRUE(MayRunAgain(PostgresError("40P01", "write", "")));
  for (const char* state : {"", "40003", "57014", "08006"})
    EXPECT_FALSE(MayRunAgain(PostgresError(state, "write", ""))) << state;
  EXPECT_FALSE(MayRunAgain(absl::OkStatus()));
}

}  // namespace
}  // namespace stepcast::server::postgres_error_test
