#include "client/src/local_error.h"

#include "absl/strings/cord.h"
#include "google/rpc/error_details.pb.h"

namespace stepcast::client {

absl::Status MakeLocalError(absl::StatusCode code, std::string_view reason,
                            std::string_view message,
                            const std::map<std::string, std::string>& metadata) {
  google::rpc::ErrorInfo info;
  info.set_reason(std::string(reason));
  info.set_domain("stepcast");
  info.mutable_metadata()->insert(metadata.begin(), metadata.end());
  absl::Status status(code, absl::string_view(message.data(), message.size()));
  status.SetPayload("type.googleapis.com/google.rpc.ErrorInfo",
                    absl::Cord(info.SerializeAsString()));
  return status;
}

}  // namespace stepcast::client
