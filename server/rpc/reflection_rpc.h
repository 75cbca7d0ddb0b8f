// The reflection service, grpc.reflection.v1 and v1alpha, whose messages are the same bytes.
//
// An own implementation, because the one inside gRPC 1.51 answers everybody: this one asks the
// gate.
#pragma once

#include <grpcpp/impl/service_type.h>

#include <memory>
#include <string>
#include <vector>

#include "server/rpc/call_gate.h"

namespace stepcast::server {

class ReflectionRpc {
 public:
  // Lists these services. Borrows the gate.
  ReflectionRpc(CallGate& gate, const std::vector<std::string>& services);
  ~ReflectionRpc();

  // Both to be registered; they live as long as this.
  grpc::Service& v1();
  grpc::Service& v1alpha();

 private:
  class V1;
  class V1Alpha;

  const std::vector<std::string> services_;
  std::unique_ptr<V1> v1_;
  std::unique_ptr<V1Alpha> v1alpha_;
};

}  // namespace stepcast::server
