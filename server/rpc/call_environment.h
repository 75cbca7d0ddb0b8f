// What every call needs of its server.
//
// Lifetime: borrowed by every call; whatever it refers to outlives the last one.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "absl/status/status.h"

#include "server/base/bounded_cache.h"
#include "server/base/clock.h"
#include "server/handlers/sharing_observer.h"
#include "server/jobs/job_pool.h"
#include "server/rpc/byte_budget.h"
#include "server/rpc/call_gate.h"

namespace stepcast::server {

// Told of calls that failed for a reason that is the server's own. Threads: called by any.
class FailureObserver {
 public:
  virtual ~FailureObserver() = default;
  virtual void OnFailure(std::string_view method, const absl::Status& status) = 0;
};

struct CallEnvironment {
  CallGate& gate;
  JobPool& store_jobs;       // what may block on the store
  JobPool& simulation_jobs;  // what computes for long
  ByteBudget& budget;
  const Clock& clock;
  FailureObserver& failures;
  SharingObserver& sharing;
  CacheObserver* answer_cache = nullptr;  // may be null
  int64_t max_message_bytes = 0;
  int64_t max_profile_bytes = 0;
  int64_t max_import_bytes = 0;
  std::string spool_directory;  // for imports that are too large for memory
  double max_job_seconds = 0;
  int64_t max_answer_cache_bytes = 0;
};

}  // namespace stepcast::server
