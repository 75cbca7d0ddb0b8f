// The usage by an instant, of PhasedRun: asked for once in a run, so kept away from what is run at
// every event.
#include <algorithm>
#include <cstdint>

#include "core/engine/lane_schedule.h"
#include "core/engine/phased_run.h"
#include "core/engine/sorted_uploads.h"
#include "core/engine/upload_lines.h"
#include "core/engine/upload_streams.h"
#include "core/network/logged_first_come_link.h"
#include "core/network/logged_link.h"
#include "core/network/logged_max_min_network.h"
#include "core/network/turns_link.h"

namespace stepcast {

template <typename Uploads, RememberingLink Link>
UsageWindow::Totals PhasedRun<Uploads, Link>::TotalsNow() {
  for (Link& link : inbound_) link.CatchUp(now_);
  for (Link& link : outbound_) link.CatchUp(now_);
  UsageWindow::Totals totals = ended_;
  for (int32_t worker = 0; worker < worker_count_; ++worker) AddStepUntilNow(worker, totals);
  for (int32_t hub = 0; hub < hubs_; ++hub) {
    totals.by_lane[Index(job_.lanes().FirstOf(PhasePlan::kInbound) + hub)] =
        inbound_[Index(hub)].CarriedBy(now_);
    totals.by_lane[Index(job_.lanes().FirstOf(PhasePlan::kOutbound) + hub)] =
        outbound_[Index(hub)].CarriedBy(now_);
  }
  return totals;
}

// Adds the work that the worker has done of its step at hand.
template <typename Uploads, RememberingLink Link>
void PhasedRun<Uploads, Link>::AddStepUntilNow(int32_t worker, UsageWindow::Totals& totals) {
  const WorkerState& state = workers_[Index(worker)];
  if (state.phase == Phase::kWaiting) return;
  if (state.phase == Phase::kDownloading) {
    const int64_t computed = ComputedOfDownloading(worker);
    totals.by_lane[PhasePlan::kComputation] += computed;
    totals.exposed += (now_ - state.step_begin).ticks - computed;
    return;
  }
  totals.by_lane[PhasePlan::kComputation] +=
      state.row->computation - std::max<int64_t>(0, (state.computed_at - now_).ticks);
  totals.exposed += state.exposed;
  if (state.outbound_active > 0)
    totals.exposed +=
        std::max<int64_t>(0, (now_ - std::max(state.uploading_since, state.computed_at)).ticks);
  for (int32_t hub = 0; hub < hubs_; ++hub) {
    if (plan_.updates_on[Index(hub)].empty()) continue;
    totals.by_lane[Index(PhasePlan::HubLane(hub))] += uploads_[Index(hub)].UpdatedUntil(
        worker, *state.row, state.step_begin, now_, outbound_[Index(hub)]);
  }
}

template <typename Uploads, RememberingLink Link>
int64_t PhasedRun<Uploads, Link>::ComputedOfDownloading(int32_t worker) {
  const WorkerState& state = workers_[Index(worker)];
  partial_.clear();
  if (hubs_ > 1) partial_ = arrived_[Index(worker)];
  for (int32_t hub = 0; hub < hubs_; ++hub) {
    const Link& link = inbound_[Index(hub)];
    if (link.IsActive(worker)) ReadArrivals(worker, hub, link.CarriedOf(worker, now_), partial_);
  }
  if (hubs_ > 1)
    std::sort(partial_.begin(), partial_.end(),
              [](const auto& a, const auto& b) { return a.at < b.at; });
  BusyUntil busy{.until = now_};
  ready_.clear();
  state.downloads->computation->Run(state.step_begin, partial_, state.row->durations.data(), ready_,
                                    busy);
  return busy.busy;
}

template UsageWindow::Totals PhasedRun<UploadLines, LoggedLink>::TotalsNow();
template UsageWindow::Totals PhasedRun<RankedUploadLines, LoggedLink>::TotalsNow();
template UsageWindow::Totals PhasedRun<UploadStreams, LoggedLink>::TotalsNow();
template UsageWindow::Totals PhasedRun<SortedUploads, LoggedLink>::TotalsNow();
template UsageWindow::Totals PhasedRun<UploadLines, LoggedFirstComeLink>::TotalsNow();
template UsageWindow::Totals PhasedRun<RankedUploadLines, LoggedFirstComeLink>::TotalsNow();
template UsageWindow::Totals PhasedRun<UploadStreams, LoggedFirstComeLink>::TotalsNow();
template UsageWindow::Totals PhasedRun<SortedUploads, LoggedFirstComeLink>::TotalsNow();
template UsageWindow::Totals PhasedRun<UploadLines, LoggedMaxMinNetwork::Link>::TotalsNow();
template UsageWindow::Totals PhasedRun<RankedUploadLines, LoggedMaxMinNetwork::Link>::TotalsNow();
template UsageWindow::Totals PhasedRun<UploadStreams, LoggedMaxMinNetwork::Link>::TotalsNow();
template UsageWindow::Totals PhasedRun<SortedUploads, LoggedMaxMinNetwork::Link>::TotalsNow();
template UsageWindow::Totals PhasedRun<UploadLines, LoggedTurnsLink>::TotalsNow();
template UsageWindow::Totals PhasedRun<RankedUploadLines, LoggedTurnsLink>::TotalsNow();
template UsageWindow::Totals PhasedRun<UploadStreams, LoggedTurnsLink>::TotalsNow();
template UsageWindow::Totals PhasedRun<SortedUploads, LoggedTurnsLink>::TotalsNow();

}  // namespace stepcast
