// The environment of calls, and the budget of bytes that they share.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

#include "core/base/error.h"
#include "server/base/bounded_cache.h"
#include "server/base/clock.h"
#include "server/handlers/engine_run.h"
#include "server/jobs/job_admission.h"
#include "server/jobs/job_pool.h"
#include "server/metrics/call_metrics.h"
#include "server/rpc/call_gate.h"

namespace stepcast::server {

// The bytes of all requests that the server holds at one time, and their limit.
//
// Each request is bounded by itself; this bounds their sum, so that many large ones together cannot
// exhaust the memory. Threads: safe, without locks.
class ByteBudget {
 public:
  explicit ByteBudget(int64_t max_bytes) : max_bytes_(max_bytes) {}

  // From now on; what is held already is held.
  void SetMax(int64_t max_bytes) { max_bytes_ = max_bytes; }
  int64_t max() const { return max_bytes_; }

  // A part of the budget; gives it back when destroyed. One owner, no threads.
  class Share {
   public:
    explicit Share(ByteBudget& budget) : budget_(budget) {}
    ~Share() { Release(); }
    Share(const Share&) = delete;
    Share& operator=(const Share&) = delete;

    // RESOURCE_EXHAUSTED, reason MEMORY_EXHAUSTED, with RetryInfo and the limit as quota subject,
    // if `bytes` more are not there.
    absl::Status Add(int64_t bytes) {
      const int64_t max_bytes = budget_.max_bytes_;
      const int64_t now = budget_.bytes_.fetch_add(bytes) + bytes;
      if (now <= max_bytes) {
        bytes_ += bytes;
        return absl::OkStatus();
      }
      budget_.bytes_.fetch_sub(bytes);
      return MakeError(
          absl::StatusCode::kResourceExhausted,
          absl::StrCat("the requests under way hold the ", max_bytes, " bytes there are for them"),
          {.reason = "MEMORY_EXHAUSTED",
           .metadata = {{"max_pending_bytes", absl::StrCat(max_bytes)}},
           .retry_delay_ms = kRetryDelayMs,
           .quota_subject = "max_pending_bytes"});
    }
    void Release() {
      budget_.bytes_.fetch_sub(bytes_);
      bytes_ = 0;
    }
    int64_t bytes() const { return bytes_; }

   private:
    ByteBudget& budget_;
    int64_t bytes_ = 0;
  };

 private:
  std::atomic<int64_t> max_bytes_;
  std::atomic<int64_t> bytes_{0};
};

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

// The environment of calls: all that every call needs of its server.
//
// Lifetime: borrowed by every call; whatever it refers to outlives the last one.
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
