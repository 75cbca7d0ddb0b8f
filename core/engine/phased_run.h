// The fast engine, for graphs whose steps run in phases (phase_plan.h): only the network has
// events.
//
// A worker's downloads are one flow, whose chunks' ends are read off the link's log when the last
// has arrived; then its computation is run in one loop (or, after a cut, looked up), which gives
// the instants at which uploads become ready. What waits on an uplink is sent as one flow too.
// Updates are run in one loop once all uploads to a server have arrived. Step ends, counted time,
// usage and trace are the plain engine's, to the tick: every place at which PlainRun rounds is in
// the links, and those see the same workers active between the same instants. Threads: none. Cost:
// some nanoseconds an operation, hardly more with more workers. Memory: some numbers a worker and
// upload.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

#include "core/base/bounded_list.h"
#include "core/base/indexed_heap.h"
#include "core/base/stop_check.h"
#include "core/base/time.h"
#include "core/engine/lane_schedule.h"
#include "core/engine/phase_plan.h"
#include "core/engine/phase_rows.h"
#include "core/engine/run_ledger.h"
#include "core/engine/simulation.h"
#include "core/engine/step_graph.h"
#include "core/engine/step_sampler.h"
#include "core/engine/usage_window.h"
#include "core/network/logged_link.h"

namespace stepcast {

// Uploads is UploadLines or, where they fit and there is no trace, UploadStreams.
template <typename Uploads>
class PhasedRun {
 public:
  // All must outlive it. REQUIRES: the graph's own order of transfers; links shared equally, and no
  // worker's own link ever binds.
  PhasedRun(const StepGraph& graph, const PhasePlan& plan, const RunOptions& options,
            StopCheck stop);

  absl::StatusOr<RunResult> Go();

 private:
  enum class Phase : uint8_t { kWaiting, kDownloading, kUploading, kEnding };

  struct WorkerState {
    StepSampler sampler;
    const PhaseRow* row = nullptr;
    int32_t speed_class = 0;
    double compute_speed = 1;
    int32_t step = 0;  // completed
    Phase phase = Phase::kWaiting;
    int32_t servers_left = 0;  // of the phase at hand
    int32_t uplinks_active = 0;
    Instant step_begin;
    Instant computed_at;  // the end of the step's computation
    Instant last_end;     // of uploads and updates so far
    Instant uploading_since;
    int64_t exposed = 0;  // in this step so far
    BoundedList<ChunkRecord> trace{0};
  };

  static size_t Index(int32_t i) { return static_cast<size_t>(i); }
  IndexedHeap::Slot TimerOf(int32_t worker, int32_t server) const {
    return worker * servers_ + server;
  }

  void SetSpeeds();
  Instant NextEvent() const;
  void RunInstant(Instant now);
  void TakeDownloads(int32_t server);
  void TakeUploads(int32_t server);
  void TakeTimers();
  void Settle();
  void CheckStop(int64_t work);

  void BeginStep(int32_t worker);
  void ReadArrivals(int32_t worker, int32_t server, Span carried,
                    std::vector<LaneSchedule::Arrival>& arrivals);
  void EndDownloads(int32_t worker);
  Instant Compute(int32_t worker);
  void TraceAfterCut(int32_t worker, Instant cut);
  void BeginUploads(int32_t worker, Instant cut);
  void FileReadyUploads(int32_t worker);
  void GoOnUploading(int32_t worker, int32_t server);
  void EndUploadsTo(int32_t worker, int32_t server);
  void EndStepAt(int32_t worker);
  void EndStep(int32_t worker);

  UsageWindow::Totals TotalsNow();
  void AddStepUntilNow(int32_t worker, UsageWindow::Totals& totals);
  int64_t ComputedOfDownloading(int32_t worker);

  const StepGraph& graph_;
  const PhasePlan& plan_;
  const RunOptions& options_;
  const StopCheck stop_;
  const int32_t worker_count_;
  const int32_t servers_;
  std::vector<LoggedLink> downlinks_;  // by server
  std::vector<LoggedLink> uplinks_;
  std::vector<Instant> next_download_;  // by server: when the next flow ends
  std::vector<Instant> next_upload_;
  std::vector<bool> downlink_touched_;
  std::vector<bool> uplink_touched_;
  IndexedHeap
      timers_;  // by worker and server: the next upload is ready, or (server 0) a step begins
  PhaseRows rows_;
  LaneSchedule computation_;
  const std::vector<PhasePlan::DownloadPhase> phases_;
  std::vector<Uploads> uploads_;  // by server
  RunLedger ledger_;
  std::vector<WorkerState> workers_;
  UsageWindow::Totals ended_;  // of steps that have ended; connections: nothing
  Instant now_;
  absl::Status status_;
  int64_t work_until_check_ = 0;
  int64_t simulated_operations_ = 0;
  // By worker where there are several servers, else one for all: downloads that have arrived in the
  // step at hand.
  std::vector<std::vector<LaneSchedule::Arrival>> arrived_;
  // Of the instant at hand; members only to keep their memory.
  std::vector<LoggedLink::Flow> flows_;
  std::vector<LaneSchedule::Ready> ready_;
  std::vector<LaneSchedule::Arrival> partial_;
  std::vector<size_t> filed_;
};

// Runs a plan on whichever of them fits.
absl::StatusOr<RunResult> RunInPhases(const StepGraph& graph, const PhasePlan& plan,
                                      const RunOptions& options, StopCheck stop);

}  // namespace stepcast
