#include "client/src/error_status.h"

#include <google/protobuf/any.pb.h>

#include "absl/strings/cord.h"
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

}  // namespace stepcast::client
