// The uploads of all workers to one hub and what it does with them, whatever stops them and
// whatever they release.
//
// Uploads line up as they become ready; one that was stopped goes behind those that were ready by
// then, first round of that instant included. What stands in line when the link turns idle is sent
// as one batch, a flow of several chunks. Where no transfer is ever stopped the line is the list of
// ready uploads itself.
//
// With ranks, ranked uploads go before that line, the lowest rank first, ties as they became ready.
// Then a batch is as much of what waits as nothing that becomes ready later could go before, its
// first chunk at least: in an order in which uploads become ready anyway, all of it.
// Threads: none. Memory: 8 bytes a worker and service where transfers are stopped or ranked, 16 a
// worker and upload to remember arrivals, with ranks 20 more.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "core/base/time.h"
#include "core/engine/job_graph.h"
#include "core/engine/lane_schedule.h"
#include "core/engine/phase_plan.h"
#include "core/engine/phase_rows.h"
#include "core/engine/program.h"
#include "core/network/network.h"

namespace stepcast {

template <bool ranked>
class BasicUploadLines {
 public:
  static constexpr bool kNeedsCut = false;
  static constexpr bool kRanked = ranked;

  BasicUploadLines(const Program& graph, const PhasePlan& plan, int32_t hub, int32_t workers)
      : hub_(static_cast<size_t>(hub)),
        uploads_(plan.uploads_to[hub_]),
        updates_(graph, plan.uploads_to[hub_], plan.updates_on[hub_], {}) {
    for (const OpIndex op : uploads_) {
      works_.push_back(graph.work(op));
      services_ += static_cast<size_t>(works_.back().services);
    }
    stops_ = services_ > uploads_.size();
    lines_.resize(static_cast<size_t>(workers));
    arrivals_.resize(static_cast<size_t>(workers) * uploads_.size());
    // Not cleared: of many workers and services that takes longer than any step.
    const size_t entries = static_cast<size_t>(workers) * services_;
    if (stops_ || kRanked) entries_ = std::make_unique_for_overwrite<Entry[]>(entries);
    if (kRanked) {
      first_come_ = std::make_unique_for_overwrite<Entry[]>(entries);
      ranks_.resize(arrivals_.size());
      least_later_.resize(arrivals_.size());
      first_.resize(lines_.size());
    }
    // Without a cut each step has a list of its own.
    if (plan.after_cut.empty()) own_ready_.resize(static_cast<size_t>(workers) * uploads_.size());
  }

  bool empty() const { return uploads_.empty(); }

  // A new step whose computation has come to the cut then.
  void Begin(int32_t worker, const PhaseRow& row, Instant cut) {
    LineOf(worker) = {.ready = row.ready[hub_].data(), .base = cut};
  }
  // Without a cut: a new step, whose uploads OwnReady says when.
  void BeginOwn(int32_t worker) { LineOf(worker) = {.ready = OwnReady(worker).data()}; }
  std::span<LaneSchedule::Ready> OwnReady(int32_t worker) {
    return std::span(own_ready_).subspan(First(worker), uploads_.size());
  }

  // The ranks of the worker's step, by OpIndex, which the row may have sorted out. Call after Begin
  // or BeginOwn. REQUIRES: kRanked.
  void Rank(int32_t worker, const PhaseRow& row, const int32_t* ranks) {
    Line& line = LineOf(worker);
    if (!row.ranked.empty()) {
      const PhaseRow::Ranked& own = row.ranked[hub_];
      line.ranks = own.ranks.data();
      line.least_later = own.least_later.data();
      line.is_sorted = own.is_sorted;
      line.in_order = !stops_ && line.is_sorted;
      return;
    }
    const size_t first = First(worker);
    line.ranks = ranks_.data() + first;
    line.least_later = least_later_.data() + first;
    int32_t least = Ranking::kUnranked;
    line.is_sorted = true;
    for (size_t i = uploads_.size(); i-- > 0;) {
      const int32_t rank = ranks[uploads_[static_cast<size_t>(line.ready[i].sink)]];
      least_later_[first + i] = least;
      ranks_[first + i] = rank;
      line.is_sorted = line.is_sorted && rank <= least;
      least = std::min(least, rank);
    }
    line.in_order = !stops_ && line.is_sorted;
  }

  // Everything that is ready by `now` gets in line; with ranks, by the link's next choice at it.
  void LineUp(int32_t worker, Instant now) {
    if (!IsSorted(LineOf(worker))) {
      LineUp(worker, now, /*late=*/true);
    } else {
      LineUpForChoice(worker, now);
    }
  }
  bool AllReady(int32_t worker) const {
    return lines_[static_cast<size_t>(worker)].lined_up == static_cast<int32_t>(uploads_.size());
  }
  // The instant at which the next one will be ready. REQUIRES: !AllReady.
  Instant NextReady(int32_t worker) const {
    const Line& line = lines_[static_cast<size_t>(worker)];
    return ReadyAt(line, line.lined_up);
  }

  // Takes all that is in line; returns their work together, 0 where there is nothing.
  Span TakeBatch(int32_t worker, Instant now) {
    Line& line = LineOf(worker);
    line.batch_begin = line.batch_end;
    if (IsSorted(line)) Choose(worker);
    line.batch_end = line.tail;
    line.batch_at = now;
    Span work;
    for (int32_t i = line.batch_begin; i < line.batch_end; ++i) work += WorkOf(At(worker, i));
    return work;
  }
  int32_t ChunksOfBatch(int32_t worker) const {
    const Line& line = lines_[static_cast<size_t>(worker)];
    return line.batch_end - line.batch_begin;
  }
  // Adds the works of the batch's chunks to a list.
  template <typename List>
  void AddBatchTo(int32_t worker, List& chunks) const {
    const Line& line = lines_[static_cast<size_t>(worker)];
    for (int32_t i = line.batch_begin; i < line.batch_end; ++i) chunks.Add(WorkOf(At(worker, i)));
  }
  // The batch at hand ends now. What was stopped lines up again.
  template <typename Reader>
  void EndBatch(int32_t worker, Instant now, Reader reader) {
    EndBatch(worker, now, reader, [](OpIndex, int32_t, Instant, Instant) {});
  }
  // The same; `sent(op, service, start, end)` is told of each of its chunks.
  template <typename Reader, typename Sent>
  void EndBatch(int32_t worker, Instant now, Reader reader, Sent sent) {
    Line& line = LineOf(worker);
    Instant start = line.batch_at;
    for (int32_t i = line.batch_begin; i < line.batch_end; ++i) {
      const Entry entry = At(worker, i);
      const Instant end = i + 1 < line.batch_end ? reader.After(WorkOf(entry)) : now;
      sent(uploads_[static_cast<size_t>(entry.upload)], entry.service, start, end);
      if (IsLast(entry)) {
        arrivals_[First(worker) + static_cast<size_t>(line.arrived++)] = {.at = end,
                                                                          .source = entry.upload};
      } else {
        LineUp(worker, end, /*late=*/false);
        Push(worker, {.upload = entry.upload, .service = entry.service + 1});
      }
      start = end;
    }
    line.batch_begin = line.batch_end;
  }

  // The end of the step's last update. REQUIRES: all uploads have arrived.
  Instant EndOfUpdates(int32_t worker, const PhaseRow& row, Instant step_begin) {
    return EndOfUpdates(worker, row, step_begin, LaneSchedule::Unwatched{});
  }
  // The same; the watcher is told of each update, counted among those on this hub.
  template <typename Watcher>
  Instant EndOfUpdates(int32_t worker, const PhaseRow& row, Instant step_begin, Watcher&& watcher) {
    return updates_.Run(step_begin, Arrived(worker), row.updates[hub_].durations.data(), no_ready_,
                        watcher);
  }
  // Time the hub has worked for the step until `now`. REQUIRES: the instant is settled.
  template <RememberingLink Link>
  int64_t UpdatedUntil(int32_t worker, const PhaseRow& row, Instant step_begin, Instant now,
                       const Link& link) {
    const std::span<const LaneSchedule::Arrival> arrived = Arrived(worker);
    std::vector<LaneSchedule::Arrival> arrivals(arrived.begin(), arrived.end());
    if (link.IsActive(worker)) {
      auto reader = link.Read(worker);
      Span carried = link.CarriedOf(worker, now);
      const Line& line = LineOf(worker);
      for (int32_t i = line.batch_begin; i < line.batch_end; ++i) {
        const Entry entry = At(worker, i);
        const Span work = WorkOf(entry);
        if (work > carried) break;
        carried = carried - work;
        const Instant end = reader.After(work);
        if (IsLast(entry)) arrivals.push_back({.at = end, .source = entry.upload});
      }
    }
    BusyUntil busy{.until = now};
    updates_.Run(step_begin, arrivals, row.updates[hub_].durations.data(), no_ready_, busy);
    return busy.busy;
  }

 private:
  // One service of an upload, which is counted among those to this hub.
  struct Entry {
    int32_t upload;
    int32_t service;
  };
  struct Line {
    const LaneSchedule::Ready* ready = nullptr;
    Instant base;
    int32_t lined_up = 0;  // of `ready`
    int32_t tail = 0;
    int32_t batch_begin = 0;
    int32_t batch_end = 0;
    int32_t arrived = 0;
    Instant batch_at;
    // With ranks. Uploads become ready in the order of their ranks; so where none is stopped, they
    // need none.
    bool is_sorted = false;
    bool in_order = false;
    int32_t first_head = 0;  // of what waits by its rank
    // Ranks of the uploads as they become ready, and the least of all that become ready later.
    const int32_t* ranks = nullptr;
    const int32_t* least_later = nullptr;
    int32_t first_come_head = 0;  // of what waits behind all ranked ones
    int32_t first_come_tail = 0;
  };

  bool IsLast(Entry entry) const {
    return entry.service + 1 == works_[static_cast<size_t>(entry.upload)].services;
  }
  Span WorkOf(Entry entry) const {
    return works_[static_cast<size_t>(entry.upload)].OfService(entry.service);
  }
  // The uploads that have arrived so far, in their order.
  std::span<const LaneSchedule::Arrival> Arrived(int32_t worker) const {
    return std::span(arrivals_).subspan(
        First(worker), static_cast<size_t>(lines_[static_cast<size_t>(worker)].arrived));
  }
  Line& LineOf(int32_t worker) { return lines_[static_cast<size_t>(worker)]; }
  size_t First(int32_t worker) const { return static_cast<size_t>(worker) * uploads_.size(); }
  size_t FirstService(int32_t worker) const { return static_cast<size_t>(worker) * services_; }
  static Instant ReadyAt(const Line& line, int32_t i) {
    return line.base + (line.ready[i].at - Instant{});
  }

  // True if what waits is sorted by rank, and `entries_` is the order in which it was chosen.
  static bool IsSorted(const Line& line) { return kRanked && !line.in_order; }

  Entry At(int32_t worker, int32_t i) const {
    const Line& line = lines_[static_cast<size_t>(worker)];
    if (stops_ || IsSorted(line)) return entries_[FirstService(worker) + static_cast<size_t>(i)];
    return {.upload = line.ready[i].sink};
  }
  // A transfer that goes behind all that wait: stopped, or never ranked.
  void Push(int32_t worker, Entry entry) {
    Line& line = LineOf(worker);
    if (IsSorted(line)) {
      first_come_[FirstService(worker) + static_cast<size_t>(line.first_come_tail++)] = entry;
    } else {
      entries_[FirstService(worker) + static_cast<size_t>(line.tail++)] = entry;
    }
  }
  // The upload that became ready next gets in line.
  void LineUpNext(int32_t worker) {
    Line& line = LineOf(worker);
    const int32_t next = line.lined_up++;
    if (IsSorted(line) && RankAt(worker, next) != Ranking::kUnranked) {
      PushFirst(worker, next);
    } else if (stops_ || IsSorted(line)) {
      Push(worker, {.upload = line.ready[next].sink});
    } else {
      ++line.tail;
    }
  }
  void LineUp(int32_t worker, Instant now, bool late) {
    Line& line = LineOf(worker);
    const auto count = static_cast<int32_t>(uploads_.size());
    while (line.lined_up < count) {
      const Instant at = ReadyAt(line, line.lined_up);
      if (at > now || (at == now && line.ready[line.lined_up].round > 0 && !late)) return;
      LineUpNext(worker);
    }
  }
  // The first round of the instant; where nothing waits then, the first one in which something is.
  void LineUpForChoice(int32_t worker, Instant now) {
    LineUp(worker, now, /*late=*/false);
    Line& line = LineOf(worker);
    const auto count = static_cast<int32_t>(uploads_.size());
    const bool waits = HasFirst(worker) || line.first_come_head < line.first_come_tail;
    if (waits || line.lined_up == count || ReadyAt(line, line.lined_up) > now) return;
    const int32_t round = line.ready[line.lined_up].round;
    while (line.lined_up < count && ReadyAt(line, line.lined_up) == now &&
           line.ready[line.lined_up].round == round)
      LineUpNext(worker);
  }
  // Moves what is to be sent next to `entries_`, one chunk at least where there is one, and then as
  // long as nothing that becomes ready later could go before.
  void Choose(int32_t worker) {
    Line& line = LineOf(worker);
    if (line.lined_up == 0) return;
    const int32_t least_later = line.least_later[line.lined_up - 1];
    const auto choose = [&](Entry entry) {
      entries_[FirstService(worker) + static_cast<size_t>(line.tail++)] = entry;
    };
    while (HasFirst(worker) && (line.tail == line.batch_begin ||
                                RankAt(worker, FirstOf(worker, line)) <= least_later)) {
      choose({.upload = line.ready[FirstOf(worker, line)].sink});
      PopFirst(worker);
    }
    while (!HasFirst(worker) && line.first_come_head < line.first_come_tail &&
           (line.tail == line.batch_begin || least_later == Ranking::kUnranked))
      choose(first_come_[FirstService(worker) + static_cast<size_t>(line.first_come_head++)]);
  }
  // Uploads that wait by their rank: a heap, or as they became ready where that is the same.
  bool HasFirst(int32_t worker) const {
    return static_cast<size_t>(lines_[static_cast<size_t>(worker)].first_head) <
           first_[static_cast<size_t>(worker)].size();
  }
  int32_t FirstOf(int32_t worker, const Line& line) const {
    return first_[static_cast<size_t>(worker)][static_cast<size_t>(line.first_head)];
  }
  void PushFirst(int32_t worker, int32_t next) {
    std::vector<int32_t>& first = first_[static_cast<size_t>(worker)];
    first.push_back(next);
    if (!LineOf(worker).is_sorted) std::push_heap(first.begin(), first.end(), Later(worker));
  }
  void PopFirst(int32_t worker) {
    Line& line = LineOf(worker);
    std::vector<int32_t>& first = first_[static_cast<size_t>(worker)];
    if (!line.is_sorted) {
      std::pop_heap(first.begin(), first.end(), Later(worker));
      first.pop_back();
    } else if (static_cast<size_t>(++line.first_head) == first.size()) {
      first.clear();
      line.first_head = 0;
    }
  }
  // The standard heap has its greatest first, so the first to be sent is the greatest.
  auto Later(int32_t worker) const {
    const int32_t* const ranks = lines_[static_cast<size_t>(worker)].ranks;
    return [ranks](int32_t a, int32_t b) {
      return ranks[a] != ranks[b] ? ranks[a] > ranks[b] : a > b;
    };
  }
  int32_t RankAt(int32_t worker, int32_t i) const {
    return lines_[static_cast<size_t>(worker)].ranks[i];
  }

  const size_t hub_;
  std::vector<OpIndex> uploads_;
  LaneSchedule updates_;
  std::vector<TransferWork> works_;
  size_t services_ = 0;      // of all uploads together
  bool stops_ = false;       // a transfer takes more than one
  std::vector<Line> lines_;  // by worker
  std::unique_ptr<Entry[]>
      entries_;  // by worker and service, where transfers are stopped or ranked
  std::vector<LaneSchedule::Arrival> arrivals_;  // by worker and upload
  std::vector<LaneSchedule::Ready> own_ready_;   // by worker and upload
  std::vector<LaneSchedule::Ready> no_ready_;    // a sink for schedules that release nothing
  // With ranks; by worker and upload in the order in which they become ready, unless noted. The
  // first two only of steps whose row has none of its own.
  std::vector<int32_t> ranks_;
  std::vector<int32_t> least_later_;
  std::vector<std::vector<int32_t>> first_;  // by worker: what waits by its rank
  std::unique_ptr<Entry[]> first_come_;      // by worker and service: what waits behind that
};

using UploadLines = BasicUploadLines<false>;
using RankedUploadLines = BasicUploadLines<true>;

}  // namespace stepcast
