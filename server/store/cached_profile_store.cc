#include "server/store/cached_profile_store.h"

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

}  // namespace stepcast::server
