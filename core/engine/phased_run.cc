#include "core/engine/phased_run.h"

#include <algorithm>
#include <map>
#include <utility>

#include "core/engine/upload_lines.h"
#include "core/engine/upload_streams.h"

namespace stepcast {

namespace {

// Operations that take about as long as a chunk does in the plain engine.
constexpr int64_t kOperationsPerUnit = 8;
// What a step takes however small it is.
constexpr int64_t kUnitsPerStep = 4;

// Writes what a lane runs into a trace.
struct Tracer {
  void Ran(int32_t op, Instant start, Instant end) {
    trace.Add({.worker = worker,
               .op = operations[static_cast<size_t>(op)],
               .step = step,
               .start = start,
               .end = end});
  }

  const std::vector<OpIndex>& operations;
  BoundedList<ChunkRecord>& trace;
  int32_t worker;
  int32_t step;
};

// The download phases without what nobody waits for, or somebody who also waits for what comes
// later: its work is added to the next one's.
std::vector<PhasePlan::DownloadPhase> PhasesThatMatter(const PhasePlan& plan,
                                                       const LaneSchedule& computation) {
  std::vector<PhasePlan::DownloadPhase> phases;
  for (const PhasePlan::DownloadPhase& phase : plan.phases) {
    PhasePlan::DownloadPhase& kept =
        phases.emplace_back(PhasePlan::DownloadPhase{.services = {}, .total = phase.total});
    Span skipped;
    for (const PhasePlan::Service& service : phase.services) {
      skipped += service.work;
      const bool matters = service.source >= 0 && computation.Matters(service.source);
      if (!matters && &service != &phase.services.back()) continue;
      kept.services.push_back(service);
      kept.services.back().work = std::exchange(skipped, Span{});
    }
  }
  return phases;
}

}  // namespace

template <typename Uploads>
PhasedRun<Uploads>::PhasedRun(const StepGraph& graph, const PhasePlan& plan,
                              const RunOptions& options, StopCheck stop)
    : graph_(graph),
      plan_(plan),
      options_(options),
      stop_(stop),
      worker_count_(static_cast<int32_t>(options.start_offsets.size())),
      servers_(graph.lanes().servers),
      downlinks_(Index(servers_), LoggedLink(Index(worker_count_))),
      uplinks_(downlinks_),
      next_download_(Index(servers_), kEndOfTime),
      next_upload_(next_download_),
      downlink_touched_(Index(servers_), false),
      uplink_touched_(downlink_touched_),
      timers_(Index(worker_count_) * Index(servers_)),
      rows_(graph, plan, options.trace != nullptr, /*streamed=*/Uploads::kNeedsCut),
      computation_(graph, plan.downloads, plan.computations,
                   plan.after_cut.empty() ? plan.uploads : std::vector<OpIndex>{},
                   plan.arrival_order),
      phases_(options.trace != nullptr ? plan.phases : PhasesThatMatter(plan, computation_)),
      ledger_(graph, options),
      workers_(Index(worker_count_)),
      ended_{.by_lane = std::vector<UsageWindow::Ticks>(Index(graph.lanes().count()))},
      arrived_(servers_ > 1 ? Index(worker_count_) : 1) {
  for (int32_t server = 0; server < servers_; ++server)
    uploads_.emplace_back(graph, plan, server, worker_count_);
  SetSpeeds();
  if (options.trace == nullptr) return;
  for (WorkerState& state : workers_)
    state.trace = BoundedList<ChunkRecord>(static_cast<size_t>(graph.chunk_count()));
}

template <typename Uploads>
void PhasedRun<Uploads>::SetSpeeds() {
  std::map<double, int32_t> classes;
  size_t worker = 0;
  for (const WorkerGroup& group : options_.worker_groups) {
    const double speed = group.compute_speed_factor.value_or(1);
    const int32_t speed_class =
        classes.try_emplace(speed, static_cast<int32_t>(classes.size())).first->second;
    for (int32_t i = 0; i < group.count; ++i, ++worker) {
      workers_[worker].compute_speed = speed;
      workers_[worker].speed_class = speed_class;
    }
  }
}

template <typename Uploads>
absl::StatusOr<RunResult> PhasedRun<Uploads>::Go() {
  for (int32_t worker = 0; worker < worker_count_; ++worker) {
    workers_[Index(worker)].sampler = StepSampler(options_, graph_.step_count(), worker);
    timers_.Set(TimerOf(worker, 0), options_.start_offsets[Index(worker)].ticks);
  }
  while (!ledger_.Done() && status_.ok()) {
    const Instant next = NextEvent();
    if (ledger_.EndsBefore(next)) {
      now_ = options_.until;
      break;
    }
    if (next >= kEndOfTime) return SimulatedTimeExhausted();
    RunInstant(next);
  }
  if (!status_.ok()) return status_;
  RunResult result = ledger_.Finish(now_, TotalsNow());
  result.simulated_operations = simulated_operations_;
  result.path = plan_.after_cut.empty() ? EnginePath::kWorkerLoop : EnginePath::kMemoised;
  return result;
}

template <typename Uploads>
void PhasedRun<Uploads>::CheckStop(int64_t work) {
  work_until_check_ -= work;
  if (work_until_check_ > 0 || !status_.ok()) return;
  work_until_check_ = kStopCheckInterval;
  status_ = stop_();
}

template <typename Uploads>
Instant PhasedRun<Uploads>::NextEvent() const {
  Instant next = timers_.empty() ? kEndOfTime : Instant{timers_.TopKey()};
  for (size_t server = 0; server < next_download_.size(); ++server)
    next = std::min({next, next_download_[server], next_upload_[server]});
  return next;
}

template <typename Uploads>
void PhasedRun<Uploads>::RunInstant(Instant now) {
  now_ = now;
  for (int32_t server = 0; server < servers_; ++server) {
    if (next_download_[Index(server)] == now) TakeDownloads(server);
    if (next_upload_[Index(server)] == now) TakeUploads(server);
  }
  TakeTimers();
  if (ledger_.barrier().Full()) {
    ledger_.barrier().Pass(now_);
    for (int32_t worker = 0; worker < worker_count_; ++worker) BeginStep(worker);
  }
  Settle();
  ledger_.OnInstantDone(now_, [this] { return TotalsNow(); });
}

template <typename Uploads>
void PhasedRun<Uploads>::Settle() {
  for (size_t server = 0; server < next_download_.size(); ++server) {
    if (downlink_touched_[server]) next_download_[server] = downlinks_[server].Settle(now_);
    if (uplink_touched_[server]) next_upload_[server] = uplinks_[server].Settle(now_);
    downlink_touched_[server] = false;
    uplink_touched_[server] = false;
  }
}

template <typename Uploads>
void PhasedRun<Uploads>::TakeDownloads(int32_t server) {
  flows_.clear();
  downlinks_[Index(server)].TakeEnded(now_, flows_);
  downlink_touched_[Index(server)] = true;
  for (const LoggedLink::Flow worker : flows_) {
    ReadArrivals(worker, server, phases_[Index(server)].total,
                 arrived_[servers_ > 1 ? Index(worker) : 0]);
    if (--workers_[Index(worker)].servers_left == 0) EndDownloads(worker);
  }
}

template <typename Uploads>
void PhasedRun<Uploads>::TakeUploads(int32_t server) {
  flows_.clear();
  uplinks_[Index(server)].TakeEnded(now_, flows_);
  uplink_touched_[Index(server)] = true;
  for (const LoggedLink::Flow worker : flows_) {
    WorkerState& state = workers_[Index(worker)];
    const LoggedLink::Reader reader = uplinks_[Index(server)].Read(worker);
    if constexpr (!Uploads::kNeedsCut) {
      uploads_[Index(server)].EndBatch(
          worker, now_, reader, [&](OpIndex op, int32_t service, Instant start, Instant end) {
            if (options_.trace == nullptr) return;
            state.trace.Add({.worker = worker,
                             .op = op,
                             .step = state.step,
                             .service = service,
                             .start = start,
                             .end = end});
          });
    } else {
      uploads_[Index(server)].EndBatch(worker, now_, reader);
    }
    if (--state.uplinks_active == 0)
      state.exposed +=
          std::max<int64_t>(0, (now_ - std::max(state.uploading_since, state.computed_at)).ticks);
    GoOnUploading(worker, server);
  }
}

template <typename Uploads>
void PhasedRun<Uploads>::TakeTimers() {
  while (!timers_.empty() && timers_.TopKey() == now_.ticks) {
    const IndexedHeap::Slot slot = timers_.Pop();
    const int32_t worker = slot / servers_;
    switch (workers_[Index(worker)].phase) {
      case Phase::kUploading:
        GoOnUploading(worker, slot % servers_);
        break;
      case Phase::kEnding:
        EndStep(worker);
        break;
      default:
        ledger_.OnStart(worker, now_);
        BeginStep(worker);
    }
  }
}

template <typename Uploads>
void PhasedRun<Uploads>::BeginStep(int32_t worker) {
  WorkerState& state = workers_[Index(worker)];
  state.row = &rows_.Of(state.speed_class, state.compute_speed, state.sampler.Next(state.step));
  state.phase = Phase::kDownloading;
  state.step_begin = now_;
  state.exposed = 0;
  state.servers_left = 0;
  for (int32_t server = 0; server < servers_; ++server) {
    const Span total = phases_[Index(server)].total;
    if (total.ticks == 0) continue;
    ++state.servers_left;
    downlinks_[Index(server)].Start(worker, total);
    downlink_touched_[Index(server)] = true;
  }
  CheckStop(graph_.size() / kOperationsPerUnit + kUnitsPerStep);
}

// Appends the downloads that have arrived while the worker's flow carried so much, and traces their
// chunks if all have.
template <typename Uploads>
void PhasedRun<Uploads>::ReadArrivals(int32_t worker, int32_t server, Span carried,
                                      std::vector<LaneSchedule::Arrival>& arrivals) {
  const PhasePlan::DownloadPhase& phase = phases_[Index(server)];
  WorkerState& state = workers_[Index(worker)];
  const bool traced = options_.trace != nullptr && carried == phase.total;
  LoggedLink::Reader reader = downlinks_[Index(server)].Read(worker);
  Instant start = state.step_begin;
  Span unread;
  for (const PhasePlan::Service& service : phase.services) {
    if (service.work > carried) return;
    carried = carried - service.work;
    unread += service.work;
    if (service.source < 0 && !traced) continue;
    const Instant end = reader.After(std::exchange(unread, Span{}));
    if (service.source >= 0) arrivals.push_back({.at = end, .source = service.source});
    if (traced) {
      state.trace.Add({.worker = worker,
                       .op = service.op,
                       .step = state.step,
                       .service = service.service,
                       .start = start,
                       .end = end});
    }
    start = end;
  }
}

template <typename Uploads>
void PhasedRun<Uploads>::EndDownloads(int32_t worker) {
  WorkerState& state = workers_[Index(worker)];
  const Instant cut = Compute(worker);
  state.computed_at = cut + state.row->after_cut;
  // After the last arrival the worker computes without a break until all is done, so what it has
  // not done by then was done before.
  const int64_t busy_before =
      static_cast<int64_t>(state.row->computation) - (state.computed_at - now_).ticks;
  state.exposed = (now_ - state.step_begin).ticks - busy_before;
  if (options_.trace != nullptr) TraceAfterCut(worker, cut);
  BeginUploads(worker, cut);
}

// Runs the step's computation, up to the cut; returns when that was reached.
template <typename Uploads>
Instant PhasedRun<Uploads>::Compute(int32_t worker) {
  WorkerState& state = workers_[Index(worker)];
  std::vector<LaneSchedule::Arrival>& arrivals = arrived_[servers_ > 1 ? Index(worker) : 0];
  if (servers_ > 1)
    std::sort(arrivals.begin(), arrivals.end(),
              [](const auto& a, const auto& b) { return a.at < b.at; });
  ready_.clear();
  Instant cut;
  if (options_.trace != nullptr) {
    Tracer tracer{.operations = plan_.computations,
                  .trace = state.trace,
                  .worker = worker,
                  .step = state.step};
    cut = computation_.Run(state.step_begin, arrivals, state.row->durations.data(), ready_, tracer);
  } else {
    cut = computation_.Run(state.step_begin, arrivals, state.row->durations.data(), ready_,
                           LaneSchedule::Unwatched{});
  }
  arrivals.clear();
  return cut;
}

template <typename Uploads>
void PhasedRun<Uploads>::TraceAfterCut(int32_t worker, Instant cut) {
  WorkerState& state = workers_[Index(worker)];
  for (const PhaseRow::Ran& ran : state.row->ran) {
    state.trace.Add({.worker = worker,
                     .op = ran.op,
                     .step = state.step,
                     .start = cut + (ran.start - Instant{}),
                     .end = cut + (ran.end - Instant{})});
  }
}

template <typename Uploads>
void PhasedRun<Uploads>::BeginUploads(int32_t worker, Instant cut) {
  WorkerState& state = workers_[Index(worker)];
  state.phase = Phase::kUploading;
  state.last_end = state.computed_at;
  state.servers_left = 1;  // until all have begun
  FileReadyUploads(worker);
  for (int32_t server = 0; server < servers_; ++server) {
    Uploads& uploads = uploads_[Index(server)];
    if (uploads.empty()) continue;
    ++state.servers_left;
    if constexpr (!Uploads::kNeedsCut) {
      if (plan_.after_cut.empty()) uploads.BeginOwn(worker);
    }
    if (!plan_.after_cut.empty()) uploads.Begin(worker, *state.row, cut);
    GoOnUploading(worker, server);
  }
  if (--state.servers_left == 0) EndStepAt(worker);
}

// Without a cut: gives every server its part of what the step's computation said.
template <typename Uploads>
void PhasedRun<Uploads>::FileReadyUploads(int32_t worker) {
  if constexpr (!Uploads::kNeedsCut) {
    filed_.assign(Index(servers_), 0);
    for (LaneSchedule::Ready upload : ready_) {
      const int32_t server = rows_.ServerOfUpload(upload.sink);
      upload.sink = rows_.place_of_upload()[Index(upload.sink)];
      uploads_[Index(server)].OwnReady(worker)[filed_[Index(server)]++] = upload;
    }
  }
}

// The uplink is idle: sends what is in line, or waits for what will be, or is done.
template <typename Uploads>
void PhasedRun<Uploads>::GoOnUploading(int32_t worker, int32_t server) {
  WorkerState& state = workers_[Index(worker)];
  Uploads& uploads = uploads_[Index(server)];
  uploads.LineUp(worker, now_);
  const Span work = uploads.TakeBatch(worker, now_);
  if (work.ticks > 0) {
    if (state.uplinks_active++ == 0) state.uploading_since = now_;
    uplinks_[Index(server)].Start(worker, work);
    uplink_touched_[Index(server)] = true;
  } else if (!uploads.AllReady(worker)) {
    timers_.Set(TimerOf(worker, server), uploads.NextReady(worker).ticks);
  } else {
    EndUploadsTo(worker, server);
  }
}

template <typename Uploads>
void PhasedRun<Uploads>::EndUploadsTo(int32_t worker, int32_t server) {
  WorkerState& state = workers_[Index(worker)];
  Instant end = now_;
  if (!plan_.updates_on[Index(server)].empty()) {
    Uploads& uploads = uploads_[Index(server)];
    if constexpr (!Uploads::kNeedsCut) {
      Tracer tracer{.operations = plan_.updates_on[Index(server)],
                    .trace = state.trace,
                    .worker = worker,
                    .step = state.step};
      end = options_.trace == nullptr
                ? uploads.EndOfUpdates(worker, *state.row, state.step_begin)
                : uploads.EndOfUpdates(worker, *state.row, state.step_begin, tracer);
    } else {
      end = uploads.EndOfUpdates(worker, *state.row, state.step_begin);
    }
  }
  state.last_end = std::max(state.last_end, end);
  if (--state.servers_left == 0) EndStepAt(worker);
}

// Everything of the step is known: it ends with the last of it.
template <typename Uploads>
void PhasedRun<Uploads>::EndStepAt(int32_t worker) {
  WorkerState& state = workers_[Index(worker)];
  state.phase = Phase::kEnding;
  if (state.last_end == now_) {
    EndStep(worker);
  } else {
    timers_.Set(TimerOf(worker, 0), state.last_end.ticks);
  }
}

template <typename Uploads>
void PhasedRun<Uploads>::EndStep(int32_t worker) {
  WorkerState& state = workers_[Index(worker)];
  ended_.by_lane[LaneMap::kWorker] += state.row->computation;
  for (int32_t server = 0; server < servers_; ++server) {
    ended_.by_lane[Index(graph_.lanes().Server(server))] += state.row->updates[Index(server)].total;
  }
  ended_.exposed += state.exposed;
  simulated_operations_ += graph_.size();
  ++state.step;
  ledger_.OnStepEnd(worker, state.step_begin, now_);
  if (options_.trace != nullptr) {
    options_.trace->OnStep({state.trace.begin(), state.trace.end()});
    state.trace.Clear();
  }
  state.phase = Phase::kWaiting;
  if (options_.synchronization == Synchronization::kAsynchronous) BeginStep(worker);
}

template class PhasedRun<UploadLines>;
template class PhasedRun<UploadStreams>;

absl::StatusOr<RunResult> RunInPhases(const StepGraph& graph, const PhasePlan& plan,
                                      const RunOptions& options, StopCheck stop) {
  if (options.trace == nullptr && UploadStreams::Fit(graph, plan))
    return PhasedRun<UploadStreams>(graph, plan, options, stop).Go();
  return PhasedRun<UploadLines>(graph, plan, options, stop).Go();
}

}  // namespace stepcast
