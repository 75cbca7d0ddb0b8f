// Singleflight, as Go calls it: one computation for all who ask the same at the same time.
//
// A waiter waits on a flight. The first one on it has to see that it is computed and landed, and
// its plan, which says how, stays with the flight for all who come. A flight goes on while anyone
// waits on it, so one caller's deadline or cancellation never takes another's answer. Knows nothing
// of prediction. Threads: safe; waiters are told outside every lock, each exactly once. Lifetime: a
// waiter is borrowed until it is told; Flights must outlive its flights.
#pragma once

#include <memory>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"

#include "core/base/error.h"
#include "server/base/mutex.h"

namespace stepcast::server {

// A caller that waits for a Result.
template <typename Result>
class Waiter {
 public:
  // OK: goes on waiting. Any thread may ask, until the waiter is told.
  virtual absl::Status Check() const = 0;
  // The flight has landed, or the waiter's own Check has failed. `is_first`: of those still
  // waiting, it is the one that has waited the longest.
  virtual void Tell(const absl::StatusOr<Result>& result, bool is_first) = 0;

 protected:
  ~Waiter() = default;
};

template <typename Result, typename Plan>
class Flights {
 public:
  class Flight {
   public:
    Flight(Flights& flights, std::string key, std::shared_ptr<Plan> plan)
        : flights_(flights), key_(std::move(key)), plan_(std::move(plan)) {}

    Plan& plan() const { return *plan_; }

    // Tells those whose own check fails, what `explain` makes of that, and lets them go. CANCELLED
    // once nobody is left; then nobody comes any more.
    absl::Status Check(absl::FunctionRef<absl::Status(const absl::Status&)> explain = AsItIs) {
      std::vector<std::pair<Waiter<Result>*, absl::Status>> gone;
      bool is_empty = false;
      {
        MutexLock lock(flights_.mutex_);
        std::erase_if(waiters_, [&](Waiter<Result>* waiter) {
          absl::Status status = waiter->Check();
          if (status.ok()) return false;
          gone.emplace_back(waiter, std::move(status));
          return true;
        });
        is_empty = waiters_.empty();
        if (is_empty) flights_.Close(*this);
      }
      for (const auto& [waiter, status] : gone) waiter->Tell(explain(status), false);
      if (!is_empty) return absl::OkStatus();
      return MakeError(absl::StatusCode::kCancelled, "nobody waits for the answer any more",
                       {.reason = "CANCELLED"});
    }

    // Tells all who wait. Call once.
    void Land(const absl::StatusOr<Result>& result) {
      std::vector<Waiter<Result>*> waiters;
      {
        MutexLock lock(flights_.mutex_);
        flights_.Close(*this);
        waiters.swap(waiters_);
      }
      bool is_first = true;
      for (Waiter<Result>* waiter : waiters) waiter->Tell(result, std::exchange(is_first, false));
    }

   private:
    friend class Flights;

    static absl::Status AsItIs(const absl::Status& status) { return status; }

    Flights& flights_;
    const std::string key_;
    const std::shared_ptr<Plan> plan_;
    std::vector<Waiter<Result>*> waiters_;  // guarded by flights_.mutex_
    bool is_closed_ = false;                // the same
  };

  struct Boarding {
    std::shared_ptr<Flight> flight;
    bool is_first = false;  // it was not there, and has the plan: whoever called has to land it
  };
  // The waiter may be told, and gone, as soon as a flight is there already.
  Boarding Board(const std::string& key, Waiter<Result>& waiter, std::shared_ptr<Plan> plan) {
    MutexLock lock(mutex_);
    std::shared_ptr<Flight>& flight = by_key_[key];
    const bool is_first = flight == nullptr;
    if (is_first) flight = std::make_shared<Flight>(*this, key, std::move(plan));
    flight->waiters_.push_back(&waiter);
    return {.flight = flight, .is_first = is_first};
  }

 private:
  // Nobody boards it any more.
  void Close(Flight& flight) STEPCAST_REQUIRES(mutex_) {
    if (!std::exchange(flight.is_closed_, true)) by_key_.erase(flight.key_);
  }

  Mutex mutex_;
  std::unordered_map<std::string, std::shared_ptr<Flight>> by_key_ STEPCAST_GUARDED_BY(mutex_);
};

}  // namespace stepcast::server
