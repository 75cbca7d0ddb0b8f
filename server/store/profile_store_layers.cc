#include "server/store/profile_store_layers.h"

#include <utility>

namespace stepcast::server {

namespace {

size_t BytesOf(const StoredProfile& profile) {
  constexpr size_t kLabelBytes = 96;  // what holds one
  const ProfileSummary& summary = profile.summary;
  size_t bytes = sizeof(StoredProfile) + profile.content.size() + summary.id.size() +
                 summary.digest.size() + summary.etag.size();
  bytes += summary.display_name.size() + summary.model.size() + summary.framework.size() +
           summary.owner.size();
  for (const auto& [key, value] : summary.labels) bytes += key.size() + value.size() + kLabelBytes;
  return bytes;
}

}  // namespace

absl::StatusOr<StoredProfile> CachedProfileStore::Get(const std::string& id) {
  if (!keeps_) return store_.Get(id);
  const uint64_t generation = store_.Generation();
  if (const auto kept = Find(id, generation); kept != nullptr && kept->has_content)
    return kept->profile;
  absl::StatusOr<StoredProfile> profile = store_.Get(id);
  if (profile.ok()) Keep({.generation = generation, .profile = *profile, .has_content = true});
  return profile;
}

absl::StatusOr<ProfileSummary> CachedProfileStore::GetSummary(const std::string& id) {
  if (!keeps_) return store_.GetSummary(id);
  const uint64_t generation = store_.Generation();
  if (const auto kept = Find(id, generation); kept != nullptr) return kept->profile.summary;
  absl::StatusOr<ProfileSummary> summary = store_.GetSummary(id);
  if (summary.ok())
    Keep({.generation = generation,
          .profile = {.summary = *summary, .content = {}},
          .has_content = false});
  return summary;
}

std::shared_ptr<const CachedProfileStore::Entry> CachedProfileStore::Find(const std::string& id,
                                                                          uint64_t generation) {
  std::shared_ptr<const Entry> kept = kept_.Find(id);
  return kept != nullptr && kept->generation == generation ? kept : nullptr;
}

void CachedProfileStore::Keep(Entry entry) {
  const std::string id = entry.profile.summary.id;
  const size_t bytes = BytesOf(entry.profile);
  kept_.Keep(id, std::make_shared<const Entry>(std::move(entry)), bytes);
}

namespace {

absl::StatusCode CodeOf(const absl::Status& status) { return status.code(); }

template <typename T>
absl::StatusCode CodeOf(const absl::StatusOr<T>& result) {
  return result.status().code();
}

}  // namespace

template <typename Operation>
auto ObservedProfileStore::Observe(std::string_view name, Operation operation) {
  const int64_t start_ns = clock_.MonotonicNs();
  auto result = operation();
  observer_.OnOperation(name, CodeOf(result),
                        static_cast<double>(clock_.MonotonicNs() - start_ns) * 1e-9);
  return result;
}

absl::StatusOr<ProfileSummary> ObservedProfileStore::Put(const StoredProfile& profile,
                                                         const std::string& request_id) {
  return Observe("put", [&] { return store_.Put(profile, request_id); });
}

absl::StatusOr<ProfileSummary> ObservedProfileStore::Replace(const StoredProfile& profile,
                                                             const ReplaceTerms& terms) {
  return Observe("replace", [&] { return store_.Replace(profile, terms); });
}

absl::StatusOr<StoredProfile> ObservedProfileStore::Get(const std::string& id) {
  return Observe("get", [&] { return store_.Get(id); });
}

absl::StatusOr<ProfileSummary> ObservedProfileStore::GetSummary(const std::string& id) {
  return Observe("get_summary", [&] { return store_.GetSummary(id); });
}

absl::StatusOr<ProfilePage> ObservedProfileStore::List(const ListQuery& query) {
  return Observe("list", [&] { return store_.List(query); });
}

absl::Status ObservedProfileStore::Delete(const std::string& id, const std::string& etag) {
  return Observe("delete", [&] { return store_.Delete(id, etag); });
}

absl::Status ObservedProfileStore::Check() {
  return Observe("check", [&] { return store_.Check(); });
}

}  // namespace stepcast::server
