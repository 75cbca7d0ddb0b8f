// The uploads of all workers to one hub and what it does with them, where nothing ever stops a
// transfer and updates go in the order of arrival.
//
// Then the order in which a step's uploads become ready is the order in which they are sent and in
// which they are followed up, and all that a run has to keep is how far along that list a worker
// is. Same interface as UploadLines, which knows every case. Threads: none. Memory: 48 bytes a
// worker.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "core/base/time.h"
#include "core/engine/phase_plan.h"
#include "core/engine/phase_rows.h"
#include "core/engine/program.h"
#include "core/network/logged_link.h"

namespace stepcast {

class UploadStreams {
 public:
  static constexpr bool kNeedsCut = true;
  static constexpr bool kRanked = false;

  // True if they say all there is to say of a plan's uploads. A trace is not theirs to write.
  static bool Fit(const Program& graph, const PhasePlan& plan);

  UploadStreams(const Program& /*graph*/, const PhasePlan& plan, int32_t hub, int32_t workers)
      : hub_(static_cast<size_t>(hub)),
        count_(plan.uploads_to[hub_].size()),
        streams_(static_cast<size_t>(workers)) {}

  bool empty() const { return count_ == 0; }

  // A new step whose computation has come to the cut then.
  void Begin(int32_t worker, const PhaseRow& row, Instant cut) {
    StreamOf(worker) = {.uploads = row.streams[hub_].data(), .cut = cut};
  }
  // Everything that is ready by `now` gets in line.
  void LineUp(int32_t worker, Instant now) {
    Stream& stream = StreamOf(worker);
    while (stream.ready < count_ && stream.cut + stream.uploads[stream.ready].ready <= now)
      ++stream.ready;
  }
  bool AllReady(int32_t worker) const {
    return streams_[static_cast<size_t>(worker)].ready == count_;
  }
  // The instant at which the next one will be ready. REQUIRES: !AllReady.
  Instant NextReady(int32_t worker) const {
    const Stream& stream = streams_[static_cast<size_t>(worker)];
    return stream.cut + stream.uploads[stream.ready].ready;
  }
  // Takes all that is in line; returns their work together, 0 where there is nothing.
  Span TakeBatch(int32_t worker, Instant /*now*/) {
    Stream& stream = StreamOf(worker);
    stream.batch_end = stream.ready;
    Span work;
    for (uint32_t i = stream.arrived; i < stream.batch_end; ++i) work += stream.uploads[i].work;
    return work;
  }
  // The batch at hand ends now.
  void EndBatch(int32_t worker, Instant now, LoggedLink::Reader reader) {
    Stream& stream = StreamOf(worker);
    if (stream.arrived == stream.batch_end) return;
    const PhaseRow::StreamedUpload* upload = stream.uploads + stream.arrived;
    const PhaseRow::StreamedUpload* const last = stream.uploads + stream.batch_end - 1;
    Instant updated_at = stream.updated_at;
    for (; upload != last; ++upload)
      updated_at = std::max(updated_at, reader.After(upload->work)) + upload->update;
    stream.updated_at = std::max(updated_at, now) + last->update;
    stream.arrived = stream.batch_end;
  }

  // The end of the step's last update. REQUIRES: all uploads have arrived.
  Instant EndOfUpdates(int32_t worker, const PhaseRow& /*row*/, Instant /*step_begin*/) const {
    return streams_[static_cast<size_t>(worker)].updated_at;
  }
  // Time the hub has worked for the step until `now`, after which `link` is not settled again
  // before the worker's uploads have begun.
  int64_t UpdatedUntil(int32_t worker, const PhaseRow& /*row*/, Instant /*step_begin*/, Instant now,
                       const LoggedLink& link) const {
    Stream stream = streams_[static_cast<size_t>(worker)];
    int64_t updated = 0;
    for (uint32_t i = 0; i < stream.arrived; ++i) updated += stream.uploads[i].update.ticks;
    if (link.IsActive(worker)) {
      LoggedLink::Reader reader = link.Read(worker);
      Span carried = link.CarriedOf(worker, now);
      for (uint32_t i = stream.arrived; i < stream.batch_end && stream.uploads[i].work <= carried;
           ++i) {
        carried = carried - stream.uploads[i].work;
        stream.updated_at = std::max(stream.updated_at, reader.After(stream.uploads[i].work)) +
                            stream.uploads[i].update;
        updated += stream.uploads[i].update.ticks;
      }
    }
    // Since the last arrival it has not been idle before it was done.
    return updated - std::max<int64_t>(0, (stream.updated_at - now).ticks);
  }

 private:
  struct Stream {
    const PhaseRow::StreamedUpload* uploads = nullptr;
    Instant cut;
    Instant updated_at;      // the end of the last update of what has arrived
    uint32_t ready = 0;      // those that are in line, or further
    uint32_t batch_end = 0;  // those that were sent, or are
    uint32_t arrived = 0;
  };

  Stream& StreamOf(int32_t worker) { return streams_[static_cast<size_t>(worker)]; }

  const size_t hub_;
  const size_t count_;           // of uploads in a step
  std::vector<Stream> streams_;  // by worker
};

}  // namespace stepcast
