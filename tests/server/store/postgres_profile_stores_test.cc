// The profile store in PostgreSQL, asked what every one is asked.
#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"

#include "tests/server/store/owning_postgres_profile_store.h"
#include "tests/server/store/postgres_server.h"
#include "tests/server/store/profile_store_contract.h"

namespace stepcast::server::postgres_profile_stores_test {
namespace {

// In a schema of its own for every place.
std::unique_ptr<ProfileStore> OpenPostgres(const std::string& place, const StoreLimits& limits,
                                           const Clock& clock) {
  const std::string name = absl::StrCat("place", std::hash<std::string>{}(place));
  return OwningPostgresProfileStore::Open(PostgresServer::Shared().Schema(name), limits, clock);
}

const ProfileStoreKind kPostgres = {
    .name = "Postgres", .open = OpenPostgres, .missing = PostgresServer::Missing};

INSTANTIATE_TEST_SUITE_P(Stores, ProfileStoreTest, testing::Values(kPostgres, Cached(kPostgres)),
                         KindName);
INSTANTIATE_TEST_SUITE_P(Stores, ProfileStoreEquivalenceTest, testing::Values(kPostgres), KindName);

}  // namespace
}  // namespace stepcast::server::postgres_profile_stores_test
