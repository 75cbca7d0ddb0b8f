// A step on its way from a profile to a program: its computations and collectives, and what waits
// for what, as fusing, sharding and cutting rewrite them.
//
// Threads: none.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <queue>
#include <string_view>
#include <utility>
#include <vector>

#include "core/base/index.h"
#include "core/base/time.h"
#include "core/model/profile.h"

namespace stepcast {

// A part of some time that a worker computes for: the stretch from begin / whole to end / whole.
struct TimePart {
  std::shared_ptr<const std::vector<int64_t>> whole_ns;  // by recorded step
  int64_t begin = 0;
  int64_t end = 0;
  int64_t whole = 1;

  // In the recorded step `at`.
  Span Length(size_t at) const {
    // A product of times and bytes is beyond an int64; rounded alike, all parts come to the whole.
    const auto until = [&](int64_t place) {
      return std::llround(static_cast<double>((*whole_ns)[at]) *
                          (static_cast<double>(place) / static_cast<double>(whole)));
    };
    return Nanoseconds(until(end) - until(begin));
  }
};

// An operation of a plan; the graph order is the order of the list.
struct PlannedOperation {
  int32_t source = 0;                          // of the profile; of a collective, its last member's
  Collective kind = Collective::kUnspecified;  // unspecified: computation
  bool is_gradient = false;                    // an all-reduce that others may be fused with
  int64_t bytes = 0;
  int32_t stream = 0;
  std::vector<int32_t> waiting_for;  // of the plan
  std::vector<int32_t> members;
  int32_t threads = 0;           // of its group; 0: it has none of its own
  int32_t rank = 0;              // of a collective that goes by priority: the lowest first
  std::optional<TimePart> part;  // of a computation that is not as long as its source
};
using StepPlan = std::vector<PlannedOperation>;

// Duration of a computation in that recorded step.
inline Span DurationOf(const PlannedOperation& operation, const RecordedStep& step, size_t at) {
  if (operation.part.has_value()) return operation.part->Length(at);
  const auto source = Index(operation.source);
  return Nanoseconds(step.end_ns[source] - step.start_ns[source]);
}

inline void SortUnique(std::vector<int32_t>& list) {
  std::sort(list.begin(), list.end());
  list.erase(std::unique(list.begin(), list.end()), list.end());
}

// The operations of a profile as they stand; what a worker uploads is all-reduced, and a collective
// of devices inside a worker is a computation, as long as recorded, on a stream of its group's own.
inline StepPlan PlanOf(const Profile& profile) {
  int32_t streams = 0;
  for (const Operation& operation : profile.operations())
    streams = std::max(streams, operation.stream + 1);
  std::map<std::string_view, int32_t> stream_of_group;
  StepPlan plan;
  plan.reserve(profile.operations().size());
  for (size_t i = 0; i < profile.operations().size(); ++i) {
    const Operation& operation = profile.operations()[i];
    const auto source = static_cast<int32_t>(i);
    if (operation.resource == Resource::kCollective && !IsAcrossWorkers(operation)) {
      const int32_t own = streams + static_cast<int32_t>(stream_of_group.size());
      const int32_t stream = stream_of_group.try_emplace(operation.group, own).first->second;
      plan.push_back({.source = source,
                      .stream = stream,
                      .waiting_for = operation.waiting_for,
                      .members = {source}});
      continue;
    }
    plan.push_back({.source = source,
                    .kind = operation.resource == Resource::kUplink ? Collective::kAllReduce
                                                                    : operation.collective,
                    .is_gradient = IsGradient(operation),
                    .bytes = operation.size_bytes,
                    .stream = operation.stream,
                    .waiting_for = operation.waiting_for,
                    .members = {source}});
  }
  return plan;
}

// Operations in an order that can run, each after what it waits for; of those that can be next, the
// first of the list.
template <typename Operations>
std::vector<int32_t> OrderThatCanRun(const Operations& operations) {
  std::vector<std::vector<int32_t>> dependents(operations.size());
  std::vector<size_t> pending(operations.size());
  std::priority_queue<int32_t, std::vector<int32_t>, std::greater<>> ready;
  for (size_t i = 0; i < operations.size(); ++i) {
    const auto at = static_cast<int32_t>(i);
    pending[i] = operations[i].waiting_for.size();
    if (pending[i] == 0) ready.push(at);
    for (const int32_t before : operations[i].waiting_for) dependents[Index(before)].push_back(at);
  }
  std::vector<int32_t> order;
  order.reserve(operations.size());
  while (!ready.empty()) {
    order.push_back(ready.top());
    ready.pop();
    for (const int32_t next : dependents[Index(order.back())]) {
      if (--pending[Index(next)] == 0) ready.push(next);
    }
  }
  return order;
}

// The all-reduces of gradients of a plan, in graph order.
inline std::vector<int32_t> AllReducesOf(const StepPlan& plan) {
  std::vector<int32_t> found;
  for (size_t i = 0; i < plan.size(); ++i) {
    if (plan[i].is_gradient) found.push_back(static_cast<int32_t>(i));
  }
  return found;
}

// Another plan made of one, operation by operation: what an operation became, or that it is gone
// and whoever waited for it waits for what it waited for.
class PlanRewriter {
 public:
  // The plan must outlive it.
  explicit PlanRewriter(const StepPlan& from) : from_(from), became_(from.size()) {}

  // Dependencies of `operation` are of the plan rewritten. Returns its index in the new plan.
  int32_t Append(PlannedOperation operation) {
    to_.push_back(std::move(operation));
    extra_.emplace_back();
    return static_cast<int32_t>(to_.size()) - 1;
  }
  // Whoever waits for `old` in the plan rewritten waits for `now`.
  void Became(int32_t old, int32_t now) { became_[Index(old)].push_back(now); }
  // `after` waits for `before`, both of the new plan.
  void Wait(int32_t after, int32_t before) { extra_[Index(after)].push_back(before); }

  // The dependencies of what is gone pass through. No operation comes to wait for itself.
  StepPlan Finish() && {
    for (size_t i = 0; i < to_.size(); ++i) {
      std::vector<int32_t> now = std::move(extra_[i]);
      std::vector<int32_t> left = std::move(to_[i].waiting_for);
      SortUnique(left);
      std::vector<uint8_t> seen;
      while (!left.empty()) {
        const int32_t old = left.back();
        left.pop_back();
        const std::vector<int32_t>& became = became_[Index(old)];
        for (const int32_t operation : became) {
          if (Index(operation) != i) now.push_back(operation);
        }
        if (!became.empty()) continue;
        if (seen.empty()) seen.resize(from_.size(), 0);
        if (std::exchange(seen[Index(old)], uint8_t{1}) != 0) continue;
        left.insert(left.end(), from_[Index(old)].waiting_for.begin(),
                    from_[Index(old)].waiting_for.end());
      }
      SortUnique(now);
      to_[i].waiting_for = std::move(now);
    }
    return std::move(to_);
  }

 private:
  const StepPlan& from_;
  std::vector<std::vector<int32_t>> became_;  // empty: gone
  StepPlan to_;
  std::vector<std::vector<int32_t>> extra_;  // dependencies, of the new plan
};

}  // namespace stepcast
