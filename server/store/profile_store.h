// The keyed store of profiles, behind one interface: in memory, on disk (SQLite), and in a database
// that several processes share (PostgreSQL).
//
// A stored profile changes only as a whole (Replace); its content is bytes the store does not look
// into. What Put and Replace have acknowledged is durable where the store is. Threads: safe. Calls
// may block on the disk, so they belong on a pool, never in a reactor. Failure: the codes named
// below; RESOURCE_EXHAUSTED, reason DISK_FULL, of writes where the disk takes no more, UNAVAILABLE,
// reason STORE_UNAVAILABLE, with RetryInfo, where the medium fails otherwise (file gone);
// DATA_LOSS, reason STORE_CORRUPT, where it is damaged. A call that failed has changed nothing.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

#include "server/base/mutex.h"

namespace stepcast::server {

// The limits of a store: the most it holds.
// Reaching one of the store's is RESOURCE_EXHAUSTED, reason STORE_FULL, with the field's name as
// quota subject; one of a client's is RESOURCE_EXHAUSTED, reason CLIENT_QUOTA_EXCEEDED, with
// "client:NAME". Clients without a name have no limit of their own.
struct StoreLimits {
  int64_t max_profiles = 100'000;
  int64_t max_total_bytes = int64_t{16} << 30;  // of the contents, 16 GiB
  int64_t max_client_profiles = 0;              // of one owner; 0: no limit
  int64_t max_client_store_bytes = 0;           // of the contents of one owner; 0: no limit
  int64_t max_request_ids = 100'000;  // beyond it the oldest is forgotten. REQUIRES: above 0
};

// The summary of a profile: all that is known of it without reading its content.
struct ProfileSummary {
  std::string id;  // the last part of its name
  std::string digest;
  std::string etag;
  std::string display_name;
  std::string model;
  std::string framework;
  std::string owner;  // the name of the client who stored it first; empty: one without a name
  std::map<std::string, std::string> labels;
  int32_t batch_size = 0;
  int32_t parameter_servers = 0;
  int32_t operation_count = 0;
  int32_t step_count = 0;
  int64_t size_bytes = 0;
  int64_t create_time_ns = 0;  // since the Unix epoch
  int64_t update_time_ns = 0;  // the same, of the last change

  friend bool operator==(const ProfileSummary&, const ProfileSummary&) = default;
};

struct StoredProfile {
  ProfileSummary summary;
  std::string content;
};

// A conjunction; an empty one takes all.
struct ProfileFilter {
  std::optional<std::string> model;
  std::map<std::string, std::string> labels;  // key -> value it must have
  std::vector<std::string> present_labels;    // keys that must be there
};

// The terms of a replacement.
struct ReplaceTerms {
  std::string etag;            // what is there must have it; empty: any
  bool allow_missing = false;  // stores the profile where there is none
  std::string request_id;      // as in Put
  // The digest of what a repetition must say again besides the content; empty: nothing.
  std::string says;
};

struct ListQuery {
  ProfileFilter filter;
  std::string after;  // ids greater than this, bytewise
  int limit = 50;     // REQUIRES: above 0
};

struct ProfilePage {
  std::vector<ProfileSummary> profiles;  // ascending by id
  bool more = false;
};

class ProfileStore {
 public:
  virtual ~ProfileStore() = default;

  // Stores `profile`, or returns what is there under the same id if its digest is the same
  // (AIP-155; the first one's labels stay). With a request_id seen before: returns what it stored
  // then, or fails with INVALID_ARGUMENT, reason REQUEST_ID_REUSED, if id or digest differ. A late
  // repetition does not bring back what was deleted since. An empty request_id is none; one whose
  // Put failed is not remembered. ALREADY_EXISTS, reason PROFILE_EXISTS, with the resource, if the
  // id is taken by another digest. RESOURCE_EXHAUSTED, with the quota subject, if a limit is
  // reached: reason CLIENT_QUOTA_EXCEEDED one of its owner's share, STORE_FULL one of the store.
  // Content that is there already belongs to its first owner, and counts for nobody else. etag and
  // both times are set by the store, the rest is kept as given. REQUIRES: size_bytes is the
  // content's.
  virtual absl::StatusOr<ProfileSummary> Put(const StoredProfile& profile,
                                             const std::string& request_id) = 0;
  // Puts `profile` in place of what is stored under its id: who reads has one or the other, never
  // none. Owner and create_time_ns stay. What has the same digest, display name and labels already
  // is left as it is, etag included. NOT_FOUND as Get, unless missing is allowed; ABORTED, reason
  // ETAG_MISMATCH, if an etag is asked for and not there. RESOURCE_EXHAUSTED as Put, by what the
  // store and its owner have more afterwards. A request_id as in Put, looked for before the etag.
  virtual absl::StatusOr<ProfileSummary> Replace(const StoredProfile& profile,
                                                 const ReplaceTerms& terms) = 0;
  // NOT_FOUND, reason PROFILE_NOT_FOUND, with the resource. DATA_LOSS, reason PROFILE_CORRUPT, if
  // the stored bytes are not those that were put.
  virtual absl::StatusOr<StoredProfile> Get(const std::string& id) = 0;
  // NOT_FOUND as Get.
  virtual absl::StatusOr<ProfileSummary> GetSummary(const std::string& id) = 0;
  virtual absl::StatusOr<ProfilePage> List(const ListQuery& query) = 0;
  // NOT_FOUND as Get; ABORTED, reason ETAG_MISMATCH, if `etag` is not empty and not the stored
  // one's.
  virtual absl::Status Delete(const std::string& id, const std::string& etag) = 0;
  // For every Put that begins afterwards. What is there stays, though it may be more than the new
  // limits allow.
  virtual void SetLimits(const StoreLimits& limits) = 0;
  // OK while the store can serve. For readiness.
  virtual absl::Status Check() = 0;
  // Changes whenever what a profile's name stands for may have changed: after a deletion or a
  // replacement, here or by another process on the same store. Read it before the store; what was
  // read may be used as long as it is still the same. A Delete or Replace commits, then changes it,
  // then returns; another process's is known here soon after. Cost: some nanoseconds, no lock.
  virtual uint64_t Generation() const = 0;
};

// The rules that all stores of profiles share: etags, checksums, filters, repeated requests, room.

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
