// Layers over a store of profiles: one keeps what it has read of it, one reports what it does.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "server/base/bounded_cache.h"
#include "server/base/clock.h"
#include "server/store/profile_store.h"

namespace stepcast::server {

// A profile store that keeps what it has read of another one, within a bound of bytes, for as long
// as that one's generation is the same.
//
// Only what is there is kept: a name that stands for nothing now may stand for something with the
// next call. Errors, lists and writes are the other store's. Cost: a Get that finds its profile
// kept is a copy of it. Threads: safe. Lifetime: borrows the store and the observer.
class CachedProfileStore final : public ProfileStore {
 public:
  // `observer` may be null. With a bound of 0 it only passes on.
  CachedProfileStore(ProfileStore& store, size_t max_bytes, CacheObserver* observer = nullptr)
      : store_(store), keeps_(max_bytes > 0), kept_(max_bytes, observer) {}

  absl::StatusOr<ProfileSummary> Put(const StoredProfile& profile,
                                     const std::string& request_id) override {
    return store_.Put(profile, request_id);
  }
  absl::StatusOr<ProfileSummary> Replace(const StoredProfile& profile,
                                         const ReplaceTerms& terms) override {
    return store_.Replace(profile, terms);
  }
  absl::StatusOr<StoredProfile> Get(const std::string& id) override;
  // Asks nothing of the store if the profile or its summary is kept.
  absl::StatusOr<ProfileSummary> GetSummary(const std::string& id) override;
  absl::StatusOr<ProfilePage> List(const ListQuery& query) override { return store_.List(query); }
  absl::Status Delete(const std::string& id, const std::string& etag) override {
    return store_.Delete(id, etag);
  }
  void SetLimits(const StoreLimits& limits) override { store_.SetLimits(limits); }
  absl::Status Check() override { return store_.Check(); }
  uint64_t Generation() const override { return store_.Generation(); }

 private:
  struct Entry {
    uint64_t generation = 0;  // before it was read
    StoredProfile profile;
    bool has_content = false;
  };

  std::shared_ptr<const Entry> Find(const std::string& id, uint64_t generation);
  void Keep(Entry entry);

  ProfileStore& store_;
  const bool keeps_;
  BoundedCache<Entry> kept_;
};

// An observer of a store's operations.
// Threads: called by every thread that uses the store, after the operation, outside its locks.
class StoreObserver {
 public:
  virtual ~StoreObserver() = default;
  // `operation` is one of kStoreOperations; `seconds` is what the caller waited.
  virtual void OnOperation(std::string_view operation, absl::StatusCode code, double seconds) = 0;
};

inline constexpr std::string_view kStoreOperations[] = {"put",  "replace", "get",  "get_summary",
                                                        "list", "delete",  "check"};

// Lifetime: borrows all three.
class ObservedProfileStore final : public ProfileStore {
 public:
  ObservedProfileStore(ProfileStore& store, StoreObserver& observer, const Clock& clock)
      : store_(store), observer_(observer), clock_(clock) {}

  absl::StatusOr<ProfileSummary> Put(const StoredProfile& profile,
                                     const std::string& request_id) override;
  absl::StatusOr<ProfileSummary> Replace(const StoredProfile& profile,
                                         const ReplaceTerms& terms) override;
  absl::StatusOr<StoredProfile> Get(const std::string& id) override;
  absl::StatusOr<ProfileSummary> GetSummary(const std::string& id) override;
  absl::StatusOr<ProfilePage> List(const ListQuery& query) override;
  absl::Status Delete(const std::string& id, const std::string& etag) override;
  void SetLimits(const StoreLimits& limits) override { store_.SetLimits(limits); }
  absl::Status Check() override;
  uint64_t Generation() const override { return store_.Generation(); }

 private:
  template <typename Operation>
  auto Observe(std::string_view name, Operation operation);

  ProfileStore& store_;
  StoreObserver& observer_;
  const Clock& clock_;
};

}  // namespace stepcast::server
