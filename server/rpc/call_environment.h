// The environment of calls: all that every call needs of its server.
//
// Lifetime: borrowed by every call; whatever it refers to outlives the last one.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "absl/status/status.h"

#include "server/base/bounded_cache.h"
#include "server/base/clock.h"
#include "server/handlers/simulation_observer.h"
#include "server/jobs/cost_model.h"
#include "server/jobs/job_pool.h"
#include "server/metrics/call_metrics.h"
#include "server/rpc/byte_budget.h"
#include "server/rpc/call_gate.h"

namespace stepcast::server {

// A code that says that something is wrong here, not with the request.
bool IsServersFault(absl::StatusCode code);

// The labels of a call in a log.
struct CallLabels {
  std::string_view method;
  std::string client;
  std::string request_id;  // of its x-request-id; empty: it has none
  std::string trace_id;    // of its traceparent (W3C Trace Context); the same
};

// An observer of the ends of calls.
// Threads: called by any.
class CallObserver {
 public:
  virtual ~CallObserver() = default;
  // True if it wants to be told of every call; else only of those that failed for a reason that is
  // the server's own.
  virtual bool WantsEveryCall() const = 0;
  virtual void OnEnd(const CallLabels& call, const absl::Status& status) = 0;
};

struct CallEnvironment {
  CallGate& gate;
  CostModel& costs;          // of simulations
  JobPool& store_jobs;       // that may block on the store
  JobPool& simulation_jobs;  // that compute for long
  ByteBudget& budget;
  const Clock& clock;
  CallObserver& observer;
  RejectionMetrics& rejections;
  SharingObserver& sharing;
  CacheObserver* answer_cache = nullptr;   // may be null
  CacheObserver* request_cache = nullptr;  // the same
  int64_t max_message_bytes = 0;
  int64_t max_profile_bytes = 0;
  int64_t max_import_bytes = 0;
  std::string spool_directory;  // for imports that are too large for memory
  double max_job_seconds = 0;
  int64_t max_answer_cache_bytes = 0;
};

}  // namespace stepcast::server
