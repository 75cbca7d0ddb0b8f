// What waits on one server's uplinks, by worker, in the order in which it will be sent.
//
// Uploads line up as they become ready; one that was stopped goes behind those that were ready by then, first round of that instant included. What
// stands in line when the link turns idle is sent as one batch, a flow of several chunks. Where no transfer is ever stopped the line is the list of
// ready uploads itself. Threads: none. Memory: 8 bytes a worker and service where transfers are stopped, 16 a worker and upload to remember arrivals.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "core/base/time.h"
#include "core/engine/lane_schedule.h"
#include "core/engine/step_graph.h"

namespace stepcast {

class UploadLines {
 public:
  // One service of an upload, which is counted among those to this server.
  struct Entry {
    int32_t upload = 0;
    int32_t service = 0;
  };

  // `uploads`: those to this server. `own_ready`: a worker's ready list is copied, not referred to.
  UploadLines(const StepGraph& graph, std::vector<OpIndex> uploads, int32_t workers, bool own_ready) : uploads_(std::move(uploads)) {
    for (const OpIndex op : uploads_) {
      works_.push_back(graph.work(op));
      services_ += static_cast<size_t>(works_.back().services);
    }
    stops_ = services_ > uploads_.size();
    lines_.resize(static_cast<size_t>(workers));
    arrivals_.resize(static_cast<size_t>(workers) * uploads_.size());
    if (stops_) entries_.resize(static_cast<size_t>(workers) * services_);
    if (own_ready) own_ready_.resize(static_cast<size_t>(workers) * uploads_.size());
  }

  size_t uploads() const { return uploads_.size(); }
  OpIndex OperationOf(Entry entry) const { return uploads_[static_cast<size_t>(entry.upload)]; }
  Span WorkOf(Entry entry) const { return works_[static_cast<size_t>(entry.upload)].OfService(entry.service); }

  // A new step: its uploads become ready as `ready` says, counted from `base`. The list must last until the next one, or be OwnReady's.
  void Begin(int32_t worker, std::span<const LaneSchedule::Ready> ready, Instant base) {
    Line& line = LineOf(worker);
    line = {.ready = ready.data(), .base = base};
  }
  // Where a worker's own list may be put: as long as there are uploads.
  std::span<LaneSchedule::Ready> OwnReady(int32_t worker) {
    return std::span(own_ready_).subspan(static_cast<size_t>(worker) * uploads_.size(), uploads_.size());
  }

  // Everything that is ready by `now` gets in line.
  void LineUp(int32_t worker, Instant now) { LineUp(worker, now, /*late=*/true); }
  bool AllReady(int32_t worker) const { return lines_[static_cast<size_t>(worker)].lined_up == static_cast<int32_t>(uploads_.size()); }
  // When the next one will be ready. REQUIRES: !AllReady.
  Instant NextReady(int32_t worker) const {
    const Line& line = lines_[static_cast<size_t>(worker)];
    return ReadyAt(line, line.lined_up);
  }

  // Takes all that is in line; returns their work together, 0 where there is nothing.
  Span TakeBatch(int32_t worker, Instant now) {
    Line& line = LineOf(worker);
    line.batch_begin = line.batch_end;
    line.batch_end = line.tail;
    line.batch_at = now;
    Span work;
    for (int32_t i = line.batch_begin; i < line.batch_end; ++i) work += WorkOf(At(worker, i));
    return work;
  }
  // The batch at hand ends now: `sent(entry, start, end)` is told of each of its chunks, `end_after(work)` gives when the next one ended, but for the
  // last, and what was stopped lines up again.
  template <typename EndAfter, typename Sent>
  void EndBatch(int32_t worker, Instant now, EndAfter end_after, Sent sent) {
    Line& line = LineOf(worker);
    Instant start = line.batch_at;
    for (int32_t i = line.batch_begin; i < line.batch_end; ++i) {
      const Entry entry = At(worker, i);
      const Instant end = i + 1 < line.batch_end ? end_after(WorkOf(entry)) : now;
      sent(entry, start, end);
      if (IsLast(entry)) {
        arrivals_[First(worker) + static_cast<size_t>(line.arrived++)] = {.at = end, .source = entry.upload};
      } else {
        LineUp(worker, end, /*late=*/false);
        Push(worker, {.upload = entry.upload, .service = entry.service + 1});
      }
      start = end;
    }
    line.batch_begin = line.batch_end;
  }

  // The uploads that have arrived so far, in their order.
  std::span<const LaneSchedule::Arrival> Arrived(int32_t worker) const {
    return std::span(arrivals_).subspan(First(worker), static_cast<size_t>(lines_[static_cast<size_t>(worker)].arrived));
  }
  // Visits every chunk of the batch at hand that ended while the batch carried `carried`, with its work.
  template <typename Visit>
  void ForEachSent(int32_t worker, Span carried, Visit visit) const {
    const Line& line = lines_[static_cast<size_t>(worker)];
    for (int32_t i = line.batch_begin; i < line.batch_end; ++i) {
      const Entry entry = At(worker, i);
      const Span work = WorkOf(entry);
      if (work > carried) return;
      carried = carried - work;
      visit(entry, work);
    }
  }
  bool IsLast(Entry entry) const { return entry.service + 1 == works_[static_cast<size_t>(entry.upload)].services; }

 private:
  struct Line {
    const LaneSchedule::Ready* ready = nullptr;
    Instant base;
    int32_t lined_up = 0;  // of `ready`
    int32_t tail = 0;
    int32_t batch_begin = 0;
    int32_t batch_end = 0;
    int32_t arrived = 0;
    Instant batch_at;
  };

  Line& LineOf(int32_t worker) { return lines_[static_cast<size_t>(worker)]; }
  size_t First(int32_t worker) const { return static_cast<size_t>(worker) * uploads_.size(); }
  static Instant ReadyAt(const Line& line, int32_t i) { return line.base + (line.ready[i].at - Instant{}); }

  Entry At(int32_t worker, int32_t i) const {
    if (stops_) return entries_[static_cast<size_t>(worker) * services_ + static_cast<size_t>(i)];
    return {.upload = lines_[static_cast<size_t>(worker)].ready[i].sink};
  }
  void Push(int32_t worker, Entry entry) { entries_[static_cast<size_t>(worker) * services_ + static_cast<size_t>(LineOf(worker).tail++)] = entry; }
  void LineUp(int32_t worker, Instant now, bool late) {
    Line& line = LineOf(worker);
    const auto count = static_cast<int32_t>(uploads_.size());
    while (line.lined_up < count) {
      const LaneSchedule::Ready& next = line.ready[line.lined_up];
      const Instant at = ReadyAt(line, line.lined_up);
      if (at > now || (at == now && next.late && !late)) return;
      ++line.lined_up;
      if (stops_) {
        Push(worker, {.upload = next.sink});
      } else {
        ++line.tail;
      }
    }
  }

  std::vector<OpIndex> uploads_;
  std::vector<TransferWork> works_;
  size_t services_ = 0;                          // of all uploads together
  bool stops_ = false;                           // whether a transfer takes more than one
  std::vector<Line> lines_;                      // by worker
  std::vector<Entry> entries_;                   // by worker and service, where transfers are stopped
  std::vector<LaneSchedule::Arrival> arrivals_;  // by worker and upload
  std::vector<LaneSchedule::Ready> own_ready_;
};

}  // namespace stepcast
