#include "server/rpc/unknown_method_rpc.h"

#include "core/base/error.h"
#include "core/base/quoted.h"
#include "server/rpc/grpc_status.h"

namespace stepcast::server {

namespace {

class Refusal final : public grpc::ServerGenericBidiReactor {
 public:
  explicit Refusal(const std::string& method) {
    Finish(ToGrpcStatus(MakeError(absl::StatusCode::kUnimplemented, Quoted(method) + " is no method of this server",
                                  {.reason = "METHOD_UNKNOWN", .metadata = {{"method", Quoted(method)}}})));
  }
  void OnDone() override { delete this; }
};

}  // namespace

grpc::ServerGenericBidiReactor* UnknownMethodRpc::CreateReactor(grpc::GenericCallbackServerContext* context) {
  return new Refusal(context->method());
}

}  // namespace stepcast::server
