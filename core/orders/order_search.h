// The search for the order of downloads with the shortest step.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"

#include "core/base/stop_check.h"
#include "core/base/time.h"
#include "core/model/profile.h"
#include "core/model/scenario.h"
#include "core/orders/least_step.h"

namespace stepcast {

// A search over orders of downloads with somebody else as judge.
//
// Meaning: with few downloads every order is tried; else a walk over the orders by moving a
// download, swapping two or moving a few neighbours, kept where it is no worse, begun anew from the
// best order so far where it no longer gains anything (iterated local search: Lourenco, Martin,
// Stutzle, "Iterated local search", Handbook of Metaheuristics, 2003). Never worse than the orders
// it starts from. Threads: a pure function of its arguments and of what the judge answers.

// The objective of the search: the length of a step with the downloads, numbered from 0, in this
// order.
// May answer kNever as soon as it knows that the step takes longer than `limit`.
using OrderJudge = absl::FunctionRef<Span(std::span<const int32_t> order, Span limit)>;

struct OrderSearchOptions {
  int64_t evaluations_max = 0;     // judgements beyond those of the starts
  int64_t cost_of_evaluation = 1;  // in units of StopCheck
  Span lower_bound;                // of every order: the search ends where it is reached
  uint64_t seed = 1;
};

struct FoundOrder {
  std::vector<int32_t> order;
  Span makespan;
  int64_t evaluations = 0;
  bool is_best = false;  // no order is shorter: the bound is reached, or all were tried
};

// With so many downloads or fewer every order is tried, if the evaluations suffice.
inline constexpr size_t kMaxDownloadsToTryAll = 8;

// The shortest order found, the first of several. Failure: what `stop` returns, but
// TimeBudgetSpent() only ends the search, once all starts were judged. REQUIRES: at least one
// start; each holds every download once.
absl::StatusOr<FoundOrder> SearchOrder(const std::vector<std::vector<int32_t>>& starts,
                                       OrderJudge judge, const OrderSearchOptions& options,
                                       StopCheck stop);

// The ranks that a search over the orders of the downloads finds, with the simulated step as judge.
//
// Threads: a pure function of its arguments; any number at once.

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

// The shortest makespan of every method's order (DownloadRanks) and of those that the search
// sees. The search asks `search_stop`, all else `stop`. Failure: what they return, but where
// `search_stop` says TimeBudgetSpent() the best order so far is the answer. REQUIRES: step was
// built from this profile and scenario.
absl::StatusOr<FoundRanks> SearchRanks(const Profile& profile, const Scenario& scenario,
                                       const LeastStep& step, const SearchTask& task,
                                       StopCheck stop, StopCheck search_stop);

// The lower bound of the makespan of every order of the downloads: the greater of Eq. 2 and
// LeastMakespan before the cut, with what follows it.
absl::StatusOr<Span> LeastMakespanOf(const LeastStep& step, StopCheck stop);

}  // namespace stepcast
