// The time limit of one computation.
//
// Threads: safe.
#pragma once

#include <cstdint>

#include "absl/status/status.h"

#include "server/base/clock.h"
#include "server/rpc/call_environment.h"

namespace stepcast::server {

class JobLimit {
 public:
  // The time counts from here.
  explicit JobLimit(const CallEnvironment& environment);

  // OK: go on. DEADLINE_EXCEEDED, reason JOB_TOO_LONG, once the job has taken max_job_seconds.
  absl::Status Check() const;

 private:
  const Clock* clock_;
  double max_seconds_;
  int64_t end_ns_;
};

}  // namespace stepcast::server
