// AdminService: what the server is and does, and how much it says.
#pragma once

#include <grpcpp/impl/service_type.h>

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>

#include "server/rpc/call_environment.h"

namespace stepcast::server {

// As LogLevel of the contract, whose numbers these are.
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
  ServerDescription description;
  std::function<WireLogLevel(WireLogLevel)>
      set_log_level;  // returns the one before. Threads: called by any
};

// Borrows the call environment.
std::unique_ptr<grpc::Service> MakeAdminService(AdminEnvironment admin,
                                                const CallEnvironment& environment);

}  // namespace stepcast::server
