// The standard health service, grpc.health.v1.Health.
//
// An own implementation, because reflection cannot describe the one inside gRPC 1.51.
// Threads: safe.
#pragma once

#include <grpcpp/impl/service_type.h>

#include <memory>
#include <string>
#include <vector>

namespace stepcast::server {

class HealthRpc {
 public:
  // Answers for these services, and for "", the server as a whole. Not serving until it is told to.
  explicit HealthRpc(const std::vector<std::string>& services);
  ~HealthRpc();

  // To be registered; lives as long as this.
  grpc::Service& service();

  // All services together; whoever watches is told.
  void SetServing(bool serving);
  // Ends every Watch, now and later, with UNAVAILABLE: they would outlast a graceful stop
  // otherwise.
  void EndWatches();

 private:
  class Service;
  std::unique_ptr<Service> service_;
};

}  // namespace stepcast::server
