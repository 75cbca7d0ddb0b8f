#include "server/store/store_error.h"

#include "absl/strings/str_cat.h"

#include "core/base/error.h"

namespace stepcast::server {

namespace {

// Room comes only by a deletion, so there is no hurry.
constexpr int kFullRetryDelayMs = 60'000;
constexpr int kUnavailableRetryDelayMs = 1000;

ResourceDetail Profile(const std::string& id) {
  return {.type = "stepcast.v1.Profile", .name = absl::StrCat("profiles/", id)};
}

}  // namespace

absl::Status ProfileNotFound(const std::string& id) {
  return MakeError(
      absl::StatusCode::kNotFound, absl::StrCat("there is no profile profiles/", id),
      {.reason = "PROFILE_NOT_FOUND", .metadata = {{"profile", id}}, .resource = Profile(id)});
}

absl::Status ProfileExists(const std::string& id, const std::string& stored_digest,
                           const std::string& digest) {
  return MakeError(
      absl::StatusCode::kAlreadyExists, absl::StrCat("profiles/", id, " exists with other content"),
      {.reason = "PROFILE_EXISTS",
       .metadata = {{"profile", id}, {"stored_digest", stored_digest}, {"digest", digest}},
       .resource = Profile(id)});
}

absl::Status RequestIdReused(const std::string& request_id, const std::string& first_id) {
  const std::string what =
      absl::StrCat("\"", request_id,
                   "\" was used before, for other content or another id (profiles/", first_id, ")");
  return MakeError(absl::StatusCode::kInvalidArgument, absl::StrCat("request_id: ", what),
                   {.reason = "REQUEST_ID_REUSED",
                    .metadata = {{"request_id", request_id}, {"profile", first_id}},
                    .faults = {{.field = "request_id", .description = what}}});
}

absl::Status EtagMismatch(const std::string& id, const std::string& etag,
                          const std::string& stored_etag) {
  return MakeError(
      absl::StatusCode::kAborted,
      stored_etag.empty()
          ? absl::StrCat("profiles/", id, " is not there, nor is etag \"", etag, "\"")
          : absl::StrCat("profiles/", id, " has etag \"", stored_etag, "\", not \"", etag, "\""),
      {.reason = "ETAG_MISMATCH",
       .metadata = {{"profile", id}, {"etag", etag}, {"stored_etag", stored_etag}},
       .resource = Profile(id)});
}

absl::Status ProfileCorrupt(const std::string& id, std::string_view what) {
  return MakeError(
      absl::StatusCode::kDataLoss,
      absl::StrCat("the stored content of profiles/", id, " is damaged: ", std::string(what)),
      {.reason = "PROFILE_CORRUPT", .metadata = {{"profile", id}}, .resource = Profile(id)});
}

absl::Status StoreFull(std::string_view limit, int64_t value) {
  const std::string name(limit);
  return MakeError(absl::StatusCode::kResourceExhausted,
                   absl::StrCat("the store is full: ", name, " is ", value),
                   {.reason = "STORE_FULL",
                    .metadata = {{name, absl::StrCat(value)}},
                    .retry_delay_ms = kFullRetryDelayMs,
                    .quota_subject = name});
}

absl::Status ClientQuotaExceeded(const ClientUse& use) {
  const std::string what = absl::StrCat(use.client, " has ", use.used, " in the store and wants ",
                                        use.wanted, " more, but ", use.limit, " is ", use.value);
  return MakeError(absl::StatusCode::kResourceExhausted,
                   absl::StrCat(what, "; delete what is no longer needed"),
                   {.reason = "CLIENT_QUOTA_EXCEEDED",
                    .metadata = {{"client", use.client},
                                 {use.limit, absl::StrCat(use.value)},
                                 {"used", absl::StrCat(use.used)},
                                 {"wanted", absl::StrCat(use.wanted)}},
                    .quota_subject = absl::StrCat("client:", use.client)});
}

absl::Status StoreUnavailable(std::string_view why) {
  return MakeError(absl::StatusCode::kUnavailable,
                   absl::StrCat("the store cannot serve: ", std::string(why)),
                   {.reason = "STORE_UNAVAILABLE", .retry_delay_ms = kUnavailableRetryDelayMs});
}

}  // namespace stepcast::server
