// The joint operations of a run: which may begin, which are under way, and when the next one ends.
//
// Threads: none. Cost: O(1) for an arrival and a begin, with cycles O(log n) for a begin, with
// priorities for an arrival; memory: some numbers a joint operation.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <utility>
#include <vector>

#include "core/base/time.h"
#include "core/engine/job_graph.h"
#include "core/engine/simulation.h"
#include "core/network/link_level.h"
#include "core/network/message_link.h"

namespace stepcast {

class JointSequence {
 public:
  // The job must outlive it.
  explicit JointSequence(const JobGraph& job)
      : joint_(job.joint),
        workers_(job.workers()),
        arrived_(job.joint.ops.size(), 0),
        times_(job.joint.ops.size() / (job.joint.in_pairs ? 2 : 1)),
        step_(times_.size()),
        ends_(Index(job.joint.concurrent), kEndOfTime),
        of_slot_(Index(job.joint.concurrent), 0),
        done_at_(Index(job.joint.concurrent), 0) {
    if (joint_.ops.empty()) return;
    position_of_.resize(Index(joint_.ops.back()) + 1, -1);
    for (size_t i = 0; i < joint_.ops.size(); ++i)
      position_of_[Index(joint_.ops[i])] = static_cast<int32_t>(i);
  }

  // All workers have done the same so far, and from now on one of them tells of all.
  void Merge() {
    for (int32_t& arrived : arrived_) arrived /= workers_;
    workers_ = 1;
  }

  // A worker begins a step.
  void OnStepBegin(Instant now) {
    if (++begun_workers_ < workers_) return;
    begun_workers_ = 0;
    Count();
    step_begin_ = now;
  }
  // Every worker has begun a step, the last one at `last`.
  void OnRoundBegin(Instant last) {
    Count();
    step_begin_ = last;
  }
  // The operation is ready on one more worker.
  void Arrive(OpIndex op, Instant now) {
    const auto position = Index(position_of_[Index(op)]);
    if (++arrived_[position] == workers_) ArriveAll(position, now);
  }
  // The operation at that position is ready on all of them, on the last one now.
  void ArriveAll(size_t position, Instant now) {
    arrived_[position] = workers_;
    if (Begins(position)) step_[Row(position)].ready = now - step_begin_;
    if (joint_.cycles.has_value()) NoteReady(position, now);
    if (joint_.priorities.has_value()) {
      waiting_.push_back(
          {.rank = joint_.priorities->ranks[position], .at = now, .position = position});
      std::push_heap(waiting_.begin(), waiting_.end(), std::greater<>());
    }
  }

  // True if the next one of the sequence is ready on all workers and there is room for it.
  // REQUIRES: without cycles and priorities.
  bool CanBegin() const {
    return !arrived_.empty() && arrived_[next_] == workers_ && under_way_ < joint_.concurrent;
  }
  // The same of any job. Ask when all else of the instant has happened.
  bool CanBegin(Instant now) {
    if (joint_.priorities.has_value()) {
      LetIn();
      return !let_in_.empty() && under_way_ < joint_.concurrent;
    }
    if (!joint_.cycles.has_value()) return CanBegin();
    if (begun_of_group_ < group_.size()) return true;
    return under_way_ == 0 && (!groups_.empty() || NextCycle() <= now);
  }
  struct Begun {
    OpIndex op = 0;
    int32_t slot = 0;  // from 0, below `concurrent`
    size_t position = 0;
  };
  // REQUIRES: CanBegin().
  Begun Begin(Instant now) {
    if (joint_.cycles.has_value()) return BeginOfGroup(now);
    if (joint_.priorities.has_value()) {
      next_ = let_in_.front();
      let_in_.pop_front();
    }
    const auto slot =
        static_cast<size_t>(std::find(ends_.begin(), ends_.end(), kEndOfTime) - ends_.begin());
    const Begun begun{
        .op = joint_.ops[next_], .slot = static_cast<int32_t>(slot), .position = next_};
    ++under_way_;
    of_slot_[slot] = next_;
    if (Begins(next_)) {
      step_[Row(next_)].begin = now - step_begin_;
      NoteBusy(now);
    }
    if (!joint_.paces.empty()) {
      ends_[slot] = BeginAtPace(now, slot, joint_.lengths[next_], joint_.paces[next_]);
    } else if (joint_.messages.empty()) {
      ends_[slot] = now + joint_.lengths[next_];
    } else {
      // A launch goes before the messages, and the link does not know of it until then.
      launches_.push_back({.slot = begun.slot, .at = now + joint_.lengths[next_]});
      ends_[slot] = kFarAhead;
    }
    arrived_[next_] = 0;
    next_ = next_ + 1 == arrived_.size() ? 0 : next_ + 1;
    return begun;
  }

  // The next instant at which something ends, or a launch does.
  Instant NextEnd() const {
    if (joint_.cycles.has_value()) return under_way_ > 0 ? group_end_ : kEndOfTime;
    Instant next = link_.NextEnd();
    for (const Launch& launch : launches_) next = std::min(next, launch.at);
    if (joint_.messages.empty()) {
      for (const Instant end : ends_) next = std::min(next, end);
    }
    return next;
  }
  // The next instant at which one could begin without anything that ends or arrives: a cycle's.
  Instant NextBegin() const { return under_way_ == 0 ? NextCycle() : kEndOfTime; }
  // Appends the slots of what ends at `now`.
  void TakeEnded(Instant now, std::vector<int32_t>& slots) {
    const size_t before = slots.size();
    if (joint_.messages.empty()) {
      for (size_t slot = 0; slot < ends_.size(); ++slot) {
        if (ends_[slot] == now) slots.push_back(static_cast<int32_t>(slot));
      }
    } else {
      if (link_.NextEnd() == now) link_.TakeEnded(now, slots);
      while (!launches_.empty() && launches_.front().at <= now) {
        const int32_t slot = launches_.front().slot;
        launches_.erase(launches_.begin());
        link_.Begin(slot, now, joint_.messages[of_slot_[Index(slot)]]);
        if (link_.NextEnd() == now) link_.TakeEnded(now, slots);
      }
    }
    for (size_t i = before; i < slots.size(); ++i) {
      ends_[Index(slots[i])] = kEndOfTime;
      const size_t position = of_slot_[Index(slots[i])];
      --under_way_;
      if (joint_.priorities.has_value()) bytes_in_ -= joint_.priorities->bytes[position];
      if (!Ends(position)) continue;
      step_[Row(position)].end = now - step_begin_;
      NoteIdle(now);
    }
    if (joint_.cycles.has_value() && slots.size() > before && groups_.empty())
      next_cycle_ = std::max(cycle_begin_ + joint_.cycles->interval, now);
  }

  // The pace of what is under way; null: nothing is. REQUIRES, here and below: with paces.
  const JointPace* pace() const { return under_way_ > 0 ? &pace_ : nullptr; }
  // All of the instant has happened, and some worker computes from now on, or none does.
  void OnInstantEnd(Instant now, bool computes) {
    if (under_way_ == 0) return;
    clock_.SetLevel(now, pace_.operation(computes));
    if (joint_.cycles.has_value()) {
      group_end_ = clock_.InstantOf(done_at_.front());
      std::fill_n(ends_.begin(), group_.size(), group_end_);
      return;
    }
    for (size_t slot = 0; slot < ends_.size(); ++slot) {
      if (ends_[slot] != kEndOfTime) ends_[slot] = clock_.InstantOf(done_at_[slot]);
    }
  }

  // Sums over the steps that the last worker has ended, by operation of a step or by pair.
  const std::vector<JointTimes>& times() const { return times_; }
  // Time until `now` with any of them under way.
  int64_t BusyUntil(Instant now) const { return busy_ + (going_on_ > 0 ? now.ticks : 0); }

 private:
  // Pairs: the first begins, and the second ends.
  bool Begins(size_t position) const { return !joint_.in_pairs || position % 2 == 0; }
  bool Ends(size_t position) const { return !joint_.in_pairs || position % 2 == 1; }
  size_t Row(size_t position) const { return joint_.in_pairs ? position / 2 : position; }
  void NoteBusy(Instant now) {
    if (going_on_++ == 0) busy_ -= now.ticks;
  }
  void NoteIdle(Instant now) {
    if (--going_on_ == 0) busy_ += now.ticks;
  }

  // Adds what the step had, if there was one.
  void Count() {
    if (std::exchange(steps_begun_, true)) {
      for (size_t i = 0; i < times_.size(); ++i) {
        times_[i].ready += step_[i].ready;
        times_[i].begin += step_[i].begin;
        times_[i].end += step_[i].end;
        ++times_[i].count;
      }
    }
  }

  static constexpr Instant kFarAhead{kEndOfTime.ticks - 1};

  // Its speed, and so its end, is known at the end of the instant. REQUIRES: `going_on_` knows of
  // it, or nothing goes on.
  Instant BeginAtPace(Instant now, size_t slot, Span length, const JointPace& pace) {
    if (going_on_ <= 1) clock_ = LevelClock{};
    pace_ = pace;
    done_at_[slot] = clock_.VirtualAt(now) + length.ticks;
    return length.ticks == 0 ? now : kFarAhead;
  }

  // With cycles: ready on all workers.
  struct Ready {
    Instant at;
    size_t position = 0;

    // clang-tidy 14 takes the zero of a rewritten comparison for a pointer.
    friend auto operator<=>(const Ready&, const Ready&) = default;  // NOLINT(modernize-use-nullptr)
  };

  // With priorities: ready on all workers, and not let in.
  struct Waiting {
    int32_t rank = 0;
    Instant at;
    size_t position = 0;

    friend auto operator<=>(const Waiting&,
                            const Waiting&) = default;  // NOLINT(modernize-use-nullptr)
  };

  void LetIn() {
    const JointPriorities& priorities = *joint_.priorities;
    while (!waiting_.empty()) {
      const size_t position = waiting_.front().position;
      const int64_t bytes = priorities.bytes[position];
      const bool has_credit = under_way_ == 0 && let_in_.empty();
      if (!has_credit && bytes > priorities.credit_bytes - bytes_in_) return;
      std::pop_heap(waiting_.begin(), waiting_.end(), std::greater<>());
      waiting_.pop_back();
      let_in_.push_back(position);
      bytes_in_ += bytes;
    }
  }

  void NoteReady(size_t position, Instant now) {
    if (ready_.empty()) first_ready_ = now;
    ready_.push_back({.at = now, .position = position});
  }
  // The begin of the next cycle with anything in it; those before it are empty.
  Instant NextCycle() const {
    if (ready_.empty()) return kEndOfTime;
    if (first_ready_ <= next_cycle_) return next_cycle_;
    const int64_t interval = joint_.cycles->interval.ticks;
    const int64_t late = first_ready_.ticks - next_cycle_.ticks;
    return {next_cycle_.ticks + (late + interval - 1) / interval * interval};
  }
  void BeginCycle(Instant now) {
    cycle_begin_ = now;
    // Operations of an instant in graph order, whichever worker was the last to have them ready.
    std::sort(ready_.begin(), ready_.end());
    std::deque<Ready> left(ready_.begin(), ready_.end());
    ready_.clear();
    while (!left.empty()) groups_.push_back(TakeGroup(left));
    std::reverse(groups_.begin(), groups_.end());
  }
  std::vector<size_t> TakeGroup(std::deque<Ready>& left) const {
    const JointCycles& cycles = *joint_.cycles;
    const size_t first = left.front().position;
    left.pop_front();
    std::vector<size_t> group{first};
    int64_t room = cycles.most_bytes - cycles.bytes[first];
    if (cycles.classes[first] < 0) return group;
    int64_t bytes_passed_over = 0;
    std::vector<Ready> passed_over;
    while (!left.empty()) {
      const size_t position = left.front().position;
      const int64_t bytes = cycles.bytes[position];
      if (cycles.classes[position] == cycles.classes[first] && bytes <= room) {
        group.push_back(position);
        room -= bytes;
      } else if (bytes <= room - bytes_passed_over) {
        bytes_passed_over += bytes;
        passed_over.push_back(left.front());
      } else {
        break;
      }
      left.pop_front();
    }
    left.insert(left.begin(), passed_over.begin(), passed_over.end());
    return group;
  }
  Begun BeginOfGroup(Instant now) {
    if (begun_of_group_ == group_.size()) {
      if (groups_.empty()) BeginCycle(now);
      group_ = std::move(groups_.back());
      groups_.pop_back();
      begun_of_group_ = 0;
      int64_t bytes = 0;
      for (const size_t position : group_) bytes += joint_.cycles->bytes[position];
      const Span length = joint_.cycles->length_of(group_.front(), bytes);
      group_end_ = joint_.cycles->pace_of == nullptr
                       ? now + length
                       : BeginAtPace(now, 0, length, joint_.cycles->pace_of(group_.front(), bytes));
    }
    const size_t slot = begun_of_group_++;
    const size_t position = group_[slot];
    ++under_way_;
    NoteBusy(now);
    of_slot_[slot] = position;
    ends_[slot] = group_end_;
    step_[position].begin = now - step_begin_;
    arrived_[position] = 0;
    return {.op = joint_.ops[position], .slot = static_cast<int32_t>(slot), .position = position};
  }

  struct Launch {
    int32_t slot = 0;
    Instant at;
  };

  const JointWork& joint_;
  int32_t workers_;
  std::vector<int32_t> position_of_;  // by operation
  std::vector<int32_t> arrived_;      // workers, by position
  std::vector<JointTimes> times_;     // by row
  std::vector<JointTimes> step_;      // of the step at hand
  bool steps_begun_ = false;
  int32_t begun_workers_ = 0;  // the step at hand
  Instant step_begin_;         // when the last worker did
  size_t next_ = 0;
  int32_t under_way_ = 0;
  int32_t going_on_ = 0;       // likewise, or pairs
  std::vector<Instant> ends_;  // by slot; kEndOfTime: free
  std::vector<size_t> of_slot_;
  std::vector<Launch> launches_;  // all as long, so in the order of their ends
  MessageLink link_;
  // With paces, of what is under way: from when nothing was before it.
  JointPace pace_;
  LevelClock clock_;
  std::vector<int64_t> done_at_;  // by slot, on that clock
  int64_t busy_ = 0;

  // State with priorities.
  std::vector<Waiting> waiting_;  // a heap, the lowest first
  std::deque<size_t> let_in_;     // positions, not yet begun
  int64_t bytes_in_ = 0;          // of what was let in and has not ended

  // State with cycles.
  std::vector<Ready> ready_;                 // on all workers, for the next cycle
  Instant first_ready_;                      // of them
  Instant cycle_begin_;                      // of the last one
  Instant next_cycle_;                       // the earliest begin of the next one
  std::vector<std::vector<size_t>> groups_;  // of the cycle at hand, the next one last; positions
  std::vector<size_t> group_;                // under way, or the last one that was
  size_t begun_of_group_ = 0;
  Instant group_end_;
};

}  // namespace stepcast
