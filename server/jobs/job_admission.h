// The admission control of a job pool: whether it takes one more job, and the error where it does
// not.
//
// Threads: pure functions of their arguments.
#pragma once

#include <cstddef>
#include <cstdint>

#include "absl/status/status.h"

#include "server/jobs/job_ticket.h"

namespace stepcast::server {

// The expected time of a job that comes without one.
inline constexpr double kUnknownJobSeconds = 0.01;

struct AdmissionLimits {
  size_t queue_max = 64;
  double queue_seconds_max = 0;  // of expected work that waits, on one thread; 0: no bound
};

// The load of a pool before the new job.
struct PoolLoad {
  int64_t now_ns = 0;
  size_t threads = 1;
  size_t unfinished = 0;       // jobs that wait or run
  double queue_seconds = 0;    // of those that wait, on one thread
  double running_seconds = 0;  // still needed by those that run, as expected, on one thread
  double ahead_seconds = 0;    // of those that wait and would leave before the new job
};

// From now until a thread takes the new job.
double ExpectedWaitSeconds(const PoolLoad& load);

// OK, or RESOURCE_EXHAUSTED, reason QUEUE_FULL, with the limit as quota subject, and RetryInfo:
// when half of the queue will have been served. A single job is taken however long it is expected
// to take.
absl::Status CheckRoom(const JobTicket& ticket, const PoolLoad& load,
                       const AdmissionLimits& limits);

// OK, or, where the job's deadline will very probably have passed before it is done:
// RESOURCE_EXHAUSTED, reason DEADLINE_UNREACHABLE, with RetryInfo, where the wait is to blame;
// DEADLINE_EXCEEDED, same reason, where nothing waits and the job alone is expected to take four
// times as long. Behind others a job may use four fifths of the time it has left, by expectation:
// one that fails at the end has taken the time of one that would not have.
absl::Status CheckDeadline(const JobTicket& ticket, const PoolLoad& load);

}  // namespace stepcast::server
