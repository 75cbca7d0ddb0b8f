#include "server/convert/wire_error.h"

#include "google/protobuf/any.pb.h"
#include "google/protobuf/duration.pb.h"
#include "google/rpc/error_details.pb.h"
#include "google/rpc/status.pb.h"

#include "core/base/error.h"
#include "server/convert/any_message.h"
#include "server/convert/utf8.h"

namespace stepcast::server {

namespace {

constexpr size_t kMaxMetadataValueBytes = 256;
constexpr size_t kMaxSubjectBytes = 96;  // a client's name fits

google::rpc::ErrorInfo MakeErrorInfo(const absl::Status& status, const ErrorDetails& details,
                                     size_t left_out) {
  google::rpc::ErrorInfo info;
  info.set_reason(details.reason.empty() ? absl::StatusCodeToString(status.code())
                                         : ToUtf8(details.reason, 63));
  info.set_domain(kErrorDomain);
  for (const auto& [key, value] : details.metadata)
    (*info.mutable_metadata())[ToUtf8(key, 64)] = ToUtf8(value, kMaxMetadataValueBytes);
  if (left_out > 0) (*info.mutable_metadata())["violations_left_out"] = std::to_string(left_out);
  return info;
}

// PackFrom, but equal messages have equal bytes: a map has no order of its own, and errors are
// parts of replies that are compared.
void Pack(const google::rpc::ErrorInfo& info, google::protobuf::Any& any) {
  any.set_type_url("type.googleapis.com/google.rpc.ErrorInfo");
  any.set_value(DeterministicBytes(info));
}

google::rpc::Status MakeStatus(const absl::Status& status, const ErrorDetails& details,
                               size_t faults, const std::string& message) {
  google::rpc::Status wire;
  wire.set_code(static_cast<int>(status.code()));
  wire.set_message(message);
  const size_t left_out = details.faults_left_out + (details.faults.size() - faults);
  Pack(MakeErrorInfo(status, details, left_out), *wire.add_details());
  if (faults > 0) {
    google::rpc::BadRequest bad_request;
    for (size_t i = 0; i < faults; ++i) {
      auto* violation = bad_request.add_field_violations();
      violation->set_field(ToUtf8(details.faults[i].field, kMaxFaultBytes / 4));
      violation->set_description(ToUtf8(details.faults[i].description, kMaxFaultBytes / 4));
    }
    wire.add_details()->PackFrom(bad_request);
  }
  if (!details.resource.type.empty()) {
    google::rpc::ResourceInfo resource;
    resource.set_resource_type(ToUtf8(details.resource.type, 64));
    resource.set_resource_name(ToUtf8(details.resource.name, kMaxMetadataValueBytes));
    resource.set_description(message);
    wire.add_details()->PackFrom(resource);
  }
  if (details.retry_delay_ms > 0) {
    google::rpc::RetryInfo retry;
    retry.mutable_retry_delay()->set_seconds(details.retry_delay_ms / 1000);
    retry.mutable_retry_delay()->set_nanos(details.retry_delay_ms % 1000 * 1'000'000);
    wire.add_details()->PackFrom(retry);
  }
  if (!details.quota_subject.empty()) {
    google::rpc::QuotaFailure quota;
    auto* violation = quota.add_violations();
    violation->set_subject(ToUtf8(details.quota_subject, kMaxSubjectBytes));
    violation->set_description(message);
    wire.add_details()->PackFrom(quota);
  }
  return wire;
}

}  // namespace

WireError ToWireError(const absl::Status& status) {
  const ErrorDetails details = DetailsOf(status);
  WireError error;
  error.message = ToUtf8({status.message().data(), status.message().size()}, kMaxWireMessageBytes);
  size_t faults = details.faults.size();
  error.details = MakeStatus(status, details, faults, error.message).SerializeAsString();
  while (error.details.size() > kMaxWireDetailsBytes && faults > 1) {
    --faults;
    error.details = MakeStatus(status, details, faults, error.message).SerializeAsString();
  }
  return error;
}

}  // namespace stepcast::server
