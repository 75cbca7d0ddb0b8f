// The profile stores that need no server, asked what every one is asked.
#include <memory>
#include <string>
#include <utility>

#include "gtest/gtest.h"

#include "server/store/memory_stores.h"
#include "server/store/sqlite_profile_store.h"
#include "tests/server/store/profile_store_contract.h"

namespace stepcast::server::embedded_profile_stores_test {
namespace {

std::unique_ptr<ProfileStore> OpenMemory(const std::string& /*place*/, const StoreLimits& limits,
                                         const Clock& clock) {
  return std::make_unique<MemoryProfileStore>(limits, clock);
}

std::unique_ptr<ProfileStore> OpenSqlite(const std::string& place, const StoreLimits& limits,
                                         const Clock& clock) {
  auto store = SqliteProfileStore::Open({.directory = place, .limits = limits}, clock);
  EXPECT_TRUE(store.ok()) << store.status();
  return store.ok() ? *std::move(store) : nullptr;
}

const ProfileStoreKind kMemory = {.name = "Memory", .open = OpenMemory};
const ProfileStoreKind kSqlite = {.name = "Sqlite", .open = OpenSqlite};

INSTANTIATE_TEST_SUITE_P(Stores, ProfileStoreTest,
                         testing::Values(kMemory, kSqlite, Cached(kMemory), Cached(kSqlite)),
                         KindName);
INSTANTIATE_TEST_SUITE_P(Stores, ProfileStoreEquivalenceTest,
                         testing::Values(kSqlite, Cached(kSqlite)), KindName);

}  // namespace
}  // namespace stepcast::server::embedded_profile_stores_test
