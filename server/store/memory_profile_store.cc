#include "server/store/memory_profile_store.h"

#include <utility>

#include "server/store/profile_rules.h"
#include "server/store/store_error.h"

namespace stepcast::server {

absl::StatusOr<ProfileSummary> MemoryProfileStore::Put(const StoredProfile& profile,
                                                       const std::string& request_id) {
  const absl::StatusOr<std::string> etag = NewEtag();
  if (!etag.ok()) return etag.status();
  StoredProfile stored = profile;
  stored.summary.etag = *etag;
  stored.summary.create_time_ns = clock_.WallNs();
  ProfileSummary summary = stored.summary;
  const auto content_bytes = static_cast<int64_t>(stored.content.size());

  const StoreLimits limits = limits_.Get();
  MutexLock lock(mutex_);
  if (const auto seen = requests_.find(request_id); seen != requests_.end()) {
    const ProfileSummary& first = seen->second;
    if (first.id != summary.id || first.digest != summary.digest)
      return RequestIdReused(request_id, first.id);
    return first;
  }
  if (const auto there = profiles_.find(summary.id); there != profiles_.end()) {
    const ProfileSummary& existing = there->second.summary;
    if (existing.digest != summary.digest)
      return ProfileExists(summary.id, existing.digest, summary.digest);
    Remember(request_id, existing, limits);
    return existing;
  }
  if (absl::Status quota = CheckQuota(stored, limits); !quota.ok()) return quota;
  profiles_.emplace(summary.id, std::move(stored));
  Count(summary.owner, 1, content_bytes);
  Remember(request_id, summary, limits);
  return summary;
}

absl::StatusOr<StoredProfile> MemoryProfileStore::Get(const std::string& id) {
  MutexLock lock(mutex_);
  const auto found = profiles_.find(id);
  if (found == profiles_.end()) return ProfileNotFound(id);
  return found->second;
}

absl::StatusOr<ProfileSummary> MemoryProfileStore::GetSummary(const std::string& id) {
  MutexLock lock(mutex_);
  const auto found = profiles_.find(id);
  if (found == profiles_.end()) return ProfileNotFound(id);
  return found->second.summary;
}

absl::StatusOr<ProfilePage> MemoryProfileStore::List(const ListQuery& query) {
  ProfilePage page;
  MutexLock lock(mutex_);
  for (auto at = profiles_.upper_bound(query.after); at != profiles_.end(); ++at) {
    if (!Matches(query.filter, at->second.summary)) continue;
    if (page.profiles.size() == static_cast<size_t>(query.limit)) {
      page.more = true;
      break;
    }
    page.profiles.push_back(at->second.summary);
  }
  return page;
}

absl::Status MemoryProfileStore::Delete(const std::string& id, const std::string& etag) {
  MutexLock lock(mutex_);
  const auto found = profiles_.find(id);
  if (found == profiles_.end()) return ProfileNotFound(id);
  const std::string& stored_etag = found->second.summary.etag;
  if (!etag.empty() && etag != stored_etag) return EtagMismatch(id, etag, stored_etag);
  Count(found->second.summary.owner, -1, -static_cast<int64_t>(found->second.content.size()));
  profiles_.erase(found);
  ++generation_;
  return absl::OkStatus();
}

absl::Status MemoryProfileStore::Check() { return absl::OkStatus(); }

absl::Status MemoryProfileStore::CheckQuota(const StoredProfile& profile,
                                            const StoreLimits& limits) const {
  const std::string& owner = profile.summary.owner;
  const auto new_bytes = static_cast<int64_t>(profile.content.size());
  if (HasShareLimit(owner, limits)) {
    const auto owned = owned_.find(owner);
    absl::Status share =
        CheckShare(owner, owned == owned_.end() ? TotalsRow{} : owned->second, limits, new_bytes);
    if (!share.ok()) return share;
  }
  return CheckRoom(totals_, limits, new_bytes);
}

void MemoryProfileStore::Count(const std::string& owner, int64_t profiles, int64_t bytes) {
  TotalsRow& owned = owned_[owner];
  for (TotalsRow* row : {&totals_, &owned}) {
    row->profiles += profiles;
    row->content_bytes += bytes;
  }
  if (owned.profiles == 0) owned_.erase(owner);
}

void MemoryProfileStore::Remember(const std::string& request_id, const ProfileSummary& stored,
                                  const StoreLimits& limits) {
  if (request_id.empty()) return;
  requests_.emplace(request_id, stored);
  request_order_.push_back(request_id);
  if (static_cast<int64_t>(request_order_.size()) <= limits.max_request_ids) return;
  requests_.erase(request_order_.front());
  request_order_.pop_front();
}

}  // namespace stepcast::server
