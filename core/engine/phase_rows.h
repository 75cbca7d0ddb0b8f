// A memo of sampled steps: the computation of one recorded step on a worker of one speed, made when
// it is first asked for.
//
// Threads: none; it belongs to one run.
// Memory: about 8 bytes an operation, recorded step and speed that occur.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "core/base/time.h"
#include "core/engine/download_schedules.h"
#include "core/engine/lane_schedule.h"
#include "core/engine/latest_ends.h"
#include "core/engine/phase_plan.h"
#include "core/engine/program.h"
#include "core/engine/usage_meter.h"

namespace stepcast {

struct PhaseRow {
  // An operation that ran after the cut, and its time, counted from the cut's start.
  struct Ran {
    OpIndex op = 0;
    Instant start;
    Instant end;
  };
  // A download that can decide when a step's computation comes to the cut (LatestEnds).
  struct Decisive {
    Span work;   // of the link, since the one before it in this list
    Span after;  // from its arrival: the computation that waits for it or for a later one
  };
  // The uploads to a hub of UploadStreams, as they become ready.
  struct Stream {
    std::vector<Span> ready;  // from the cut's start
    LatestEnds ends;          // of the hub's updates
  };
  // The ranks of the uploads to a hub, as they become ready.
  struct Ranked {
    std::vector<int32_t> ranks;
    std::vector<int32_t> least_later;  // of all that become ready later
    bool is_sorted = true;             // ascending, or equal
  };
  // The work of a hub.
  struct Updates {
    std::vector<int64_t> durations;
    UsageWindow::Ticks total = 0;
  };

  std::vector<int64_t> durations;      // of the plan's computations
  UsageWindow::Ticks computation = 0;  // of the whole step
  Span after_cut;                      // of the cut and all computations after it
  // By hub: the plan's uploads to it, counted by their place among those, as they become ready;
  // counted from the cut's start. Empty without a cut.
  std::vector<std::vector<LaneSchedule::Ready>> ready;
  std::vector<Stream> streams;      // by hub: the same, where asked for
  std::vector<Decisive> downloads;  // empty where the schedule does not say what is awaited last
  std::vector<Ranked> ranked;       // by hub; empty without ranks, or without a cut
  std::vector<Ran> ran;
  std::vector<Updates> updates;  // by hub
};

class PhaseRows {
 public:
  // Both must outlive it. `traced`: keep what ran. `streamed`: fill in streams. REQUIRES:
  // UploadStreams fit, if streamed.
  PhaseRows(const Program& graph, const PhasePlan& plan, bool traced, bool streamed);

  // By place in the plan's uploads: the place among those to its hub.
  const std::vector<int32_t>& place_of_upload() const { return place_of_upload_; }
  int32_t HubOfUpload(int32_t upload) const {
    return graph_.lanes()[graph_.lane(plan_.uploads[Index(upload)])].index;
  }

  // `speed_class`: equal for equal speeds, from 0; `downloads` and `ranks`: of every step that
  // repeats the recorded one; ranks by OpIndex, null: there are none, or others each time. The
  // reference holds as long as the object.
  const PhaseRow& Of(int32_t speed_class, double speed, int32_t recorded,
                     const DownloadSchedule& downloads, const int32_t* ranks) {
    const auto index = static_cast<size_t>(speed_class) * static_cast<size_t>(graph_.step_count()) +
                       static_cast<size_t>(recorded);
    if (index >= rows_.size()) rows_.resize(index + 1);
    if (rows_[index] == nullptr) rows_[index] = Make(speed, recorded, downloads, ranks);
    return *rows_[index];
  }

 private:
  std::unique_ptr<PhaseRow> Make(double speed, int32_t recorded, const DownloadSchedule& downloads,
                                 const int32_t* ranks);
  PhaseRow::Ranked RankedBy(const int32_t* ranks, size_t hub, const PhaseRow& row) const;
  void FillStreams(int32_t recorded, PhaseRow& row) const;
  void RunAfterCut(double speed, int32_t recorded, PhaseRow& row);

  const Program& graph_;
  const PhasePlan& plan_;
  const bool traced_;
  const bool streamed_;
  LaneSchedule after_cut_;
  std::vector<int32_t> place_of_upload_;
  std::vector<std::unique_ptr<PhaseRow>> rows_;  // by speed class and recorded step
};

}  // namespace stepcast
