// The uploads of all workers to one hub and what it does with them, where nothing ever stops a
// transfer and updates go in the order of arrival.
//
// Then the order in which a step's uploads become ready is the order in which they are sent and in
// which they are followed up, and all that a run has to keep is how far along that list a worker
// is. Of a batch only those arrivals are read that can decide when its updates end (LatestEnds),
// mostly the last alone. Same interface as UploadLines, which knows every case. Threads: none.
// Memory: 48 bytes a worker.
#pragma once

#include <algorithm>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "core/base/time.h"
#include "core/engine/phase_plan.h"
#include "core/engine/phase_rows.h"
#include "core/engine/program.h"
#include "core/network/network.h"

namespace stepcast {

class UploadStreams {
 public:
  static constexpr bool kNeedsCut = true;
  static constexpr bool kRanked = false;

  // True if they say all there is to say of a plan's uploads. A trace is not theirs to write.
  static bool Fit(const Program& graph, const PhasePlan& plan);

  UploadStreams(const Program& /*graph*/, const PhasePlan& plan, int32_t hub, int32_t workers)
      : hub_(static_cast<size_t>(hub)),
        count_(static_cast<int32_t>(plan.uploads_to[hub_].size())),
        streams_(static_cast<size_t>(workers)) {}

  bool empty() const { return count_ == 0; }

  // A new step whose computation has come to the cut then.
  void Begin(int32_t worker, const PhaseRow& row, Instant cut) {
    StreamOf(worker) = {.row = &row.streams[hub_], .cut = cut};
  }
  // Everything that is ready by `now` gets in line.
  void LineUp(int32_t worker, Instant now) {
    Stream& stream = StreamOf(worker);
    const Span since_cut = now - stream.cut;
    const Span* const begin = stream.row->ready.data();
    const Span* const end = begin + count_;
    const Span* next = begin + stream.ready;
    const auto are_ready = [&](std::ptrdiff_t many) {
      return end - next >= many && next[many - 1] <= since_cut;
    };
    // Mostly few, and where the link is crowded many: by doubling steps, then by halves.
    std::ptrdiff_t step = 1;
    for (; are_ready(step); step *= 2) next += step;
    for (step /= 2; step > 0; step /= 2) {
      if (are_ready(step)) next += step;
    }
    stream.ready = static_cast<int32_t>(next - begin);
  }
  bool AllReady(int32_t worker) const {
    return streams_[static_cast<size_t>(worker)].ready == count_;
  }
  // The instant at which the next one will be ready. REQUIRES: !AllReady.
  Instant NextReady(int32_t worker) const {
    const Stream& stream = streams_[static_cast<size_t>(worker)];
    return stream.ReadyAt(stream.ready);
  }
  // Takes all that is in line; returns their work together, 0 where there is nothing.
  Span TakeBatch(int32_t worker, Instant /*now*/) {
    Stream& stream = StreamOf(worker);
    stream.batch_end = stream.ready;
    const LatestEnds& ends = stream.row->ends;
    return ends.WorkBefore(stream.batch_end) - ends.WorkBefore(stream.arrived);
  }
  int32_t ChunksOfBatch(int32_t worker) const {
    const Stream& stream = streams_[static_cast<size_t>(worker)];
    return stream.batch_end - stream.arrived;
  }
  // Adds the works of the batch's chunks to a list.
  template <typename List>
  void AddBatchTo(int32_t worker, List& chunks) const {
    const Stream& stream = streams_[static_cast<size_t>(worker)];
    const LatestEnds& ends = stream.row->ends;
    for (int32_t i = stream.arrived; i < stream.batch_end; ++i)
      chunks.Add(ends.WorkBefore(i + 1) - ends.WorkBefore(i));
  }
  // True if the batch at hand is the last one.
  bool SendsLast(int32_t worker) const {
    return streams_[static_cast<size_t>(worker)].batch_end == count_;
  }
  // The batch at hand, a flow of `link`, ends now.
  template <RememberingLink Link>
  void EndBatch(int32_t worker, Instant now, const Link& link) {
    EndBatch(worker, now, [&] { return link.Read(worker); });
  }
  // The same of one that had a link for itself since it began then.
  void EndBatchAlone(int32_t worker, Instant begin, Instant now) {
    EndBatch(worker, now, [&] { return LoneReader{.at = begin}; });
  }

  // The end of the step's last update. REQUIRES: all uploads have arrived.
  Instant EndOfUpdates(int32_t worker, const PhaseRow& /*row*/, Instant /*step_begin*/) const {
    return streams_[static_cast<size_t>(worker)].updated_at;
  }
  // Time the hub has worked for the step until `now`, after which `link` is not settled again
  // before the worker's uploads have begun.
  template <RememberingLink Link>
  int64_t UpdatedUntil(int32_t worker, const PhaseRow& row, Instant step_begin, Instant now,
                       const Link& link) const;

 private:
  struct LoneReader {
    Instant After(Span work) { return at = at + work; }
    Instant at;
  };
  struct Stream {
    Instant ReadyAt(int32_t upload) const { return cut + row->ready[Index(upload)]; }

    const PhaseRow::Stream* row = nullptr;
    Instant cut;
    Instant updated_at;     // the end of the last update of what has arrived
    int32_t ready = 0;      // those that are in line, or further
    int32_t batch_end = 0;  // those that were sent, or are
    int32_t arrived = 0;
  };

  Stream& StreamOf(int32_t worker) { return streams_[static_cast<size_t>(worker)]; }
  // `read()` reads the ends of the batch's chunks.
  template <typename Read>
  requires std::invocable<Read>
  void EndBatch(int32_t worker, Instant now, Read read) {
    Stream& stream = StreamOf(worker);
    if (stream.arrived == stream.batch_end) return;
    const LatestEnds& ends = stream.row->ends;
    const int32_t last = stream.batch_end - 1;
    const Span taken = ends.TakenBefore(stream.batch_end);
    Instant updated_at = std::max(stream.updated_at + (taken - ends.TakenBefore(stream.arrived)),
                                  now + (taken - ends.TakenBefore(last)));
    if (ends.DecisiveBefore(last) >= stream.arrived)
      updated_at = std::max(updated_at, EndByDecisive(stream, read()));
    stream.updated_at = updated_at;
    stream.arrived = stream.batch_end;
  }
  // The end of the batch's updates, if one but its last arrival decides it.
  template <typename Reader>
  Instant EndByDecisive(const Stream& stream, Reader reader);

  const size_t hub_;
  const int32_t count_;            // of uploads in a step
  std::vector<Stream> streams_;    // by worker
  std::vector<int32_t> decisive_;  // of the batch at hand; a member only to keep its memory
};

template <typename Reader>
Instant UploadStreams::EndByDecisive(const Stream& stream, Reader reader) {
  const LatestEnds& ends = stream.row->ends;
  decisive_.clear();
  for (int32_t i = ends.DecisiveBefore(stream.batch_end - 1); i >= stream.arrived;
       i = ends.DecisiveBefore(i))
    decisive_.push_back(i);
  Instant end;
  Span read = ends.WorkBefore(stream.arrived);
  for (; !decisive_.empty(); decisive_.pop_back()) {
    const int32_t upload = decisive_.back();
    const Span work = ends.WorkBefore(upload + 1);
    end = std::max(end, reader.After(work - read) +
                            (ends.TakenBefore(stream.batch_end) - ends.TakenBefore(upload)));
    read = work;
  }
  return end;
}

template <RememberingLink Link>
int64_t UploadStreams::UpdatedUntil(int32_t worker, const PhaseRow& /*row*/, Instant /*step_begin*/,
                                    Instant now, const Link& link) const {
  const Stream& stream = streams_[static_cast<size_t>(worker)];
  if (stream.row == nullptr) return 0;
  const LatestEnds& ends = stream.row->ends;
  Instant updated_at = stream.updated_at;
  Span updated = ends.TakenBefore(stream.arrived);
  if (link.IsActive(worker)) {
    auto reader = link.Read(worker);
    const Span carried = ends.WorkBefore(stream.arrived) + link.CarriedOf(worker, now);
    for (int32_t i = stream.arrived; i < stream.batch_end && ends.WorkBefore(i + 1) <= carried;
         ++i) {
      const Span update = ends.TakenBefore(i + 1) - ends.TakenBefore(i);
      const Instant arrived = reader.After(ends.WorkBefore(i + 1) - ends.WorkBefore(i));
      updated_at = std::max(updated_at, arrived) + update;
      updated += update;
    }
  }
  // Since the last arrival it has not been idle before it was done.
  return updated.ticks - std::max<int64_t>(0, (updated_at - now).ticks);
}

inline bool UploadStreams::Fit(const Program& graph, const PhasePlan& plan) {
  if (plan.after_cut.empty()) return false;
  for (const OpIndex op : plan.uploads) {
    if (graph.work(op).services > 1) return false;
  }
  for (size_t hub = 0; hub < plan.uploads_to.size(); ++hub) {
    for (const OpIndex op : plan.uploads_to[hub]) {
      if (graph.dependents(op).size() > 1) return false;
    }
    // Updates of a hub each wait for one upload alone.
    for (const OpIndex op : plan.updates_on[hub]) {
      if (graph.dependency_count(op) != 1 || !graph.dependents(op).empty()) return false;
    }
  }
  return true;
}

}  // namespace stepcast
