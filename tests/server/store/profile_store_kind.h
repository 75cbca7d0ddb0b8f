// The kinds of profile stores, for tests that ask all of them the same.
#pragma once

#include <functional>
#include <memory>
#include <ostream>
#include <string>
#include <utility>

#include "gtest/gtest.h"

#include "server/base/clock.h"
#include "server/store/profile_store.h"
#include "server/store/profile_store_layers.h"

namespace stepcast::server {

// A way to open a store. `place` is a path of its own for each store; one that is durable opens it
// again. Borrows the clock.
struct ProfileStoreKind {
  using Open = std::function<std::unique_ptr<ProfileStore>(
      const std::string& place, const StoreLimits& limits, const Clock& clock)>;

  std::string name;
  Open open;
  std::function<std::string()> missing = [] {
    return std::string();
  };  // why it cannot be tested here

  friend std::ostream& operator<<(std::ostream& out, const ProfileStoreKind& kind) {
    return out << kind.name;
  }
};

// The name of a kind, for INSTANTIATE_TEST_SUITE_P.
inline std::string KindName(const testing::TestParamInfo<ProfileStoreKind>& kind) {
  return kind.param.name;
}

// A cache together with the store behind it.
class OwningCachedProfileStore final : public ProfileStore {
 public:
  explicit OwningCachedProfileStore(std::unique_ptr<ProfileStore> store)
      : store_(std::move(store)), cached_(*store_, size_t{1} << 20) {}

  absl::StatusOr<ProfileSummary> Put(const StoredProfile& profile,
                                     const std::string& request_id) override {
    return cached_.Put(profile, request_id);
  }
  absl::StatusOr<ProfileSummary> Replace(const StoredProfile& profile,
                                         const ReplaceTerms& terms) override {
    return cached_.Replace(profile, terms);
  }
  absl::StatusOr<StoredProfile> Get(const std::string& id) override { return cached_.Get(id); }
  absl::StatusOr<ProfileSummary> GetSummary(const std::string& id) override {
    return cached_.GetSummary(id);
  }
  absl::StatusOr<ProfilePage> List(const ListQuery& query) override { return cached_.List(query); }
  absl::Status Delete(const std::string& id, const std::string& etag) override {
    return cached_.Delete(id, etag);
  }
  void SetLimits(const StoreLimits& limits) override { cached_.SetLimits(limits); }
  absl::Status Check() override { return cached_.Check(); }
  uint64_t Generation() const override { return cached_.Generation(); }

 private:
  const std::unique_ptr<ProfileStore> store_;
  CachedProfileStore cached_;
};

// The same kind behind a cache.
inline ProfileStoreKind Cached(const ProfileStoreKind& kind) {
  const auto open = [inner = kind.open](const std::string& place, const StoreLimits& limits,
                                        const Clock& clock) -> std::unique_ptr<ProfileStore> {
    std::unique_ptr<ProfileStore> store = inner(place, limits, clock);
    return store == nullptr ? nullptr
                            : std::make_unique<OwningCachedProfileStore>(std::move(store));
  };
  return {.name = "Cached" + kind.name, .open = open, .missing = kind.missing};
}

}  // namespace stepcast::server
