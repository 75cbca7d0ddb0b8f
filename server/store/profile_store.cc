#include "server/store/profile_store.h"

#include <unistd.h>
#include <zlib.h>

#include <algorithm>
#include <array>
#include <utility>

#include "absl/strings/escaping.h"
#include "absl/strings/string_view.h"

#include "server/store/store_error.h"

namespace stepcast::server {

absl::StatusOr<std::string> NewEtag() {
  std::array<char, 16> bits{};
  if (getentropy(bits.data(), bits.size()) != 0)
    return StoreUnavailable("the system gives no random bits");
  return absl::BytesToHexString(absl::string_view(bits.data(), bits.size()));
}

int64_t ContentChecksum(const ProfileSummary& summary, std::string_view content) {
  uLong sum = crc32_z(0, nullptr, 0);
  for (const std::string_view part :
       {std::string_view(summary.id), std::string_view(summary.digest), content}) {
    sum = crc32_z(sum, reinterpret_cast<const Bytef*>(part.data()), part.size());
  }
  return static_cast<int64_t>(sum);
}

bool Matches(const ProfileFilter& filter, const ProfileSummary& summary) {
  if (filter.model.has_value() && *filter.model != summary.model) return false;
  const auto has_value = [&](const auto& term) {
    const auto label = summary.labels.find(term.first);
    return label != summary.labels.end() && label->second == term.second;
  };
  const auto is_present = [&](const std::string& key) { return summary.labels.contains(key); };
  return std::all_of(filter.labels.begin(), filter.labels.end(), has_value) &&
         std::all_of(filter.present_labels.begin(), filter.present_labels.end(), is_present);
}

std::string RequestDigest(const ProfileSummary& wanted, const WriteTerms& terms) {
  if (!terms.replace.has_value() || terms.replace->says.empty()) return wanted.digest;
  return wanted.digest + "/" + terms.replace->says;
}

RequestRow RowOf(const ProfileSummary& stored, const WriteTerms& terms) {
  return {.profile_id = stored.id,
          .digest = RequestDigest(stored, terms),
          .etag = stored.etag,
          .owner = stored.owner,
          .create_time_ns = stored.create_time_ns,
          .update_time_ns = stored.update_time_ns};
}

absl::StatusOr<ProfileSummary> AnswerAgain(const WriteTerms& terms, const RequestRow& first,
                                           const std::optional<ProfileSummary>& there,
                                           const ProfileSummary& summary) {
  if (first.profile_id != summary.id || first.digest != RequestDigest(summary, terms))
    return RequestIdReused(terms.request_id, first.profile_id);
  if (there.has_value() && there->etag == first.etag) return *there;
  // Deleted or replaced since. A late repetition of the request must not bring it back.
  ProfileSummary then = summary;
  then.etag = first.etag;
  then.owner = first.owner;
  then.create_time_ns = first.create_time_ns;
  then.update_time_ns = first.update_time_ns;
  return then;
}

absl::StatusOr<bool> IsToBeWritten(const ProfileSummary& wanted,
                                   const std::optional<ProfileSummary>& there,
                                   const WriteTerms& terms) {
  if (!terms.replace.has_value()) {
    if (!there.has_value()) return true;
    if (there->digest != wanted.digest)
      return ProfileExists(wanted.id, there->digest, wanted.digest);
    return false;
  }
  const std::string& etag = terms.replace->etag;
  if (!there.has_value() && !terms.replace->allow_missing) return ProfileNotFound(wanted.id);
  const std::string stored_etag = there.has_value() ? there->etag : "";
  if (!etag.empty() && etag != stored_etag) return EtagMismatch(wanted.id, etag, stored_etag);
  return !there.has_value() || there->digest != wanted.digest ||
         there->display_name != wanted.display_name || there->labels != wanted.labels;
}

absl::StatusOr<ProfileSummary> AsWritten(const ProfileSummary& wanted,
                                         const std::optional<ProfileSummary>& there,
                                         int64_t now_ns) {
  absl::StatusOr<std::string> etag = NewEtag();
  if (!etag.ok()) return etag.status();
  ProfileSummary written = wanted;
  written.etag = *std::move(etag);
  if (there.has_value()) written.owner = there->owner;
  written.create_time_ns = there.has_value() ? there->create_time_ns : now_ns;
  written.update_time_ns = now_ns;
  return written;
}

TotalsRow GrowthOf(const StoredProfile& profile, const std::optional<ProfileSummary>& there) {
  const auto bytes = static_cast<int64_t>(profile.content.size());
  if (!there.has_value()) return {.profiles = 1, .content_bytes = bytes};
  return {.profiles = 0, .content_bytes = bytes - there->size_bytes};
}

absl::Status CheckRoom(const TotalsRow& totals, const StoreLimits& limits,
                       const TotalsRow& growth) {
  if (growth.profiles > 0 && totals.profiles >= limits.max_profiles)
    return StoreFull("max_profiles", limits.max_profiles);
  if (growth.content_bytes > 0 &&
      growth.content_bytes > limits.max_total_bytes - totals.content_bytes)
    return StoreFull("max_store_bytes", limits.max_total_bytes);
  return absl::OkStatus();
}

bool HasShareLimit(const std::string& owner, const StoreLimits& limits) {
  return !owner.empty() && (limits.max_client_profiles > 0 || limits.max_client_store_bytes > 0);
}

absl::Status CheckShare(const std::string& owner, const TotalsRow& owned, const StoreLimits& limits,
                        const TotalsRow& growth) {
  if (growth.profiles > 0 && limits.max_client_profiles > 0 &&
      owned.profiles >= limits.max_client_profiles) {
    return ClientQuotaExceeded({.client = owner,
                                .limit = "max_client_profiles",
                                .value = limits.max_client_profiles,
                                .used = owned.profiles,
                                .wanted = 1});
  }
  if (growth.content_bytes > 0 && limits.max_client_store_bytes > 0 &&
      growth.content_bytes > limits.max_client_store_bytes - owned.content_bytes) {
    return ClientQuotaExceeded({.client = owner,
                                .limit = "max_client_store_bytes",
                                .value = limits.max_client_store_bytes,
                                .used = owned.content_bytes,
                                .wanted = growth.content_bytes});
  }
  return absl::OkStatus();
}

}  // namespace stepcast::server
