// The store of operations in PostgreSQL, on a clock of the test's.
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"

#include "server/store/postgres_database.h"
#include "server/store/postgres_operation_store.h"
#include "tests/server/store/operation_stores.h"
#include "tests/server/store/postgres_server.h"

namespace stepcast::server {

namespace {

class PostgresOperationStores final : public OperationStores {
 public:
  static std::unique_ptr<OperationStores> Make(const OperationLimits& limits, const Clock& clock) {
    static int stores = 0;
    PostgresServer::Shared().Start();
    const std::string conninfo =
        PostgresServer::Shared().Schema(absl::StrCat("operations", ++stores));
    absl::StatusOr<std::unique_ptr<PostgresDatabase>> database =
        PostgresDatabase::Open({.connection = {.conninfo = conninfo}, .connections = 2});
    EXPECT_TRUE(database.ok()) << database.status();
    if (!database.ok()) return nullptr;
    return std::make_unique<PostgresOperationStores>(*std::move(database), limits, clock);
  }

  PostgresOperationStores(std::unique_ptr<PostgresDatabase> database, const OperationLimits& limits,
                          const Clock& clock)
      : database_(std::move(database)), clock_(clock), store_(*database_, limits) {
    Do("CREATE TABLE fake_time (now_ns bigint NOT NULL); INSERT INTO fake_time VALUES (0); CREATE "
       "OR REPLACE FUNCTION stepcast_now_ns() RETURNS "
       "bigint "
       "LANGUAGE sql VOLATILE AS 'SELECT now_ns FROM fake_time'");
  }

  OperationStore& operations() override {
    Do(absl::StrCat("UPDATE fake_time SET now_ns = ", clock_.WallNs()));
    return store_;
  }

 private:
  void Do(const std::string& script) {
    absl::StatusOr<PostgresConnectionPool::Lease> connection = database_->connections().Take();
    ASSERT_TRUE(connection.ok()) << connection.status();
    const absl::Status done = (*connection)->Script(script);
    ASSERT_TRUE(done.ok()) << done;
  }

  const std::unique_ptr<PostgresDatabase> database_;
  const Clock& clock_;
  PostgresOperationStore store_;
};

}  // namespace

std::vector<OperationStoreKind> OperationStoreKinds() {
  return {{.name = "Postgres",
           .seeds = 3,
           .has_steady_leases = false,
           .make = PostgresOperationStores::Make,
           .missing = PostgresServer::Missing}};
}

}  // namespace stepcast::server
