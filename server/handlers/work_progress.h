// The progress of a computation, and the error for whoever gave up on it: what was asked, how long
// it would take here, and what to do.
//
// What is done is counted twice: in operations, by the runs that have ended, and in pieces of
// kStopCheckInterval units, by the questions whether to go on, of which the fast engines ask one in
// up to eight times as many operations.
// The larger number counts, so early on the time may be overestimated.
// Threads: safe.
#pragma once

#include <atomic>
#include <cstdint>

#include "absl/status/status.h"

#include "server/base/clock.h"
#include "server/handlers/expected_work.h"

namespace stepcast::server {

// The remedy that is offered instead of waiting.
enum class Remedy : uint8_t { kStartAJob, kAskForLess };

// DEADLINE_EXCEEDED with what was asked added to its message and, as `expected_operations`, to its
// metadata; anything else, and what is about no simulation, as it is.
absl::Status SayWhatWasAsked(const absl::Status& status, const ExpectedWork& work, Remedy remedy);

class WorkProgress {
 public:
  // Its time counts from here. The clock outlives it.
  WorkProgress(ExpectedWork work, const Clock& clock, Remedy remedy);

  // Another piece is done.
  void Count();
  // As SayWhatWasAsked; with `simulated_operations`, `elapsed_seconds` and `expected_seconds` of
  // all that was asked, once something is done.
  absl::Status Explain(const absl::Status& status) const;

 private:
  const ExpectedWork work_;
  const Clock& clock_;
  const Remedy remedy_;
  const int64_t start_ns_;
  std::atomic<int64_t> pieces_{0};
};

}  // namespace stepcast::server
