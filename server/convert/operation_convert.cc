#include "server/convert/operation_convert.h"

#include <algorithm>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"

#include "core/base/error.h"
#include "server/convert/any_message.h"
#include "server/convert/profile_convert.h"
#include "server/convert/sha256.h"
#include "server/convert/wire_error.h"

namespace stepcast::server {

namespace {

namespace longrunning = google::longrunning;
using State = v1::JobMetadata::State;

// A stored profile that the computation needs. A job of AllocateWorkers whose profile is not there
// has an error of its own, and does not fail the others.
std::string ProfileOf(const google::protobuf::Message& request) {
  const auto* const profile = request.GetDescriptor()->FindFieldByName("profile");
  return profile == nullptr ? "" : request.GetReflection()->GetString(request, profile);
}

State StateToWire(OperationState state) {
  switch (state) {
    case OperationState::kQueued:
      return v1::JobMetadata::QUEUED;
    case OperationState::kRunning:
      return v1::JobMetadata::RUNNING;
    case OperationState::kSucceeded:
      return v1::JobMetadata::SUCCEEDED;
    case OperationState::kCancelled:
      return v1::JobMetadata::JOB_CANCELLED;
    case OperationState::kFailed:
    case OperationState::kExhausted:
      return v1::JobMetadata::FAILED;
  }
  return v1::JobMetadata::STATE_UNSPECIFIED;
}

v1::JobMetadata MetadataOf(const OperationRecord& record) {
  v1::JobMetadata metadata;
  metadata.set_method(record.method);
  metadata.set_state(StateToWire(record.state));
  *metadata.mutable_create_time() = TimestampOf(record.create_time_ns);
  if (record.start_time_ns != 0) *metadata.mutable_start_time() = TimestampOf(record.start_time_ns);
  if (record.end_time_ns != 0) *metadata.mutable_end_time() = TimestampOf(record.end_time_ns);
  metadata.set_attempts(static_cast<int32_t>(record.attempts));
  metadata.set_simulated_operations(record.progress);
  metadata.set_expected_operations(record.expected);
  metadata.set_replica(record.replica);
  metadata.set_cancel_requested(record.cancel_requested);
  return metadata;
}

absl::Status ErrorOf(const OperationRecord& record) {
  if (record.state == OperationState::kCancelled) {
    return MakeError(absl::StatusCode::kCancelled, "the operation was cancelled",
                     {.reason = "CANCELLED"});
  }
  const std::string attempts = absl::StrCat(record.attempts - record.released);
  return MakeError(
      absl::StatusCode::kAborted,
      absl::StrCat("given up after ", attempts, " attempts, in each of which the server went away"),
      {.reason = "ATTEMPTS_EXHAUSTED", .metadata = {{"attempts", attempts}}});
}

}  // namespace

std::string_view MethodNameOf(const google::protobuf::Descriptor& request) {
  constexpr std::string_view kSuffix = "Request";
  return std::string_view(request.name()).substr(0, request.name().size() - kSuffix.size());
}

const google::protobuf::Message* ComputationOf(const v1::StartJobRequest& wire) {
  const google::protobuf::Reflection& reflection = *wire.GetReflection();
  const auto* const computation = reflection.GetOneofFieldDescriptor(
      wire, wire.GetDescriptor()->FindOneofByName("computation"));
  return computation == nullptr ? nullptr : &reflection.GetMessage(wire, computation);
}

std::string RequestIdFromWire(const std::string& text) {
  const bool may_be_uuid = std::all_of(text.begin(), text.end(), [](char c) {
    return c == '-' || absl::ascii_isxdigit(static_cast<unsigned char>(c));
  });
  return may_be_uuid ? absl::AsciiStrToLower(text) : text;
}

StartJobCall FromWire(const v1::StartJobRequest& wire) {
  StartJobCall call;
  FaultList faults;
  if (const google::protobuf::Message* const computation = ComputationOf(wire)) {
    call.operation.method = MethodNameOf(*computation->GetDescriptor());
    call.profile = ProfileOf(*computation);
  } else {
    faults.Add("computation", "one computation is required");
  }
  call.faults = std::move(faults).Take();
  call.operation.request_id = RequestIdFromWire(wire.request_id());
  v1::StartJobRequest kept = wire;
  kept.clear_request_id();
  call.operation.request = DeterministicBytes(kept);
  call.operation.request_digest = Sha256Hex(call.operation.request);
  return call;
}

ListOperationsCall FromWire(const longrunning::ListOperationsRequest& wire) {
  return {.name = wire.name(),
          .filter = wire.filter(),
          .page_size = wire.page_size(),
          .page_token = wire.page_token()};
}

WaitOperationCall FromWire(const longrunning::WaitOperationRequest& wire) {
  WaitOperationCall call{.name = wire.name(), .timeout_seconds = std::nullopt};
  if (wire.has_timeout())
    call.timeout_seconds =
        static_cast<double>(wire.timeout().seconds()) + 1e-9 * wire.timeout().nanos();
  return call;
}

longrunning::Operation ToWire(const StoredOperation& operation) {
  const OperationRecord& record = operation.record;
  longrunning::Operation wire;
  wire.set_name(absl::StrCat("operations/", record.id));
  wire.mutable_metadata()->PackFrom(MetadataOf(record));
  wire.set_done(IsDone(record.state));
  if (record.state == OperationState::kSucceeded) {
    const std::string type = absl::StrCat("stepcast.v1.", record.method, "Response");
    wire.mutable_response()->set_type_url("type.googleapis.com/" + type);
    wire.mutable_response()->set_value(operation.result);
  } else if (wire.done()) {
    const bool has_error = record.state == OperationState::kFailed;
    // Kept bytes are those of ErrorBytes; were they damaged, it would still be an error.
    if (!wire.mutable_error()->ParseFromString(has_error ? operation.result
                                                         : ErrorBytes(ErrorOf(record)))) {
      wire.mutable_error()->set_code(static_cast<int>(absl::StatusCode::kDataLoss));
    }
  }
  return wire;
}

longrunning::ListOperationsResponse ToWire(const ListOperationsAnswer& answer) {
  longrunning::ListOperationsResponse wire;
  for (const StoredOperation& operation : answer.operations)
    *wire.add_operations() = ToWire(operation);
  wire.set_next_page_token(answer.next_page_token);
  return wire;
}

std::string ErrorBytes(const absl::Status& status) { return ToWireError(status).details; }

}  // namespace stepcast::server
