#include "server/store/memory_stores.h"

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

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

absl::StatusOr<OperationRecord> MemoryOperationStore::Start(const NewOperation& operation) {
  absl::StatusOr<OperationRecord> record = NewRecord(operation, Now());
  if (!record.ok()) return record.status();
  MutexLock lock(mutex_);
  const Request request{operation.owner, operation.request_id};
  if (const auto seen = ids_.find(request); seen != ids_.end()) {
    const OperationRecord& first = operations_.at(seen->second).record;
    if (absl::Status status = CheckRepetition(first, operation); !status.ok()) return status;
    return first;
  }
  if (!operation.refusal.ok()) return operation.refusal;
  const auto new_bytes = static_cast<int64_t>(operation.request.size());
  if (absl::Status room = CheckRoom(CountOpen(), bytes_, new_bytes, limits_); !room.ok())
    return room;
  operations_.emplace(record->id, Entry{.record = *record, .bytes = operation.request});
  if (!operation.request_id.empty()) ids_.emplace(request, record->id);
  bytes_ += new_bytes;
  return record;
}

absl::StatusOr<StoredOperation> MemoryOperationStore::Get(const std::string& id) {
  MutexLock lock(mutex_);
  const auto found = operations_.find(id);
  if (found == operations_.end()) return OperationNotFound(id);
  const Entry& entry = found->second;
  return StoredOperation{.record = entry.record,
                         .result = IsDone(entry.record.state) ? entry.bytes : ""};
}

absl::StatusOr<OperationPage> MemoryOperationStore::List(const OperationQuery& query) {
  OperationPage page;
  int64_t bytes = 0;
  MutexLock lock(mutex_);
  for (auto at = operations_.upper_bound(query.after); at != operations_.end(); ++at) {
    const Entry& entry = at->second;
    StoredOperation stored{.record = entry.record,
                           .result = IsDone(entry.record.state) ? entry.bytes : ""};
    bytes += static_cast<int64_t>(stored.result.size());
    page.more = page.operations.size() == static_cast<size_t>(query.limit) ||
                (!page.operations.empty() && bytes > query.max_bytes);
    if (page.more) return page;
    page.operations.push_back(std::move(stored));
  }
  return page;
}

absl::StatusOr<std::optional<ClaimedOperation>> MemoryOperationStore::Claim(
    const OperationClaim& claim) {
  const OperationTime now = Now();
  MutexLock lock(mutex_);
  for (auto& [id, entry] : operations_) {
    if (!IsClaimable(entry.record, now)) continue;
    if (TakeOrEnd(entry.record, claim, limits_, now))
      return ClaimedOperation{.record = entry.record, .request = entry.bytes};
    SetBytes(entry, "");
  }
  return std::optional<ClaimedOperation>();
}

absl::StatusOr<HeartbeatAnswer> MemoryOperationStore::Heartbeat(const OperationAttempt& attempt,
                                                                const OperationProgress& progress,
                                                                int64_t lease_ns) {
  MutexLock lock(mutex_);
  const auto found = operations_.find(attempt.id);
  if (found == operations_.end()) return HeartbeatAnswer::kLost;
  return Renew(found->second.record, attempt, progress, Now().lease_ns + lease_ns);
}

absl::Status MemoryOperationStore::Finish(const OperationAttempt& attempt,
                                          const OperationResult& result) {
  MutexLock lock(mutex_);
  const auto found = operations_.find(attempt.id);
  if (found == operations_.end()) return OperationNotFound(attempt.id);
  Entry& entry = found->second;
  const bool was_done = IsDone(entry.record.state);
  const absl::StatusOr<bool> takes_result = FinishWith(entry.record, attempt, result, Now());
  if (!takes_result.ok()) return takes_result.status();
  if (!was_done) SetBytes(entry, *takes_result ? result.bytes : "");
  return absl::OkStatus();
}

absl::Status MemoryOperationStore::Release(const OperationAttempt& attempt) {
  MutexLock lock(mutex_);
  const auto found = operations_.find(attempt.id);
  if (found == operations_.end()) return OperationNotFound(attempt.id);
  Entry& entry = found->second;
  if (absl::Status status = GiveBack(entry.record, attempt, Now()); !status.ok()) return status;
  if (IsDone(entry.record.state)) SetBytes(entry, "");
  return absl::OkStatus();
}

absl::StatusOr<OperationRecord> MemoryOperationStore::RequestCancel(const std::string& id) {
  MutexLock lock(mutex_);
  const auto found = operations_.find(id);
  if (found == operations_.end()) return OperationNotFound(id);
  Entry& entry = found->second;
  if (AskToCancel(entry.record, Now()) && IsDone(entry.record.state)) SetBytes(entry, "");
  return entry.record;
}

absl::Status MemoryOperationStore::Delete(const std::string& id) {
  MutexLock lock(mutex_);
  const auto found = operations_.find(id);
  if (found == operations_.end()) return OperationNotFound(id);
  if (absl::Status status = CheckDone(found->second.record); !status.ok()) return status;
  Erase(found);
  return absl::OkStatus();
}

absl::StatusOr<int64_t> MemoryOperationStore::Expire() {
  const int64_t before_ns = Now().wall_ns - limits_.retention_ns;
  MutexLock lock(mutex_);
  std::vector<std::pair<int64_t, std::string>> done;  // end, id
  for (const auto& [id, entry] : operations_) {
    if (IsDone(entry.record.state)) done.emplace_back(entry.record.end_time_ns, id);
  }
  std::sort(done.begin(), done.end());
  int64_t left = static_cast<int64_t>(done.size());
  for (const auto& [end_ns, id] : done) {
    if (end_ns > before_ns && left <= limits_.max_done_operations) break;
    Erase(operations_.find(id));
    --left;
  }
  return static_cast<int64_t>(done.size()) - left;
}

absl::StatusOr<OperationCounts> MemoryOperationStore::Count() {
  const int64_t now_ns = Now().wall_ns;
  OperationCounts counts;
  MutexLock lock(mutex_);
  for (const auto& [id, entry] : operations_) {
    const OperationRecord& record = entry.record;
    ++counts.by_state[static_cast<int>(record.state)];
    if (record.state == OperationState::kQueued)
      counts.oldest_queued_ns = std::max(counts.oldest_queued_ns, now_ns - record.create_time_ns);
  }
  return counts;
}

int64_t MemoryOperationStore::CountOpen() const {
  return std::count_if(operations_.begin(), operations_.end(), [](const auto& operation) {
    return !IsDone(operation.second.record.state);
  });
}

void MemoryOperationStore::SetBytes(Entry& entry, std::string bytes) {
  bytes_ += static_cast<int64_t>(bytes.size()) - static_cast<int64_t>(entry.bytes.size());
  entry.bytes = std::move(bytes);
}

void MemoryOperationStore::Erase(std::map<std::string, Entry>::iterator at) {
  const Entry& entry = at->second;
  bytes_ -= static_cast<int64_t>(entry.bytes.size());
  if (!entry.record.request_id.empty())
    ids_.erase(Request{entry.record.owner, entry.record.request_id});
  operations_.erase(at);
}

}  // namespace stepcast::server
