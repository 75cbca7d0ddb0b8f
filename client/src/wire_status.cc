#include "client/src/wire_status.h"

#include <google/protobuf/any.pb.h>

#include "absl/strings/cord.h"
#include "google/rpc/status.pb.h"

namespace stepcast::client {

absl::Status StatusFromWire(absl::StatusCode code, std::string_view message,
                            std::string_view details) {
  absl::Status status(code, absl::string_view(message.data(), message.size()));
  google::rpc::Status wire;
  if (!wire.ParseFromArray(details.data(), static_cast<int>(details.size()))) return status;
  for (const google::protobuf::Any& detail : wire.details())
    status.SetPayload(detail.type_url(), absl::Cord(detail.value()));
  return status;
}

}  // namespace stepcast::client
