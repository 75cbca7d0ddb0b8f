#include "server/store/observed_profile_store.h"

namespace stepcast::server {

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
