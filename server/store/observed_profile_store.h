// A profile store that reports what another one does. For metrics.
#pragma once

#include <string>
#include <string_view>

#include "server/base/clock.h"
#include "server/store/profile_store.h"

namespace stepcast::server {

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
