// The question put to whoever waits for a long computation: go on, or stop? And a sort that asks
// it.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

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

// Sorts as std::stable_sort does. False: `pace` told to stop, and the items are in any order. Cost:
// O(n log n); memory: as much again as the items.
template <typename Item, typename Less>
bool PacedStableSort(std::vector<Item>& items, Less less, PacedStopCheck& pace) {
  constexpr size_t kRun = 1024;
  const size_t size = items.size();
  using Difference = typename std::vector<Item>::difference_type;
  const auto at = [](std::vector<Item>& list, size_t i) {
    return list.begin() + static_cast<Difference>(i);
  };
  for (size_t begin = 0; begin < size; begin += kRun) {
    const size_t end = std::min(begin + kRun, size);
    std::stable_sort(at(items, begin), at(items, end), less);
    if (!pace.GoesOn(static_cast<int64_t>(kRun))) return false;
  }
  std::vector<Item> merged(size > kRun ? size : 0);
  for (size_t run = kRun; run < size; run *= 2) {
    for (size_t begin = 0; begin < size; begin += 2 * run) {
      const size_t middle = std::min(begin + run, size);
      const size_t end = std::min(middle + run, size);
      size_t a = begin;
      size_t b = middle;
      for (size_t to = begin; to < end; ++to) {
        const bool second = a == middle || (b < end && less(items[b], items[a]));
        merged[to] = std::move(items[second ? b++ : a++]);
        if (!pace.GoesOn(1)) return false;
      }
    }
    items.swap(merged);
  }
  return true;
}

}  // namespace stepcast
