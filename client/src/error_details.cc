#include "stepcast/error_details.h"

#include <utility>

#include "absl/strings/cord.h"
#include "absl/time/time.h"
#include "absl/types/optional.h"
#include "google/rpc/error_details.pb.h"

namespace stepcast::client {

namespace {

// The payload under the type URL of `Detail`, if it is there and can be read.
template <typename Detail>
std::optional<Detail> Find(const absl::Status& status) {
  const absl::optional<absl::Cord> payload =
      status.GetPayload("type.googleapis.com/" + Detail::descriptor()->full_name());
  Detail detail;
  if (!payload.has_value() || !detail.ParseFromString(std::string(*payload))) return std::nullopt;
  return detail;
}

}  // namespace

ErrorDetails GetErrorDetails(const absl::Status& status) {
  ErrorDetails details;
  if (const auto info = Find<google::rpc::ErrorInfo>(status)) {
    details.reason = info->reason();
    details.domain = info->domain();
    details.metadata.insert(info->metadata().begin(), info->metadata().end());
  }
  if (const auto bad = Find<google::rpc::BadRequest>(status)) {
    for (const auto& violation : bad->field_violations()) {
      details.violations.push_back(
          {.field = violation.field(), .description = violation.description()});
    }
  }
  if (const auto quota = Find<google::rpc::QuotaFailure>(status)) {
    for (const auto& violation : quota->violations()) {
      details.quota_violations.push_back(
          {.subject = violation.subject(), .description = violation.description()});
    }
  }
  if (const auto resource = Find<google::rpc::ResourceInfo>(status)) {
    details.resource = ErrorResource{.type = resource->resource_type(),
                                     .name = resource->resource_name(),
                                     .description = resource->description()};
  }
  if (const auto retry = Find<google::rpc::RetryInfo>(status); retry && retry->has_retry_delay()) {
    // A delay beyond what nanoseconds count to, 292 years, becomes that.
    details.retry_delay =
        absl::ToChronoNanoseconds(absl::Seconds(retry->retry_delay().seconds()) +
                                  absl::Nanoseconds(retry->retry_delay().nanos()));
  }
  return details;
}

}  // namespace stepcast::client
