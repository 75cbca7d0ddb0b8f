// The suites of what ProfileStore promises; a test program runs them on the kinds it instantiates
// them with.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"

#include "server/base/clock.h"
#include "server/store/profile_store.h"
#include "tests/server/store/profile_store_kind.h"
#include "tests/server/store/temporary_directory.h"

namespace stepcast::server {

class ProfileStoreTest : public testing::TestWithParam<ProfileStoreKind> {
 protected:
  void SetUp() override {
    if (const std::string missing = GetParam().missing(); !missing.empty()) GTEST_SKIP() << missing;
    Restart({});
  }

  // An empty store with these limits.
  void Restart(const StoreLimits& limits) {
    store_ = nullptr;
    store_ = GetParam().open(absl::StrCat(directory_.path(), "/", ++stores_), limits, clock_);
    ASSERT_NE(store_, nullptr);
  }

  ProfileSummary MustPut(const StoredProfile& profile, const std::string& request_id = "") {
    absl::StatusOr<ProfileSummary> stored = store_->Put(profile, request_id);
    EXPECT_TRUE(stored.ok()) << stored.status();
    return stored.ok() ? *stored : ProfileSummary{};
  }

  std::vector<std::string> Ids(const ListQuery& query, bool* more = nullptr) {
    const absl::StatusOr<ProfilePage> page = store_->List(query);
    EXPECT_TRUE(page.ok()) << page.status();
    std::vector<std::string> ids;
    if (!page.ok()) return ids;
    for (const ProfileSummary& summary : page->profiles) ids.push_back(summary.id);
    if (more != nullptr) *more = page->more;
    return ids;
  }

  TemporaryDirectory directory_;
  FakeClock clock_;
  std::unique_ptr<ProfileStore> store_;
  int stores_ = 0;
};

// Of stores that are there again when they are opened again.
class ProfileStoreEquivalenceTest : public testing::TestWithParam<ProfileStoreKind> {};

}  // namespace stepcast::server
