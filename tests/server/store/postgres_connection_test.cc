#include "server/store/postgres_connection.h"

#include <signal.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "core/base/error.h"
#include "tests/server/store/postgres_test.h"
#include "tests/server/store/sample_profile.h"
#include "tests/support/eventually.h"

namespace stepcast::server::postgres_connection_test {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

class PostgresConnectionTest : public PostgresTest {};

void ExpectUnavailable(const absl::Status& status, const std::string& text) {
  EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable) << status;
  EXPECT_EQ(DetailsOf(status).reason, "STORE_UNAVAILABLE");
  EXPECT_GT(DetailsOf(status).retry_delay_ms, 0);
  EXPECT_THAT(std::string(status.message()), HasSubstr(text));
}

TEST_F(PostgresConnectionTest, AnyBytesAndNumbersComeBack) {
  const auto connection = MustConnect(server().NewDatabase());
  const std::string bytes = SampleContent(1, 3'000'000);
  const std::string zero("a\0b", 3);
  PostgresParameters parameters;
  parameters.Integer(-5)
      .Integer(INT64_MAX)
      .Bytes(bytes)
      .Bytes("")
      .NullBytes()
      .BytesArray({zero, "", bytes})
      .BytesArray({})
      .Text("text");
  const auto got =
      connection->Run("SELECT $1, $2, $3, $4, $5, $6, $7, $8::text, 7::integer, true", parameters);
  ASSERT_TRUE(got.ok()) << got.status();
  ASSERT_EQ(got->rows(), 1);
  EXPECT_EQ(got->Integer(0, 0), -5);
  EXPECT_EQ(got->Integer(0, 1), INT64_MAX);
  EXPECT_TRUE(got->Bytes(0, 2) == bytes);
  EXPECT_EQ(got->Bytes(0, 3), "");
  EXPECT_FALSE(got->IsNull(0, 3));
  EXPECT_TRUE(got->IsNull(0, 4));
  EXPECT_THAT(got->BytesArray(0, 5), ElementsAre(zero, "", bytes));
  EXPECT_THAT(got->BytesArray(0, 6), ElementsAre());
  EXPECT_EQ(got->Bytes(0, 7), "text");
  EXPECT_EQ(got->Integer(0, 8), 7);
  EXPECT_EQ(got->Integer(0, 9), 1);
}

TEST_F(PostgresConnectionTest, AFailedStatementLeavesTheConnectionOfUse) {
  const auto connection = MustConnect(server().NewDatabase());
  const absl::Status failed = connection->Run("SELECT nothing").status();
  EXPECT_EQ(DetailsOf(failed).reason, "STORE_INTERNAL") << failed;
  EXPECT_EQ(DetailsOf(failed).metadata.at("sqlstate"), "42703");
  EXPECT_FALSE(connection->IsBroken());
  EXPECT_TRUE(connection->Run("SELECT 1").ok());
}

TEST_F(PostgresConnectionTest, AScriptStopsAtItsFirstErrorAndLeavesNothing) {
  const auto connection = MustConnect(server().NewDatabase());
  const absl::Status failed =
      connection->Script("CREATE TABLE t (a int); SELECT nothing; CREATE TABLE u (a int)");
  EXPECT_EQ(DetailsOf(failed).metadata.at("sqlstate"), "42703");
  EXPECT_FALSE(connection->Run("SELECT * FROM t").ok());
}

TEST_F(PostgresConnectionTest, AStatementThatTakesTooLongIsEndedByTheServer) {
  const auto connection = MustConnect(server().NewDatabase(), 50);
  ExpectUnavailable(connection->Run("SELECT pg_sleep(600)").status(), "statement timeout");
  // A busy machine may take as long for this one, too.
  EXPECT_TRUE(Eventually([&] { return connection->Run("SELECT 1").ok(); }));
}

TEST_F(PostgresConnectionTest, AServerThatHangsIsGivenUp) {
  const std::string conninfo = server().NewDatabase();
  const auto connection = MustConnect(conninfo, 50);
  auto pid = connection->Run("SELECT pg_backend_pid()");
  ASSERT_TRUE(Eventually([&] {
    if (!pid.ok()) pid = connection->Run("SELECT pg_backend_pid()");
    return pid.ok();
  }));
  const auto backend = static_cast<pid_t>(pid->Integer(0, 0));
  ASSERT_EQ(kill(backend, SIGSTOP), 0);
  ExpectUnavailable(connection->Run("SELECT 1").status(), "did not answer within");
  EXPECT_TRUE(connection->IsBroken());
  ExpectUnavailable(connection->Run("SELECT 1").status(), "is lost");
  ASSERT_EQ(kill(backend, SIGCONT), 0);
}

TEST_F(PostgresConnectionTest, AShorterTimeoutOfTheRoleStays) {
  const std::string conninfo = server().NewDatabase();
  const auto ask = [](PostgresConnection& connection) {
    return std::string(connection.Run("SHOW statement_timeout")->Bytes(0, 0));
  };
  EXPECT_EQ(ask(*MustConnect(conninfo, 7000)), "7s");
  EXPECT_EQ(ask(*MustConnect(absl::StrCat(conninfo, " options='-c statement_timeout=3s'"), 7000)),
            "3s");
  EXPECT_EQ(ask(*MustConnect(absl::StrCat(conninfo, " options='-c statement_timeout=9s'"), 7000)),
            "7s");
}

TEST_F(PostgresConnectionTest, CommitsAreDurableWhateverTheDatabaseIsToldTo) {
  const std::string conninfo = server().NewDatabase();
  const auto ask = [](PostgresConnection& connection) {
    return std::string(connection.Run("SHOW synchronous_commit")->Bytes(0, 0));
  };
  EXPECT_EQ(ask(*MustConnect(absl::StrCat(conninfo, " options='-c synchronous_commit=off'"))),
            "on");
  EXPECT_EQ(
      ask(*MustConnect(absl::StrCat(conninfo, " options='-c synchronous_commit=remote_apply'"))),
      "remote_apply");
}

TEST_F(PostgresConnectionTest, AServerThatStopsIsNoticedWhileTheConnectionIsIdle) {
  const auto connection = MustConnect(server().NewDatabase());
  EXPECT_FALSE(connection->IsBroken());
  server().Stop();
  EXPECT_TRUE(connection->IsBroken());
}

TEST_F(PostgresConnectionTest, AServerThatIsAwayIsNamedWithoutThePassword) {
  server().Stop();
  const absl::Status refused =
      PostgresConnection::Open(
          {.conninfo = absl::StrCat(server().Conninfo("any"), " password=hidden")})
          .status();
  ExpectUnavailable(refused, "cannot connect to the database at ");
  EXPECT_THAT(refused.ToString(), AllOf(HasSubstr("port 5432"), Not(HasSubstr("hidden"))));
}

TEST_F(PostgresConnectionTest, WhatTheStringLeavesOutComesFromTheEnvironment) {
  const std::string conninfo = server().NewDatabase();
  const std::string host = conninfo.substr(5, conninfo.find(' ') - 5);
  ASSERT_EQ(setenv("PGHOST", host.c_str(), 1), 0);
  const auto connection = MustConnect("user=stepcast dbname=template1");
  EXPECT_EQ(connection->Run("SELECT current_user::text")->Bytes(0, 0), "stepcast");
  ASSERT_EQ(unsetenv("PGHOST"), 0);
}

TEST_F(PostgresConnectionTest, ANotificationOfAnotherIsTakenOnceAndAWakeEndsTheWait) {
  const std::string conninfo = server().NewDatabase();
  const auto listener = MustConnect(conninfo);
  const auto speaker = MustConnect(conninfo);
  const int wake = eventfd(0, EFD_CLOEXEC);
  ASSERT_TRUE(listener->Script("LISTEN something").ok());
  ASSERT_TRUE(speaker->Script("NOTIFY something").ok());
  EXPECT_TRUE(*listener->AwaitNotification(std::chrono::minutes(1), wake));
  EXPECT_FALSE(*listener->AwaitNotification(std::chrono::milliseconds(1), wake));
  ASSERT_EQ(eventfd_write(wake, 1), 0);
  EXPECT_FALSE(*listener->AwaitNotification(std::chrono::minutes(1), wake));
  close(wake);
}

TEST(PostgresConninfoTest, WhatLibpqCannotReadIsRefusedWithoutQuotingIt) {
  for (const char* bad :
       {"password=hid den", "postgresql://user:hidden@host:notaport:1/x%zz", "nokeyword=hidden"}) {
    const absl::Status refused = CheckConninfo(bad);
    EXPECT_EQ(refused.code(), absl::StatusCode::kInvalidArgument) << bad;
    EXPECT_EQ(DetailsOf(refused).reason, "CONNECTION_STRING_INVALID");
    EXPECT_THAT(refused.ToString(), Not(HasSubstr("hid")));
    EXPECT_EQ(PostgresConnection::Open({.conninfo = bad}).status(), refused);
  }
  for (const char* good : {"", "host=a,b dbname=c", "postgresql://user@host/x?sslmode=require"})
    EXPECT_TRUE(CheckConninfo(good).ok()) << good;
}

}  // namespace
}  // namespace stepcast::server::postgres_connection_test
