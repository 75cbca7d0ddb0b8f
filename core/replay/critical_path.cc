#include "core/replay/critical_path.h"

#include <algorithm>
#include <cassert>
#include <cstddef>
#include <utility>

#include "core/base/index.h"
#include "core/base/stop_check.h"

namespace stepcast {

namespace {

// From the last operation back to the first instant.
class BackwardWalk {
 public:
  BackwardWalk(const Execution& execution, CriticalPath& path, PacedStopCheck& pace)
      : execution_(execution), path_(path), pace_(pace), seen_(execution.operations.size(), 0) {}

  void Go() {
    ExecutedIndex at = LastOperation();
    Instant end = path_.end;
    while (at >= 0 && end > path_.begin && pace_.GoesOn(1)) {
      seen_[Index(at)] = 1;
      const ExecutedOperation& operation = execution_.operations[Index(at)];
      if (operation.end < end) {
        Add(PathKind::kGap, -1, -1, operation.end, end);
        end = std::max(operation.end, path_.begin);
      }
      AddOperation(at, operation, end);
      end = std::min(end, operation.start);
      at = Before(at);
    }
    if (end > path_.begin) Add(PathKind::kGap, -1, -1, path_.begin, end);
    std::reverse(path_.segments.begin(), path_.segments.end());
  }

 private:
  ExecutedIndex LastOperation() {
    ExecutedIndex last = 0;
    for (size_t i = 1; i < execution_.operations.size() && pace_.GoesOn(1); ++i) {
      if (execution_.operations[i].end > execution_.operations[Index(last)].end)
        last = static_cast<ExecutedIndex>(i);
    }
    return last;
  }

  void Add(PathKind kind, int32_t worker, ExecutedIndex operation, Instant begin, Instant end) {
    begin = std::max(begin, path_.begin);
    if (begin >= end) return;
    path_.segments.push_back(
        {.kind = kind, .worker = worker, .operation = operation, .begin = begin, .end = end});
    Of(path_.by_kind, kind) += end - begin;
    if (worker < 0) return;
    WorkerShare& share = path_.workers[Index(worker)];
    share.on_path += end - begin;
    if (kind == PathKind::kWaiting) share.waited_for += end - begin;
  }

  // In two where all others have come to the next meeting in between.
  void AddOperation(ExecutedIndex index, const ExecutedOperation& operation, Instant end) {
    const int32_t worker = operation.is_joint ? -1 : operation.worker;
    const Instant start = std::min(operation.start, end);
    if (operation.kind != PathKind::kComputation || operation.worker != slowest_) {
      Add(operation.kind, worker, index, start, end);
      return;
    }
    const Instant from = std::clamp(waiting_from_, start, end);
    Add(PathKind::kWaiting, worker, index, from, end);
    Add(PathKind::kComputation, worker, index, start, from);
  }

  // That which it waited for the longest; -1: it began with the job.
  ExecutedIndex Before(ExecutedIndex index) {
    const ExecutedOperation& operation = execution_.operations[Index(index)];
    ExecutedIndex latest = -1;
    Instant latest_end{-1};
    const auto take = [&](ExecutedIndex candidate, Instant end) {
      if (end <= latest_end || (candidate >= 0 && seen_[Index(candidate)] != 0)) return false;
      latest = candidate;
      latest_end = end;
      return true;
    };
    for (const ExecutedIndex before : execution_.predecessors_of(index))
      take(before, execution_.operations[Index(before)].end);
    if (operation.meeting < 0) return latest;
    const std::vector<Arrival>& arrivals = execution_.meetings[Index(operation.meeting)];
    const Arrival* last = nullptr;
    for (const Arrival& arrival : arrivals) {
      if (take(arrival.operation, arrival.at)) last = &arrival;
    }
    slowest_ = -1;
    if (last == nullptr || arrivals.size() < 2) return latest;
    // The last but one may be here at the same time: then nobody waits.
    waiting_from_ = path_.begin;
    for (const Arrival& arrival : arrivals) {
      if (arrival.worker != last->worker) waiting_from_ = std::max(waiting_from_, arrival.at);
    }
    slowest_ = last->worker;
    return latest;
  }

  const Execution& execution_;
  CriticalPath& path_;
  PacedStopCheck& pace_;
  std::vector<uint8_t> seen_;
  // Meeting that the path came through last: who came last, and when all others were there.
  int32_t slowest_ = -1;
  Instant waiting_from_;
};

// A worker's own time, by what it does at each instant.
class WorkerTimes {
 public:
  WorkerTimes(const Execution& execution, PacedStopCheck& pace)
      : execution_(execution), pace_(pace), changes_(Index(execution.workers)) {
    for (const ExecutedOperation& operation : execution.operations) {
      if (!pace_.GoesOn(1)) return;
      AddStretch(operation.worker, operation.kind, operation.start, operation.end);
    }
    for (const std::vector<Arrival>& arrivals : execution.meetings) {
      if (!pace_.GoesOn(static_cast<int64_t>(arrivals.size()))) return;
      Instant last;
      for (const Arrival& arrival : arrivals) last = std::max(last, arrival.at);
      for (const Arrival& arrival : arrivals)
        AddStretch(arrival.worker, PathKind::kWaiting, arrival.at, last);
    }
  }

  TimeByKind Of(int32_t worker) {
    std::vector<Change>& changes = changes_[Index(worker)];
    TimeByKind times{};
    if (!PacedStableSort(
            changes, [](const Change& a, const Change& b) { return a.at < b.at; }, pace_)) {
      return times;
    }
    std::array<int32_t, kPathKinds> under_way{};
    Instant at = execution_.begins[Index(worker)];
    const Instant end = execution_.ends[Index(worker)];
    for (const Change& change : changes) {
      if (!pace_.GoesOn(1)) return times;
      const Instant now = std::clamp(change.at, at, end);
      stepcast::Of(times, Shown(under_way)) += now - at;
      at = now;
      under_way[static_cast<size_t>(change.kind)] += change.by;
    }
    stepcast::Of(times, Shown(under_way)) += end - at;
    return times;
  }

 private:
  struct Change {
    Instant at;
    PathKind kind = PathKind::kGap;
    int32_t by = 0;
  };

  void AddStretch(int32_t worker, PathKind kind, Instant begin, Instant end) {
    if (begin >= end) return;
    changes_[Index(worker)].push_back({.at = begin, .kind = kind, .by = 1});
    changes_[Index(worker)].push_back({.at = end, .kind = kind, .by = -1});
  }
  // The first kind of which something is under way.
  static PathKind Shown(const std::array<int32_t, kPathKinds>& under_way) {
    for (size_t kind = 0; kind < kPathKinds; ++kind) {
      if (under_way[kind] > 0) return static_cast<PathKind>(kind);
    }
    return PathKind::kGap;
  }

  const Execution& execution_;
  PacedStopCheck& pace_;
  std::vector<std::vector<Change>> changes_;  // by worker
};

int32_t StragglerOf(const CriticalPath& path) {
  int32_t slowest = -1;
  Span most;
  Span second;
  for (size_t worker = 0; worker < path.workers.size(); ++worker) {
    const Span waited_for = path.workers[worker].waited_for;
    if (waited_for > most) {
      second = std::exchange(most, waited_for);
      slowest = static_cast<int32_t>(worker);
    } else {
      second = std::max(second, waited_for);
    }
  }
  const bool stands_out =
      most.ticks / 2 >= second.ticks && most.ticks > 0 && most.ticks >= path.length().ticks / 100;
  return stands_out ? slowest : -1;
}

}  // namespace

Span Total(const TimeByKind& times) {
  Span total;
  for (const Span time : times) total += time;
  return total;
}

absl::StatusOr<CriticalPath> FindCriticalPath(const Execution& execution, StopCheck stop) {
  assert(!execution.operations.empty() && execution.warmup < execution.steps);
  CriticalPath path{.begin = *std::min_element(execution.begins.begin(), execution.begins.end()),
                    .end = *std::max_element(execution.ends.begin(), execution.ends.end()),
                    .workers = std::vector<WorkerShare>(Index(execution.workers))};
  PacedStopCheck pace(stop);
  BackwardWalk(execution, path, pace).Go();
  WorkerTimes times(execution, pace);
  for (int32_t worker = 0; worker < execution.workers; ++worker)
    path.workers[Index(worker)].own = times.Of(worker);
  if (!pace.status().ok()) return pace.status();
  path.straggler = StragglerOf(path);
  return path;
}

}  // namespace stepcast
