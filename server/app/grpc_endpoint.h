// The gRPC server proper: an address, limits, and the services and methods that it serves.
#pragma once

#include <grpcpp/channel.h>
#include <grpcpp/security/server_credentials.h>
#include <grpcpp/server.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

#include "server/app/server_options.h"
#include "server/base/clock.h"
#include "server/metrics/call_metrics.h"
#include "server/rpc/call_gate.h"
#include "server/rpc/services.h"

namespace stepcast::server {

// Every method the server answers, for its metrics. From the descriptors that are compiled in, so
// that a new method cannot be forgotten.
std::vector<MethodLabels> ServedMethods();

// The names of all services, for reflection; sorted.
std::vector<std::string> AllServices();

// The names of this service's own gRPC services, which health is reported for.
std::vector<std::string> ServedServices();

struct GrpcEndpointOptions {
  std::string address;
  std::shared_ptr<grpc::ServerCredentials> credentials;
  int64_t max_message_bytes = 0;
  ConnectionOptions connections;
  std::vector<grpc::Service*> services;  // borrowed
};

// The gRPC server proper: an address, limits, and the services it is given.
class GrpcEndpoint {
 public:
  // Serving when it returns. UNAVAILABLE, reason LISTEN_FAILED, if the address cannot be listened
  // on. Borrows gate, metrics and clock.
  static absl::StatusOr<std::unique_ptr<GrpcEndpoint>> Start(const GrpcEndpointOptions& options,
                                                             CallGate& gate, CallMetrics& metrics,
                                                             const Clock& clock);

  int port() const { return port_; }
  // A way to ask it from within the process, in clear and without a certificate, past the address.
  std::shared_ptr<grpc::Channel> InProcessChannel();
  // Refuses new calls, gives those in flight so long to finish, cancels the rest; returns when all
  // are over.
  void Shutdown(double timeout_seconds);

 private:
  explicit GrpcEndpoint(CallGate& gate) : unknown_methods_(gate) {}

  UnknownMethodRpc unknown_methods_;
  int port_ = 0;
  std::unique_ptr<grpc::Server> server_;
};

}  // namespace stepcast::server
