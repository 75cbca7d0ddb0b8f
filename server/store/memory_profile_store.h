// The profile store in memory: for tests, and for a server that need not remember.
//
// Cost: Put, Get, Delete O(log n) and a copy of the content; List O(log n + profiles looked at).
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <map>
#include <string>

#include "server/base/clock.h"
#include "server/base/mutex.h"
#include "server/store/profile_rules.h"
#include "server/store/profile_store.h"

namespace stepcast::server {

class MemoryProfileStore final : public ProfileStore {
 public:
  // The clock is borrowed.
  MemoryProfileStore(const StoreLimits& limits, const Clock& clock)
      : limits_(limits), clock_(clock) {}

  absl::StatusOr<ProfileSummary> Put(const StoredProfile& profile,
                                     const std::string& request_id) override;
  absl::StatusOr<ProfileSummary> Replace(const StoredProfile& profile,
                                         const ReplaceTerms& terms) override;
  absl::StatusOr<StoredProfile> Get(const std::string& id) override;
  absl::StatusOr<ProfileSummary> GetSummary(const std::string& id) override;
  absl::StatusOr<ProfilePage> List(const ListQuery& query) override;
  absl::Status Delete(const std::string& id, const std::string& etag) override;
  void SetLimits(const StoreLimits& limits) override { limits_.Set(limits); }
  absl::Status Check() override;
  uint64_t Generation() const override { return generation_; }

 private:
  absl::StatusOr<ProfileSummary> Write(const StoredProfile& profile, const WriteTerms& terms);
  absl::Status CheckQuota(const std::string& owner, const TotalsRow& growth,
                          const StoreLimits& limits) const STEPCAST_REQUIRES(mutex_);
  // `growth` may be negative.
  void Count(const std::string& owner, const TotalsRow& growth) STEPCAST_REQUIRES(mutex_);
  void Remember(const WriteTerms& terms, const ProfileSummary& stored, const StoreLimits& limits)
      STEPCAST_REQUIRES(mutex_);

  ReloadedLimits limits_;
  const Clock& clock_;
  std::atomic<uint64_t> generation_{0};
  Mutex mutex_;
  std::map<std::string, StoredProfile> profiles_ STEPCAST_GUARDED_BY(mutex_);
  TotalsRow totals_ STEPCAST_GUARDED_BY(mutex_);
  std::map<std::string, TotalsRow> owned_ STEPCAST_GUARDED_BY(mutex_);  // by those who have any
  std::map<std::string, RequestRow> requests_ STEPCAST_GUARDED_BY(mutex_);
  std::deque<std::string> request_order_ STEPCAST_GUARDED_BY(mutex_);  // oldest first
};

}  // namespace stepcast::server
