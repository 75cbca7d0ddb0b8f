#include "server/convert/wire_error.h"

#include <algorithm>
#include <string_view>

#include "google/protobuf/duration.pb.h"
#include "google/rpc/error_details.pb.h"
#include "google/rpc/status.pb.h"

#include "core/base/error.h"

namespace stepcast::server {

namespace {

constexpr size_t kMaxMetadataValueBytes = 256;

// The length of the well-formed UTF-8 sequence that `text` begins with; 0: it begins with none (Unicode 15, table 3-7).
size_t SequenceLength(std::string_view text) {
  const auto byte = [&](size_t at) { return at < text.size() ? static_cast<unsigned char>(text[at]) : 0U; };
  const auto continues = [&](size_t at, unsigned low = 0x80, unsigned high = 0xBF) { return byte(at) >= low && byte(at) <= high; };
  const unsigned lead = byte(0);
  if (lead < 0x80) return 1;
  if (lead >= 0xC2 && lead <= 0xDF) return continues(1) ? 2 : 0;
  if (lead >= 0xE0 && lead <= 0xEF) {
    const bool second = continues(1, lead == 0xE0 ? 0xA0 : 0x80, lead == 0xED ? 0x9F : 0xBF);
    return second && continues(2) ? 3 : 0;
  }
  if (lead >= 0xF0 && lead <= 0xF4) {
    const bool second = continues(1, lead == 0xF0 ? 0x90 : 0x80, lead == 0xF4 ? 0x8F : 0xBF);
    return second && continues(2) && continues(3) ? 4 : 0;
  }
  return 0;
}

// At most `max` bytes of valid UTF-8; each byte that is part of none becomes '?'.
std::string Text(std::string_view text, size_t max) {
  std::string out;
  while (!text.empty()) {
    const size_t length = SequenceLength(text);
    const size_t taken = std::max<size_t>(length, 1);
    if (out.size() + taken > max) break;
    if (length == 0) {
      out.push_back('?');
    } else {
      out.append(text.substr(0, length));
    }
    text.remove_prefix(taken);
  }
  return out;
}

google::rpc::ErrorInfo MakeErrorInfo(const absl::Status& status, const ErrorDetails& details, size_t left_out) {
  google::rpc::ErrorInfo info;
  info.set_reason(details.reason.empty() ? absl::StatusCodeToString(status.code()) : Text(details.reason, 63));
  info.set_domain(kErrorDomain);
  for (const auto& [key, value] : details.metadata) (*info.mutable_metadata())[Text(key, 64)] = Text(value, kMaxMetadataValueBytes);
  if (left_out > 0) (*info.mutable_metadata())["violations_left_out"] = std::to_string(left_out);
  return info;
}

google::rpc::Status MakeStatus(const absl::Status& status, const ErrorDetails& details, size_t faults, const std::string& message) {
  google::rpc::Status wire;
  wire.set_code(static_cast<int>(status.code()));
  wire.set_message(message);
  const size_t left_out = details.faults_left_out + (details.faults.size() - faults);
  wire.add_details()->PackFrom(MakeErrorInfo(status, details, left_out));
  if (faults > 0) {
    google::rpc::BadRequest bad_request;
    for (size_t i = 0; i < faults; ++i) {
      auto* violation = bad_request.add_field_violations();
      violation->set_field(Text(details.faults[i].field, kMaxFaultBytes / 4));
      violation->set_description(Text(details.faults[i].description, kMaxFaultBytes / 4));
    }
    wire.add_details()->PackFrom(bad_request);
  }
  if (!details.resource.type.empty()) {
    google::rpc::ResourceInfo resource;
    resource.set_resource_type(Text(details.resource.type, 64));
    resource.set_resource_name(Text(details.resource.name, kMaxMetadataValueBytes));
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
    violation->set_subject(Text(details.quota_subject, 64));
    violation->set_description(message);
    wire.add_details()->PackFrom(quota);
  }
  return wire;
}

}  // namespace

WireError ToWireError(const absl::Status& status) {
  const ErrorDetails details = DetailsOf(status);
  WireError error;
  error.message = Text({status.message().data(), status.message().size()}, kMaxWireMessageBytes);
  size_t faults = details.faults.size();
  error.details = MakeStatus(status, details, faults, error.message).SerializeAsString();
  while (error.details.size() > kMaxWireDetailsBytes && faults > 1) {
    --faults;
    error.details = MakeStatus(status, details, faults, error.message).SerializeAsString();
  }
  return error;
}

}  // namespace stepcast::server
