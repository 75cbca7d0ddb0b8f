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
  // What is there already belongs to its first owner, and counts for nobody else. etag and
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

}  // namespace stepcast::server
