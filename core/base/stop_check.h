// The question put to whoever waits for a long computation: go on, or stop?
#pragma once

#include <cstdint>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"

namespace stepcast {

// OK: go on. Anything else: stop and return it (CANCELLED, DEADLINE_EXCEEDED). TimeBudgetSpent():
// stop, and answer with what there is.
//
// Called every kStopCheckInterval units of work, on each thread that computes, perhaps by several
// at once, so it may look at a clock or an atomic but must not block. The engine's unit is a
// completed chunk, so the interval is well under a millisecond.
using StopCheck = absl::FunctionRef<absl::Status()>;

inline constexpr int kStopCheckInterval = 4096;

// DEADLINE_EXCEEDED, reason TIME_BUDGET_SPENT: the caller wants the best answer so far; an error
// only where there is none yet.
absl::Status TimeBudgetSpent();
bool IsTimeBudgetSpent(const absl::Status& status);

// Never stops.
inline absl::Status NeverStop() { return absl::OkStatus(); }

// A stop check that is asked once in kStopCheckInterval units of work, and remembers a refusal.
// Threads: none.
class PacedStopCheck {
 public:
  explicit PacedStopCheck(StopCheck stop) : stop_(stop) {}

  // False from the refusal on.
  bool GoesOn(int64_t work) {
    done_ += work;
    if (done_ >= kStopCheckInterval && status_.ok()) {
      done_ = 0;
      status_ = stop_();
    }
    return status_.ok();
  }
  // OK, or the refusal.
  const absl::Status& status() const { return status_; }

 private:
  const StopCheck stop_;
  int64_t done_ = 0;
  absl::Status status_;
};

}  // namespace stepcast
