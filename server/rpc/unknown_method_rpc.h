// The answer to methods there are not: UNIMPLEMENTED with details, as every other error has them,
// for those whom the gate admits.
#pragma once

#include <grpcpp/generic/async_generic_service.h>

#include "server/rpc/call_gate.h"

namespace stepcast::server {

class UnknownMethodRpc final : public grpc::CallbackGenericService {
 public:
  // Borrows the gate.
  explicit UnknownMethodRpc(CallGate& gate) : gate_(gate) {}
  grpc::ServerGenericBidiReactor* CreateReactor(
      grpc::GenericCallbackServerContext* context) override;

 private:
  CallGate& gate_;
};

}  // namespace stepcast::server
