// The stores of profiles and of operations in memory: for tests, and for a server that need not
// remember.
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <utility>

#include "server/base/clock.h"
#include "server/base/mutex.h"
#include "server/store/operation_store.h"
#include "server/store/profile_store.h"

namespace stepcast::server {

// The profile store in memory: for tests, and for a server that need not remember.
//
// Cost: Put, Get, Delete O(log n) and a copy of the content; List O(log n + profiles looked at).
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

// The store of operations in memory: for tests, and for a server that need not remember.
//
// Cost: Claim and Expire O(operations), the rest O(log n) and a copy of the bytes.
class MemoryOperationStore final : public OperationStore {
 public:
  // The clock is borrowed; leases run on its monotonic time.
  MemoryOperationStore(const OperationLimits& limits, const Clock& clock)
      : limits_(limits), clock_(clock) {}

  absl::StatusOr<OperationRecord> Start(const NewOperation& operation) override;
  absl::StatusOr<StoredOperation> Get(const std::string& id) override;
  absl::StatusOr<OperationPage> List(const OperationQuery& query) override;
  absl::StatusOr<std::optional<ClaimedOperation>> Claim(const OperationClaim& claim) override;
  absl::StatusOr<HeartbeatAnswer> Heartbeat(const OperationAttempt& attempt,
                                            const OperationProgress& progress,
                                            int64_t lease_ns) override;
  absl::Status Finish(const OperationAttempt& attempt, const OperationResult& result) override;
  absl::Status Release(const OperationAttempt& attempt) override;
  absl::StatusOr<OperationRecord> RequestCancel(const std::string& id) override;
  absl::Status Delete(const std::string& id) override;
  absl::StatusOr<int64_t> Expire() override;
  absl::StatusOr<OperationCounts> Count() override;

 private:
  struct Entry {
    OperationRecord record;
    std::string bytes;  // the request; once done, the result
  };
  using Request = std::pair<std::string, std::string>;  // owner, request_id

  OperationTime Now() const {
    return {.lease_ns = clock_.MonotonicNs(), .wall_ns = clock_.WallNs()};
  }
  int64_t CountOpen() const STEPCAST_REQUIRES(mutex_);
  // Gives back what a done one no longer needs.
  void SetBytes(Entry& entry, std::string bytes) STEPCAST_REQUIRES(mutex_);
  void Erase(std::map<std::string, Entry>::iterator at) STEPCAST_REQUIRES(mutex_);

  const OperationLimits limits_;
  const Clock& clock_;
  Mutex mutex_;
  std::map<std::string, Entry> operations_ STEPCAST_GUARDED_BY(mutex_);
  std::map<Request, std::string> ids_ STEPCAST_GUARDED_BY(mutex_);
  int64_t bytes_ STEPCAST_GUARDED_BY(mutex_) = 0;
};

}  // namespace stepcast::server
