#include "server/store/put_rules.h"

#include "server/store/store_error.h"

namespace stepcast::server {

absl::StatusOr<ProfileSummary> AnswerAgain(const std::string& request_id, const RequestRow& first,
                                           const std::optional<ProfileSummary>& there,
                                           const ProfileSummary& summary) {
  if (first.profile_id != summary.id || first.digest != summary.digest)
    return RequestIdReused(request_id, first.profile_id);
  if (there.has_value() && there->etag == first.etag) return *there;
  // Deleted since. A late repetition of the request must not bring it back.
  ProfileSummary then = summary;
  then.etag = first.etag;
  then.owner = first.owner;
  then.create_time_ns = first.create_time_ns;
  return then;
}

absl::Status CheckRoom(const TotalsRow& totals, const StoreLimits& limits, int64_t new_bytes) {
  if (totals.profiles >= limits.max_profiles) return StoreFull("max_profiles", limits.max_profiles);
  if (new_bytes > limits.max_total_bytes - totals.content_bytes)
    return StoreFull("max_total_bytes", limits.max_total_bytes);
  return absl::OkStatus();
}

bool HasShareLimit(const std::string& owner, const StoreLimits& limits) {
  return !owner.empty() && (limits.max_client_profiles > 0 || limits.max_client_store_bytes > 0);
}

absl::Status CheckShare(const std::string& owner, const TotalsRow& owned, const StoreLimits& limits,
                        int64_t new_bytes) {
  if (limits.max_client_profiles > 0 && owned.profiles >= limits.max_client_profiles) {
    return ClientQuotaExceeded({.client = owner,
                                .limit = "max_client_profiles",
                                .value = limits.max_client_profiles,
                                .used = owned.profiles,
                                .wanted = 1});
  }
  if (limits.max_client_store_bytes > 0 &&
      new_bytes > limits.max_client_store_bytes - owned.content_bytes) {
    return ClientQuotaExceeded({.client = owner,
                                .limit = "max_client_store_bytes",
                                .value = limits.max_client_store_bytes,
                                .used = owned.content_bytes,
                                .wanted = new_bytes});
  }
  return absl::OkStatus();
}

}  // namespace stepcast::server
