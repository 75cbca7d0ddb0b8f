#include "client/src/grpc_status.h"

#include <google/protobuf/any.pb.h>

#include "absl/strings/cord.h"
#include "google/rpc/status.pb.h"

namespace stepcast::client {

absl::Status FromGrpc(const grpc::Status& status) {
  if (status.ok()) return absl::OkStatus();
  absl::Status result(static_cast<absl::StatusCode>(status.error_code()), status.error_message());
  google::rpc::Status details;
  if (!details.ParseFromString(status.error_details())) return result;
  for (const google::protobuf::Any& detail : details.details()) result.SetPayload(detail.type_url(), absl::Cord(detail.value()));
  return result;
}

}  // namespace stepcast::client
