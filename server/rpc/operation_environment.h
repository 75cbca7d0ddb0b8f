// The environment of calls about long-running operations: what they need beside that of every call.
//
// Lifetime: borrowed by every call; whatever it refers to outlives the last one.
#pragma once

#include <cstdint>
#include <functional>

#include "server/handlers/operation_handler.h"
#include "server/rpc/call_environment.h"
#include "server/rpc/operation_waiters.h"

namespace stepcast::server {

struct OperationEnvironment {
  const CallEnvironment& calls;
  const OperationHandler& handler;
  OperationWaiters& waiters;
  std::function<void()> started;    // one is queued
  std::function<void()> cancelled;  // one that runs may have to stop
  std::function<void()> waits;      // a call waits
  int64_t max_job_bytes = 0;
};

}  // namespace stepcast::server
