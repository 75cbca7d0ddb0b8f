// The uploads of all workers to one hub, where they have ranks and UploadStreams would fit without.
//
// In a step whose uploads become ready in the order of their ranks, as recorded ones mostly do, the
// ranks change nothing: it is sent by UploadStreams; any other by RankedUploadLines. Same interface
// as both. REQUIRES: steps that repeat the same recorded step have the same ranks. Threads: none.
// Memory: that of both.
#pragma once

#include <cstdint>
#include <vector>

#include "core/base/index.h"
#include "core/base/time.h"
#include "core/engine/phase_plan.h"
#include "core/engine/phase_rows.h"
#include "core/engine/program.h"
#include "core/engine/upload_lines.h"
#include "core/engine/upload_streams.h"
#include "core/network/network.h"

namespace stepcast {

class SortedUploads {
 public:
  static constexpr bool kNeedsCut = true;
  static constexpr bool kRanked = true;

  SortedUploads(const Program& graph, const PhasePlan& plan, int32_t hub, int32_t workers)
      : hub_(Index(hub)),
        streams_(graph, plan, hub, workers),
        lines_(graph, plan, hub, workers),
        is_sorted_(Index(workers)) {}

  bool empty() const { return streams_.empty(); }

  void Begin(int32_t worker, const PhaseRow& row, Instant cut) {
    is_sorted_[Index(worker)] = static_cast<uint8_t>(row.ranked[hub_].is_sorted);
    if (row.ranked[hub_].is_sorted) {
      streams_.Begin(worker, row, cut);
    } else {
      lines_.Begin(worker, row, cut);
    }
  }
  void Rank(int32_t worker, const PhaseRow& row, const int32_t* ranks) {
    if (!IsSorted(worker)) lines_.Rank(worker, row, ranks);
  }
  void LineUp(int32_t worker, Instant now) {
    IsSorted(worker) ? streams_.LineUp(worker, now) : lines_.LineUp(worker, now);
  }
  bool AllReady(int32_t worker) const {
    return IsSorted(worker) ? streams_.AllReady(worker) : lines_.AllReady(worker);
  }
  Instant NextReady(int32_t worker) const {
    return IsSorted(worker) ? streams_.NextReady(worker) : lines_.NextReady(worker);
  }
  Span TakeBatch(int32_t worker, Instant now) {
    return IsSorted(worker) ? streams_.TakeBatch(worker, now) : lines_.TakeBatch(worker, now);
  }
  int32_t ChunksOfBatch(int32_t worker) const {
    return IsSorted(worker) ? streams_.ChunksOfBatch(worker) : lines_.ChunksOfBatch(worker);
  }
  template <typename List>
  void AddBatchTo(int32_t worker, List& chunks) const {
    IsSorted(worker) ? streams_.AddBatchTo(worker, chunks) : lines_.AddBatchTo(worker, chunks);
  }
  template <RememberingLink Link>
  void EndBatch(int32_t worker, Instant now, const Link& link) {
    if (IsSorted(worker)) {
      streams_.EndBatch(worker, now, link);
    } else {
      lines_.EndBatch(worker, now, link.Read(worker));
    }
  }
  Instant EndOfUpdates(int32_t worker, const PhaseRow& row, Instant step_begin) {
    return IsSorted(worker) ? streams_.EndOfUpdates(worker, row, step_begin)
                            : lines_.EndOfUpdates(worker, row, step_begin);
  }
  template <RememberingLink Link>
  int64_t UpdatedUntil(int32_t worker, const PhaseRow& row, Instant step_begin, Instant now,
                       const Link& link) {
    return IsSorted(worker) ? streams_.UpdatedUntil(worker, row, step_begin, now, link)
                            : lines_.UpdatedUntil(worker, row, step_begin, now, link);
  }

 private:
  bool IsSorted(int32_t worker) const { return is_sorted_[Index(worker)] != 0; }

  const size_t hub_;
  UploadStreams streams_;
  RankedUploadLines lines_;
  std::vector<uint8_t> is_sorted_;  // by worker: its step at hand
};

}  // namespace stepcast
