#include "server/store/memory_profile_store.h"

#include <optional>
#include <utility>

#include "server/store/store_error.h"

namespace stepcast::server {

absl::StatusOr<ProfileSummary> MemoryProfileStore::Put(const StoredProfile& profile,
                                                       const std::string& request_id) {
  return Write(profile, {.request_id = request_id});
}

absl::StatusOr<ProfileSummary> MemoryProfileStore::Replace(const StoredProfile& profile,
                                                           const ReplaceTerms& terms) {
  return Write(profile, {.request_id = terms.request_id, .replace = terms});
}

absl::StatusOr<ProfileSummary> MemoryProfileStore::Write(const StoredProfile& profile,
                                                         const WriteTerms& terms) {
  const ProfileSummary& wanted = profile.summary;
  const StoreLimits limits = limits_.Get();
  MutexLock lock(mutex_);
  const auto found = profiles_.find(wanted.id);
  std::optional<ProfileSummary> there;
  if (found != profiles_.end()) there = found->second.summary;
  if (const auto seen = requests_.find(terms.request_id); seen != requests_.end()) {
    return AnswerAgain(terms, seen->second, there, wanted);
  }
  const absl::StatusOr<bool> is_new = IsToBeWritten(wanted, there, terms);
  if (!is_new.ok()) return is_new.status();
  if (!*is_new) {
    Remember(terms, *there, limits);
    return *there;
  }
  absl::StatusOr<ProfileSummary> written = AsWritten(wanted, there, clock_.WallNs());
  if (!written.ok()) return written.status();
  const TotalsRow growth = GrowthOf(profile, there);
  if (absl::Status quota = CheckQuota(written->owner, growth, limits); !quota.ok()) return quota;
  profiles_.insert_or_assign(wanted.id,
                             StoredProfile{.summary = *written, .content = profile.content});
  if (there.has_value()) ++generation_;
  Count(written->owner, growth);
  Remember(terms, *written, limits);
  return written;
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
  Count(found->second.summary.owner,
        {.profiles = -1, .content_bytes = -static_cast<int64_t>(found->second.content.size())});
  profiles_.erase(found);
  ++generation_;
  return absl::OkStatus();
}

absl::Status MemoryProfileStore::Check() { return absl::OkStatus(); }

absl::Status MemoryProfileStore::CheckQuota(const std::string& owner, const TotalsRow& growth,
                                            const StoreLimits& limits) const {
  if (HasShareLimit(owner, limits)) {
    const auto owned = owned_.find(owner);
    absl::Status share =
        CheckShare(owner, owned == owned_.end() ? TotalsRow{} : owned->second, limits, growth);
    if (!share.ok()) return share;
  }
  return CheckRoom(totals_, limits, growth);
}

void MemoryProfileStore::Count(const std::string& owner, const TotalsRow& growth) {
  TotalsRow& owned = owned_[owner];
  for (TotalsRow* row : {&totals_, &owned}) {
    row->profiles += growth.profiles;
    row->content_bytes += growth.content_bytes;
  }
  if (owned.profiles == 0) owned_.erase(owner);
}

void MemoryProfileStore::Remember(const WriteTerms& terms, const ProfileSummary& stored,
                                  const StoreLimits& limits) {
  if (terms.request_id.empty()) return;
  requests_.emplace(terms.request_id, RowOf(stored, terms));
  request_order_.push_back(terms.request_id);
  if (static_cast<int64_t>(request_order_.size()) <= limits.max_request_ids) return;
  requests_.erase(request_order_.front());
  request_order_.pop_front();
}

}  // namespace stepcast::server
