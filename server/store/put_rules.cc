#include "server/store/put_rules.h"

#include "server/store/store_error.h"

namespace stepcast::server {

absl::StatusOr<ProfileSummary> AnswerAgain(const std::string& request_id, const RequestRow& first, const std::optional<ProfileSummary>& there,
                                           const ProfileSummary& summary) {
  if (first.profile_id != summary.id || first.digest != summary.digest) return RequestIdReused(request_id, first.profile_id);
  if (there.has_value() && there->etag == first.etag) return *there;
  // Deleted since. A late repetition of the request must not bring it back.
  ProfileSummary then = summary;
  then.etag = first.etag;
  then.create_time_ns = first.create_time_ns;
  return then;
}

absl::Status CheckRoom(const TotalsRow& totals, const StoreLimits& limits, int64_t new_bytes) {
  if (totals.profiles >= limits.max_profiles) return StoreFull("max_profiles", limits.max_profiles);
  if (new_bytes > limits.max_total_bytes - totals.content_bytes) return StoreFull("max_total_bytes", limits.max_total_bytes);
  return absl::OkStatus();
}

}  // namespace stepcast::server
