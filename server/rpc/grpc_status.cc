#include "server/rpc/grpc_status.h"

#include "server/convert/wire_error.h"

namespace stepcast::server {

grpc::Status ToGrpcStatus(const absl::Status& status) {
  if (status.ok()) return grpc::Status::OK;
  const WireError error = ToWireError(status);
  // absl's codes are the canonical ones, as gRPC's are.
  return {static_cast<grpc::StatusCode>(status.code()), error.message, error.details};
}

}  // namespace stepcast::server
