// The fast engine, for graphs whose steps run in phases (phase_plan.h): only the network has
// events.
//
// A worker's downloads are one flow, whose chunks' ends are read off the link's log when the last
// has arrived; then its computation is run in one loop (or, after a cut, looked up; where one hub
// sends in an order that is known, only those ends are read that can decide when the cut is
// reached), which gives the instants at which uploads become ready. What waits on an outbound link
// is sent as one flow too. Updates are run in one loop once all uploads to a hub have arrived. Step
// ends, counted time, usage and trace are the plain engine's, to the tick: every place at which
// PlainRun rounds is in the links, and those see the same workers active between the same instants.
// Threads: none. Cost: some nanoseconds an operation, hardly more with more workers. Memory: some
// numbers a worker and upload.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

#include "core/base/bounded_list.h"
#include "core/base/indexed_heap.h"
#include "core/base/stop_check.h"
#include "core/base/time.h"
#include "core/engine/download_schedules.h"
#include "core/engine/job_graph.h"
#include "core/engine/lane_schedule.h"
#include "core/engine/phase_plan.h"
#include "core/engine/phase_rows.h"
#include "core/engine/program.h"
#include "core/engine/run_ledger.h"
#include "core/engine/simulation.h"
#include "core/engine/step_ranks.h"
#include "core/engine/step_sampler.h"
#include "core/engine/usage_meter.h"
#include "core/network/network.h"

namespace stepcast {

// Uploads is, where an upload may have a rank, SortedUploads or RankedUploadLines; else
// UploadStreams or UploadLines. The former of each where streams fit and there is no trace (with
// ranks: that are not drawn anew each time).
template <typename Uploads, RememberingLink Link>
class PhasedRun {
 public:
  // All but the links, one of each direction before anything was sent, must outlive it; the plan is
  // of the job's only program. REQUIRES: the links know of workers' own, where those may bind;
  // workers meet at the ends of their steps at most; no upload has a rank, unless Uploads::kRanked.
  PhasedRun(const JobGraph& job, const PhasePlan& plan, const RunOptions& options, StopCheck stop,
            const Link& inbound, const Link& outbound);

  absl::StatusOr<RunResult> Go();

 private:
  enum class Phase : uint8_t { kWaiting, kDownloading, kUploading, kEnding };

  struct WorkerState {
    StepSampler sampler;
    const PhaseRow* row = nullptr;
    std::shared_ptr<const DownloadSchedule> downloads;
    int32_t speed_class = 0;
    double compute_speed = 1;
    int32_t step = 0;  // completed
    Phase phase = Phase::kWaiting;
    int32_t hubs_left = 0;  // of the phase at hand
    int32_t outbound_active = 0;
    Instant step_begin;
    Instant computed_at;  // the end of the step's computation
    Instant last_end;     // of uploads and updates so far
    Instant uploading_since;
    int64_t exposed = 0;  // in this step so far
    BoundedList<ChunkRecord> trace{0};
  };

  IndexedHeap::Slot TimerOf(int32_t worker, int32_t hub) const { return worker * hubs_ + hub; }

  // True if the link is to be told a flow's chunks.
  static constexpr bool kAddsChunks = !requires(Link link, int32_t worker, Span work) {
    link.Start(worker, work);
  };

  // Starts a flow of chunks, of so much work together; `add_to(list)` adds them, where the link
  // asks.
  template <typename AddTo>
  static void StartFlow(Link& link, int32_t worker, Span work, AddTo add_to) {
    if constexpr (kAddsChunks) {
      add_to(link.Start(worker));
    } else {
      link.Start(worker, work);
    }
  }

  // True if the instants of a worker that has the outbound link for itself may be run in one loop.
  static constexpr bool kRunsAlone =
      Uploads::kNeedsCut && !Uploads::kRanked && requires(Link link) {
    link.BeginLoneUse();
  };

  void SetSpeeds();
  void RunAlone();
  Instant NextEvent() const;
  void RunChunks();
  void RunInstant(Instant now);
  void TakeDownloads(int32_t hub);
  void TakeUploads(int32_t hub);
  void TakeTimers();
  void Settle();
  // The links of one direction; `touched` and `next` by hub.
  void Settle(std::vector<Link>& links, std::vector<uint8_t>& touched, std::vector<Instant>& next);
  void CheckStop(int64_t work) {
    work_until_check_ -= work;
    if (work_until_check_ > 0 || !status_.ok()) return;
    work_until_check_ = kStopCheckInterval;
    status_ = stop_();
  }

  void BeginStep(int32_t worker);
  void ReadArrivals(int32_t worker, int32_t hub, Span carried,
                    std::vector<LaneSchedule::Arrival>& arrivals);
  void EndDownloads(int32_t worker);
  Instant Compute(int32_t worker);
  Instant CutOf(int32_t worker) const;
  void TraceAfterCut(int32_t worker, Instant cut);
  void BeginUploads(int32_t worker, Instant cut);
  void FileReadyUploads(int32_t worker);
  void GoOnUploading(int32_t worker, int32_t hub);
  void EndUploadsTo(int32_t worker, int32_t hub);
  void EndStepAt(int32_t worker);
  void EndStep(int32_t worker);

  UsageWindow::Totals TotalsNow();
  void AddStepUntilNow(int32_t worker, UsageWindow::Totals& totals);
  int64_t ComputedOfDownloading(int32_t worker);

  const JobGraph& job_;
  const Program& graph_;
  const PhasePlan& plan_;
  const RunOptions& options_;
  const StopCheck stop_;
  const int32_t worker_count_;
  const int32_t hubs_;
  std::vector<Link> inbound_;  // by hub
  std::vector<Link> outbound_;
  std::vector<Instant> next_download_;  // by hub: when the next flow ends
  std::vector<Instant> next_upload_;
  std::vector<uint8_t> inbound_touched_;  // by hub: 1 where something ended or began
  std::vector<uint8_t> outbound_touched_;
  IndexedHeap timers_;  // by worker and hub: the next upload is ready, or (hub 0) a step begins
  PhaseRows rows_;
  StepRanks ranks_;
  DownloadSchedules downloads_;
  std::vector<Uploads> uploads_;  // by hub
  RunLedger ledger_;
  std::vector<WorkerState> workers_;
  UsageWindow::Totals ended_;  // of steps that have ended; connections: nothing
  Instant now_;
  absl::Status status_;
  int64_t work_until_check_ = 0;
  int64_t simulated_operations_ = 0;
  // By worker where there are several hubs, else one for all: downloads that have arrived in the
  // step at hand.
  std::vector<std::vector<LaneSchedule::Arrival>> arrived_;
  // Scratch of the instant at hand; members only to keep their memory.
  std::vector<int32_t> flows_;
  std::vector<LaneSchedule::Ready> ready_;
  std::vector<LaneSchedule::Arrival> partial_;
  std::vector<size_t> filed_;
};

// Runs a plan on whichever of them fits. `own_links_bind`: those of workers may, and links are
// shared equally. REQUIRES: in turns, one hub.
absl::StatusOr<RunResult> RunInPhases(const JobGraph& job, const PhasePlan& plan,
                                      const RunOptions& options, bool own_links_bind,
                                      StopCheck stop);

}  // namespace stepcast
