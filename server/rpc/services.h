// The services of the server over gRPC, each of which parses, hands to a handler and writes the
// reply.
#pragma once

#include <grpcpp/generic/async_generic_service.h>
#include <grpcpp/impl/service_type.h>

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "server/handlers/operation_handler.h"
#include "server/handlers/prediction_handler.h"
#include "server/handlers/profile_handler.h"
#include "server/rpc/call_environment.h"
#include "server/rpc/call_gate.h"
#include "server/rpc/operations_rpc.h"

namespace stepcast::server {

// The environment of calls about long-running operations: what they need beside that of every call.
//
// Lifetime: borrowed by every call; whatever it refers to outlives the last one.
struct OperationEnvironment {
  const CallEnvironment& calls;
  const OperationHandler& handler;
  OperationWaiters& waiters;
  std::function<void()> started;    // one is queued
  std::function<void()> cancelled;  // one that runs may have to stop
  std::function<void()> waits;      // a call waits
  int64_t max_job_bytes = 0;
};

// ProfileService over gRPC: parses, hands to the handler, writes the reply. Borrows both.
std::unique_ptr<grpc::Service> MakeProfileService(const ProfileHandler& handler,
                                                  const CallEnvironment& environment);

// PredictionService over gRPC: parses, has the handler check the request on the pool for the store,
// and compute on the one for simulations. Borrows both.
std::unique_ptr<grpc::Service> MakePredictionService(const PredictionHandler& handler,
                                                     const CallEnvironment& environment);

// JobService over gRPC: checks that a request is one, and leaves it in the store of operations.
// Borrows the environment.
std::unique_ptr<grpc::Service> MakeJobService(const OperationEnvironment& environment);

// google.longrunning.Operations over gRPC: tells of operations, waits for them, cancels and deletes
// them. Borrows the environment.
std::unique_ptr<grpc::Service> MakeOperationsService(const OperationEnvironment& environment);

// The contract's LogLevel, whose numbers these are.
enum class WireLogLevel : int8_t {
  kUnspecified = 0,
  kDebug = 1,
  kInfo = 2,
  kWarning = 3,
  kError = 4,
  kOff = 5
};

struct ServerDescription {
  std::string version;
  std::string engine_version;
  std::string replica;
  int64_t start_time_ns = 0;  // since the Unix epoch
  std::string store;
  std::map<std::string, std::string> settings;  // without secrets
};

struct AdminEnvironment {
  std::function<ServerDescription()> describe;  // as it is now. Threads: called by any, as the next
  std::function<WireLogLevel(WireLogLevel)>
      set_log_level;  // returns the one before. Threads: called by any, as the next
  std::function<std::vector<JobListing>()> long_running;  // what operations compute here
};

// AdminService: what the server is and does, and how much it says. Borrows the call environment.
std::unique_ptr<grpc::Service> MakeAdminService(AdminEnvironment admin,
                                                const CallEnvironment& environment);

// The standard health service, grpc.health.v1.Health.
//
// An own implementation, because reflection cannot describe the one inside gRPC 1.51.
// Threads: safe.
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

// The reflection service, grpc.reflection.v1 and v1alpha, whose messages are the same bytes.
//
// An own implementation, because the one inside gRPC 1.51 answers everybody: this one asks the
// gate.
class ReflectionRpc {
 public:
  // Lists these services. Borrows the gate.
  ReflectionRpc(CallGate& gate, const std::vector<std::string>& services);
  ~ReflectionRpc();

  // Both to be registered; they live as long as this.
  grpc::Service& v1();
  grpc::Service& v1alpha();

 private:
  class Parts;

  std::unique_ptr<Parts> parts_;
};

// The answer to methods there are not: UNIMPLEMENTED with details, as every other error has them,
// for those whom the gate admits.
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
