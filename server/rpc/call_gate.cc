#include "server/rpc/call_gate.h"

namespace stepcast::server {

std::string ClientOf(const Caller* caller, const grpc::CallbackServerContext& context) {
  if (caller != nullptr) return caller->name;
  // ipv4:127.0.0.1:50000, ipv6:%5B::1%5D:50000, or unix:... without a port.
  const std::string peer = context.peer();
  return peer.compare(0, 3, "ipv") == 0 ? peer.substr(0, peer.rfind(':')) : peer;
}

}  // namespace stepcast::server
