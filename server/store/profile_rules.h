// The rules that all stores of profiles share: etags, checksums, filters, repeated requests, room.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

#include "server/base/mutex.h"
#include "server/store/profile_store.h"

namespace stepcast::server {

// Etags of stored profiles.
// A new one on every call: 128 random bits of the operating system in hex, so a profile that is
// deleted and stored again gets another. UNAVAILABLE, reason STORE_UNAVAILABLE, if the system has
// no random bits.
absl::StatusOr<std::string> NewEtag();

// The checksum of a stored content, which tells whether it is still the one that was put.
// CRC-32 of the content and of what says whose it is, so that bytes under another profile's name
// are found too. Cost: about 1 ns a byte.
int64_t ContentChecksum(const ProfileSummary& summary, std::string_view content);

// The match of a profile against a filter.
// Cost: O(terms x log labels).
bool Matches(const ProfileFilter& filter, const ProfileSummary& summary);

// The profile that a request_id stored, when it was new.
struct RequestRow {
  std::string profile_id;
  std::string digest;
  std::string etag;
  std::string owner;
  int64_t create_time_ns = 0;
};

// The totals of the whole store, or of one owner.
struct TotalsRow {
  int64_t profiles = 0;
  int64_t content_bytes = 0;
};

// The answer to a repetition of the request that left `first`: what it stored, though it may be
// deleted since. `there` is what has the id now. REQUEST_ID_REUSED if `summary` is of something
// else.
absl::StatusOr<ProfileSummary> AnswerAgain(const std::string& request_id, const RequestRow& first,
                                           const std::optional<ProfileSummary>& there,
                                           const ProfileSummary& summary);

// STORE_FULL if one more profile with so many bytes is too much.
absl::Status CheckRoom(const TotalsRow& totals, const StoreLimits& limits, int64_t new_bytes);

// True if the owner has a limit of its own, so that what it has must be known.
bool HasShareLimit(const std::string& owner, const StoreLimits& limits);
// CLIENT_QUOTA_EXCEEDED if one more profile with so many bytes is too much for the owner. REQUIRES:
// HasShareLimit.
absl::Status CheckShare(const std::string& owner, const TotalsRow& owned, const StoreLimits& limits,
                        int64_t new_bytes);

// The limits of a store that serves meanwhile.
//
// A call reads them once and goes by what it has read. Threads: safe.
class ReloadedLimits {
 public:
  explicit ReloadedLimits(const StoreLimits& limits) : limits_(limits) {}

  StoreLimits Get() const {
    MutexLock lock(mutex_);
    return limits_;
  }
  void Set(const StoreLimits& limits) {
    MutexLock lock(mutex_);
    limits_ = limits;
  }

 private:
  mutable Mutex mutex_;
  StoreLimits limits_ STEPCAST_GUARDED_BY(mutex_);
};

}  // namespace stepcast::server
