// The admission control of a job pool: whether it takes one more job, and the error where it does
// not.
//
// Threads: pure functions of their arguments.
#pragma once

#include <cstddef>
#include <cstdint>
#include <list>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>

#include "absl/status/status.h"

#include "server/base/mutex.h"

namespace stepcast::server {

// The ticket of a job: the client who wants it, and what is expected of it.
struct JobTicket {
  std::string client;           // jobs of different clients take turns
  std::string method;           // of the job, for listings
  std::string request_id;       // the same
  double expected_seconds = 0;  // on one thread; 0: nothing is known
  bool is_least = false;        // it has not been read, and will compute no less
  std::optional<int64_t>
      deadline_ns;  // on the clock's monotonic time: nobody wants it any more from then on
  std::optional<int64_t> end_ns;  // the same: if it still waits then, it is called with
                                  // DEADLINE_EXCEEDED, so that its error arrives in time
};

// A job as a listing shows it.
struct JobListing {
  JobTicket ticket;
  bool is_running = false;
  double age_seconds = 0;  // since it was submitted
};

// The expected time of a job that comes without one.
inline constexpr double kUnknownJobSeconds = 0.01;

struct AdmissionLimits {
  size_t queue_max = 64;
  double queue_seconds_max = 0;  // of expected work that waits, on one thread; 0: no bound
  const char* queue_max_name = "queue_max";  // of the setting, for errors
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

// RESOURCE_EXHAUSTED, reason QUEUE_FULL, with the limit on the number as quota subject, and
// RetryInfo: when half of the queue will have been served, or what runs where nothing waits.
absl::Status QueueFull(const PoolLoad& load, const AdmissionLimits& limits, const std::string& why);

// OK, or QueueFull, of the limit that is reached. A single job is taken however long it is expected
// to take.
absl::Status CheckRoom(const JobTicket& ticket, const PoolLoad& load,
                       const AdmissionLimits& limits);

// OK, or, where the job's deadline will very probably have passed before it is done:
// RESOURCE_EXHAUSTED, reason DEADLINE_UNREACHABLE, with RetryInfo, where the wait is to blame;
// DEADLINE_EXCEEDED, same reason, where the job alone is expected to take four times as long.
// Behind others a job may use four fifths of the time it has left, by expectation: one that fails
// at the end has taken the time of one that would not have.
absl::Status CheckDeadline(const JobTicket& ticket, const PoolLoad& load);

// A cost model: the time that work takes, learned from work that was done as an exponential moving
// average.
//
// Work has a size, in any unit, and a kind.
// The time of a unit is learned: of each kind, and of each group of kinds for those not yet seen.
// A new observation counts a quarter, so a few are enough to follow a machine that has become
// slower.
// Remembers the latest kMaxKinds kinds.
// Threads: safe.
class CostModel {
 public:
  static constexpr size_t kMaxKinds = 1024;
  static constexpr double kWeight = 0.25;  // of a new observation

  struct Work {
    std::string group;
    std::string kind;
    double size = 0;  // REQUIRES: finite, not negative
  };

  // 0: neither the kind nor its group has been seen.
  double ExpectedSeconds(const Work& work) const;
  // A size of 0 teaches nothing.
  void Observe(const Work& work, double seconds);

 private:
  using Unit = std::pair<std::string, double>;  // key and seconds
  using Units = std::list<Unit>;

  static std::string KeyOf(const Work& work) { return work.group + "\n" + work.kind; }
  void Learn(const std::string& key, double unit_seconds) STEPCAST_REQUIRES(mutex_);

  mutable Mutex mutex_;
  Units units_ STEPCAST_GUARDED_BY(mutex_);  // the one learned last first
  std::unordered_map<std::string, Units::iterator> by_key_ STEPCAST_GUARDED_BY(mutex_);
};

}  // namespace stepcast::server
