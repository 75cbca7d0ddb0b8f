// A search over orders of downloads with somebody else as judge.
//
// Meaning: with few downloads every order is tried; else a walk over the orders by moving a
// download, swapping two or moving a few neighbours, kept where it is no worse, begun anew from the
// best order so far where it no longer gains anything (iterated local search: Lourenco, Martin,
// Stutzle, "Iterated local search", Handbook of Metaheuristics, 2003). Never worse than the orders
// it starts from. Threads: a pure function of its arguments and of what the judge answers.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"

#include "core/base/stop_check.h"
#include "core/base/time.h"

namespace stepcast {

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

}  // namespace stepcast
