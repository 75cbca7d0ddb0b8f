// A test that needs the program's PostgreSQL server: skipped, with the reason, where there can be
// none.
#pragma once

#include "gtest/gtest.h"

#include "tests/server/store/postgres_server.h"

namespace stepcast::server {

class PostgresTest : public testing::Test {
 protected:
  void SetUp() override {
    if (const std::string missing = PostgresServer::Missing(); !missing.empty())
      GTEST_SKIP() << missing;
    PostgresServer::Shared().Start();
  }

  static PostgresServer& server() { return PostgresServer::Shared(); }
};

}  // namespace stepcast::server
