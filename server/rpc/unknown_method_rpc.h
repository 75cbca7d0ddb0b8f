// The answer to methods there are not: UNIMPLEMENTED with details, as every other error has them.
#pragma once

#include <grpcpp/generic/async_generic_service.h>

namespace stepcast::server {

class UnknownMethodRpc final : public grpc::CallbackGenericService {
 public:
  grpc::ServerGenericBidiReactor* CreateReactor(grpc::GenericCallbackServerContext* context) override;
};

}  // namespace stepcast::server
