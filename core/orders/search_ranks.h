// The ranks that a search over the orders of the downloads finds, with the simulated step as judge.
//
// Threads: a pure function of its arguments; any number at once.
#pragma once

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"

#include "core/base/stop_check.h"
#include "core/model/profile.h"
#include "core/model/scenario.h"
#include "core/orders/least_step.h"

namespace stepcast {

// The limits of a search that nothing stops earlier: operations that it simulates at most, a second
// or so, and orders that it judges at most for each pair of downloads.
inline constexpr int64_t kMaxSearchedOperations = 100'000'000;
inline constexpr int64_t kMaxOrdersPerPair = 300;
// Operations for each second of a time budget. There is no clock here: this takes less than half a
// second.
inline constexpr double kSearchedOperationsPerSecond = 1e7;
// Random orders that the search starts from, beside those of the other methods.
inline constexpr int32_t kRandomStarts = 20;

struct FoundRanks {
  std::vector<int32_t>
      ranks;  // see RunOptions; empty: no order of the downloads is better than enforcing none
  Span makespan;
  bool is_best = false;  // no order of the downloads makes a shorter step
};

struct SearchTask {
  Span lower_bound;  // LeastMakespanOf(step)
  uint64_t seed = 1;
  double time_budget_seconds =
      0;  // of all that is asked, 0: none; the search leaves about half of it
};

// Of the makespans of every method's order (DownloadRanks) and of those that the search sees, the
// shortest. The search asks `search_stop`, all else `stop`. Failure: what they return, but where
// `search_stop` says TimeBudgetSpent() the best order so far is the answer. REQUIRES: step was
// built from this profile and scenario.
absl::StatusOr<FoundRanks> SearchRanks(const Profile& profile, const Scenario& scenario,
                                       const LeastStep& step, const SearchTask& task,
                                       StopCheck stop, StopCheck search_stop);

// The lower bound of the makespan of every order of the downloads: the greater of Eq. 2 and
// LeastMakespan before the cut, with what follows it.
absl::StatusOr<Span> LeastMakespanOf(const LeastStep& step, StopCheck stop);

}  // namespace stepcast
