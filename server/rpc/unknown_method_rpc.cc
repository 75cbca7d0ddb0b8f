#include <string_view>

#include "core/base/error.h"
#include "core/base/message_text.h"
#include "server/rpc/grpc_wire.h"
#include "server/rpc/services.h"

namespace stepcast::server {

namespace {

class Refusal final : public grpc::ServerGenericBidiReactor {
 public:
  explicit Refusal(const absl::Status& status) { Finish(ToGrpcStatus(status)); }
  void OnDone() override { delete this; }
};

// Of "/service/method"; what has another form is all service.
CalledMethod Called(std::string_view path) {
  if (!path.empty() && path.front() == '/') path.remove_prefix(1);
  const size_t slash = path.find('/');
  if (slash == std::string_view::npos) return {.service = path, .name = ""};
  return {.service = path.substr(0, slash), .name = path.substr(slash + 1)};
}

}  // namespace

grpc::ServerGenericBidiReactor* UnknownMethodRpc::CreateReactor(
    grpc::GenericCallbackServerContext* context) {
  const absl::Status admitted = gate_.Admit(Called(context->method()), *context).status();
  if (!admitted.ok()) return new Refusal(admitted);
  return new Refusal(
      MakeError(absl::StatusCode::kUnimplemented,
                Quoted(context->method()) + " is not a method of this server",
                {.reason = "METHOD_UNKNOWN", .metadata = {{"method", Quoted(context->method())}}}));
}

}  // namespace stepcast::server
