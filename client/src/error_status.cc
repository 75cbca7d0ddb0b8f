#include "client/src/error_status.h"

#include <google/protobuf/any.pb.h>

#include <utility>

#include "absl/strings/cord.h"
#include "absl/time/time.h"
#include "absl/types/optional.h"
#include "google/rpc/error_details.pb.h"
#include "google/rpc/status.pb.h"

#include "stepcast/error_details.h"

namespace stepcast::client {

namespace {

// The packaged absl::string_view is not std::string_view.
absl::Status StatusWith(absl::StatusCode code, std::string_view message) {
  return absl::Status(code, absl::string_view(message.data(), message.size()));
}

void AddDetails(const google::rpc::Status& wire, absl::Status& status) {
  for (const google::protobuf::Any& detail : wire.details())
    status.SetPayload(detail.type_url(), absl::Cord(detail.value()));
}

}  // namespace

absl::Status StatusFromWire(absl::StatusCode code, std::string_view message,
                            std::string_view details) {
  absl::Status status = StatusWith(code, message);
  google::rpc::Status wire;
  if (wire.ParseFromArray(details.data(), static_cast<int>(details.size())))
    AddDetails(wire, status);
  return status;
}

absl::Status ToStatus(const google::rpc::Status& error) {
  absl::Status status = StatusWith(static_cast<absl::StatusCode>(error.code()), error.message());
  AddDetails(error, status);
  return status;
}

absl::Status MakeLocalError(absl::StatusCode code, std::string_view reason,
                            std::string_view message,
                            const std::map<std::string, std::string>& metadata) {
  google::rpc::ErrorInfo info;
  info.set_reason(std::string(reason));
  info.set_domain("stepcast");
  info.mutable_metadata()->insert(metadata.begin(), metadata.end());
  absl::Status status = StatusWith(code, message);
  status.SetPayload("type.googleapis.com/google.rpc.ErrorInfo",
                    absl::Cord(info.SerializeAsString()));
  return status;
}

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
