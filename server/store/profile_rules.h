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
  std::string digest;  // RequestDigest
  std::string etag;
  std::string owner;
  int64_t create_time_ns = 0;
  int64_t update_time_ns = 0;
};

// The terms of a write: of a Put, or of a Replace.
struct WriteTerms {
  std::string request_id;
  std::optional<ReplaceTerms> replace;  // none: what is there stays
};

// The part of a request that its repetition has again: its content's digest, and its terms' words.
std::string RequestDigest(const ProfileSummary& wanted, const WriteTerms& terms);
// The row of a request that stored `stored`.
RequestRow RowOf(const ProfileSummary& stored, const WriteTerms& terms);

// True: `wanted` is to be written, in place of `there` if anything is. False: `there` says the same
// and is the answer. Errors: those of Put and Replace that hang on what is there.
absl::StatusOr<bool> IsToBeWritten(const ProfileSummary& wanted,
                                   const std::optional<ProfileSummary>& there,
                                   const WriteTerms& terms);

// `wanted` as it is written, with a new etag and the time: of `there`, if it replaces that, it has
// the owner and the time of creation.
absl::StatusOr<ProfileSummary> AsWritten(const ProfileSummary& wanted,
                                         const std::optional<ProfileSummary>& there,
                                         int64_t now_ns);

// The totals of the whole store, or of one owner; or by how much they grow.
struct TotalsRow {
  int64_t profiles = 0;
  int64_t content_bytes = 0;
};

// The growth of totals when `profile` is written in place of `there`, if anything is.
TotalsRow GrowthOf(const StoredProfile& profile, const std::optional<ProfileSummary>& there);

// The answer to a repetition of the request that left `first`: what it stored, though it may be
// deleted since. `there` is what has the id now. REQUEST_ID_REUSED if `summary` is of something
// else, or the terms say something else.
absl::StatusOr<ProfileSummary> AnswerAgain(const WriteTerms& terms, const RequestRow& first,
                                           const std::optional<ProfileSummary>& there,
                                           const ProfileSummary& summary);

// STORE_FULL if such a growth is too much. What does not grow is never too much, though the limit
// was lowered.
absl::Status CheckRoom(const TotalsRow& totals, const StoreLimits& limits, const TotalsRow& growth);

// True if the owner has a limit of its own, so that what it has must be known.
bool HasShareLimit(const std::string& owner, const StoreLimits& limits);
// CLIENT_QUOTA_EXCEEDED if such a growth is too much for the owner. REQUIRES: HasShareLimit.
absl::Status CheckShare(const std::string& owner, const TotalsRow& owned, const StoreLimits& limits,
                        const TotalsRow& growth);

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
