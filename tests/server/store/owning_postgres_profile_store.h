// A PostgreSQL profile store together with its database, as one process of a deployment has it.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "gtest/gtest.h"

#include "server/base/clock.h"
#include "server/store/postgres_database.h"
#include "server/store/postgres_profile_store.h"
#include "server/store/profile_store.h"

namespace stepcast::server {

class OwningPostgresProfileStore final : public ProfileStore {
 public:
  // Fails the test, and gives null, if it cannot be opened.
  static std::unique_ptr<OwningPostgresProfileStore> Open(const std::string& conninfo,
                                                          const StoreLimits& limits,
                                                          const Clock& clock) {
    auto database =
        PostgresDatabase::Open({.connection = {.conninfo = conninfo}, .connections = 4});
    EXPECT_TRUE(database.ok()) << database.status();
    if (!database.ok()) return nullptr;
    auto store = PostgresProfileStore::Open(**database, limits, clock);
    EXPECT_TRUE(store.ok()) << store.status();
    if (!store.ok()) return nullptr;
    return std::unique_ptr<OwningPostgresProfileStore>(
        new OwningPostgresProfileStore(*std::move(database), *std::move(store)));
  }

  absl::StatusOr<ProfileSummary> Put(const StoredProfile& profile,
                                     const std::string& request_id) override {
    return store_->Put(profile, request_id);
  }
  absl::StatusOr<ProfileSummary> Replace(const StoredProfile& profile,
                                         const ReplaceTerms& terms) override {
    return store_->Replace(profile, terms);
  }
  absl::StatusOr<StoredProfile> Get(const std::string& id) override { return store_->Get(id); }
  absl::StatusOr<ProfileSummary> GetSummary(const std::string& id) override {
    return store_->GetSummary(id);
  }
  absl::StatusOr<ProfilePage> List(const ListQuery& query) override { return store_->List(query); }
  absl::Status Delete(const std::string& id, const std::string& etag) override {
    return store_->Delete(id, etag);
  }
  void SetLimits(const StoreLimits& limits) override { store_->SetLimits(limits); }
  absl::Status Check() override { return store_->Check(); }
  uint64_t Generation() const override { return store_->Generation(); }

 private:
  OwningPostgresProfileStore(std::unique_ptr<PostgresDatabase> database,
                             std::unique_ptr<PostgresProfileStore> store)
      : database_(std::move(database)), store_(std::move(store)) {}

  const std::unique_ptr<PostgresDatabase> database_;
  const std::unique_ptr<PostgresProfileStore> store_;
};

}  // namespace stepcast::server
