#include "core/engine/phased_run.h"

#include <algorithm>
#include <map>
#include <utility>

#include "core/engine/sorted_uploads.h"
#include "core/engine/upload_lines.h"
#include "core/engine/upload_streams.h"
#include "core/network/logged_first_come_link.h"
#include "core/network/logged_link.h"
#include "core/network/logged_max_min_network.h"
#include "core/network/turns_link.h"

namespace stepcast {

namespace {

// Chunks whose part of one phase of a step (what is drawn for the first time, what is looked up,
// the computation, the uploads) takes about as long as one does in the plain engine.
constexpr int64_t kChunksPerPart = 32;
// Flows of a link that are looked at in about that time.
constexpr int64_t kFlowsPerPart = 8;
// The cost of a step however small it is.
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

}  // namespace

template <typename Uploads, RememberingLink Link>
PhasedRun<Uploads, Link>::PhasedRun(const JobGraph& job, const PhasePlan& plan,
                                    const RunOptions& options, StopCheck stop, const Link& inbound,
                                    const Link& outbound)
    : job_(job),
      graph_(*job.programs.front()),
      plan_(plan),
      options_(options),
      stop_(stop),
      worker_count_(static_cast<int32_t>(options.start_offsets.size())),
      hubs_(job.lanes().CountOf(PhasePlan::kInbound)),
      inbound_(Index(hubs_), inbound),
      outbound_(Index(hubs_), outbound),
      next_download_(Index(hubs_), kEndOfTime),
      next_upload_(next_download_),
      inbound_touched_(Index(hubs_), 0),
      outbound_touched_(inbound_touched_),
      timers_(Index(worker_count_) * Index(hubs_)),
      rows_(graph_, plan, options.trace != nullptr, /*streamed=*/Uploads::kNeedsCut),
      ranks_(job, options),
      downloads_(job, plan, options.trace != nullptr, kAddsChunks),
      ledger_(job, options),
      workers_(Index(worker_count_)),
      ended_{.by_lane = std::vector<UsageWindow::Ticks>(Index(job.lanes().count()))},
      arrived_(hubs_ > 1 ? Index(worker_count_) : 1) {
  for (int32_t hub = 0; hub < hubs_; ++hub) uploads_.emplace_back(graph_, plan, hub, worker_count_);
  if constexpr (requires { Link::kSharesNetwork; }) {
    for (int32_t hub = 0; hub < hubs_; ++hub) {
      inbound_[Index(hub)].SetHub(hub);
      outbound_[Index(hub)].SetHub(hub);
    }
  }
  SetSpeeds();
  if (options.trace == nullptr) return;
  for (WorkerState& state : workers_)
    state.trace = BoundedList<ChunkRecord>(static_cast<size_t>(graph_.chunk_count()));
}

template <typename Uploads, RememberingLink Link>
void PhasedRun<Uploads, Link>::SetSpeeds() {
  std::map<double, int32_t> classes;
  for (int32_t worker = 0; worker < worker_count_; ++worker) {
    const double speed = job_.compute_speed(worker);
    workers_[Index(worker)].compute_speed = speed;
    workers_[Index(worker)].speed_class =
        classes.try_emplace(speed, static_cast<int32_t>(classes.size())).first->second;
  }
}

template <typename Uploads, RememberingLink Link>
absl::StatusOr<RunResult> PhasedRun<Uploads, Link>::Go() {
  for (int32_t worker = 0; worker < worker_count_; ++worker) {
    workers_[Index(worker)].sampler = StepSampler(job_, options_, worker);
    timers_.Set(TimerOf(worker, 0), options_.start_offsets[Index(worker)].ticks);
  }
  // The lanes' schedules were made.
  CheckStop(graph_.chunk_count() / kChunksPerPart);
  while (!ledger_.Done() && status_.ok()) {
    if constexpr (requires { Link::kSharesNetwork; }) RunChunks();
    if constexpr (kRunsAlone) {
      if (hubs_ == 1 && outbound_.front().active() <= 1) RunAlone();
    }
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

template <typename Uploads, RememberingLink Link>
Instant PhasedRun<Uploads, Link>::NextEvent() const {
  Instant next = timers_.empty() ? kEndOfTime : Instant{timers_.TopKey()};
  for (size_t hub = 0; hub < next_download_.size(); ++hub)
    next = std::min({next, next_download_[hub], next_upload_[hub]});
  return next;
}

// A worker that has the outbound link for itself sends and waits in turns until something else
// happens, or its last batch is under way: nobody else would notice the instants in between.
template <typename Uploads, RememberingLink Link>
void PhasedRun<Uploads, Link>::RunAlone() {
  if constexpr (kRunsAlone) {
    Link& link = outbound_.front();
    Uploads& uploads = uploads_.front();
    const bool sends = link.active() == 1;
    if (!sends && timers_.empty()) return;
    const int32_t worker = sends ? link.OnlyFlow() : timers_.Top();
    WorkerState& state = workers_[Index(worker)];
    Instant next = sends ? next_upload_.front() : Instant{timers_.TopKey()};
    Instant limit =
        std::min(next_download_.front(), Instant{sends ? timers_.TopKey() : timers_.SecondKey()});
    if (ledger_.Lasts()) limit = std::min(limit, options_.until + Span{1});
    if (next >= limit || state.phase != Phase::kUploading || (sends && uploads.SendsLast(worker)))
      return;
    auto use = link.BeginLoneUse();
    bool is_sending = sends;
    const auto expose = [&](Instant end) {
      state.exposed +=
          std::max<int64_t>(0, (end - std::max(state.uploading_since, state.computed_at)).ticks);
    };
    if (sends) {
      uploads.EndBatch(worker, next, link);
      expose(next);
    }
    for (;;) {
      const Instant now = next;
      uploads.LineUp(worker, now);
      const Span work = uploads.TakeBatch(worker, now);
      CheckStop(1 + uploads.ChunksOfBatch(worker) / kChunksPerPart);
      if (is_sending != (work.ticks > 0)) {
        use.anchor = now;
        use.virtual_anchor = use.virtual_now;
      }
      is_sending = work.ticks > 0;
      use.work = work;
      use.carried += work.ticks;
      if (is_sending) state.uploading_since = now;
      next = is_sending ? now + work : uploads.NextReady(worker);
      if (next >= limit || uploads.SendsLast(worker) || !status_.ok()) break;
      if (!is_sending) continue;
      uploads.EndBatchAlone(worker, now, next);
      expose(next);
      use.virtual_now += work.ticks;
    }
    link.EndLoneUse(worker, use);
    state.outbound_active = is_sending ? 1 : 0;
    next_upload_.front() = is_sending ? next : kEndOfTime;
    if (is_sending) {
      timers_.Remove(TimerOf(worker, 0));
    } else {
      timers_.Set(TimerOf(worker, 0), next.ticks);
    }
  }
}

// Lets networks that know what follows a chunk go on by themselves until something else happens.
template <typename Uploads, RememberingLink Link>
void PhasedRun<Uploads, Link>::RunChunks() {
  Instant others = timers_.empty() ? kEndOfTime : Instant{timers_.TopKey()};
  // Chunks past the run's end are not begun, for the run is looked at as it is at its end.
  if (ledger_.Lasts()) others = std::min(others, options_.until + Span{1});
  const auto run = [&](Link& link, Instant limit, std::vector<Instant>& next) {
    const Instant before = next.front();
    std::fill(next.begin(), next.end(), link.RunChunks(limit));
    CheckStop(link.settle_cost() / kFlowsPerPart);
    return next.front() != before;
  };
  bool goes_on = true;
  while (goes_on && status_.ok()) {
    goes_on = run(inbound_.front(), std::min(others, next_upload_.front()), next_download_);
    goes_on =
        run(outbound_.front(), std::min(others, next_download_.front()), next_upload_) || goes_on;
  }
}

template <typename Uploads, RememberingLink Link>
void PhasedRun<Uploads, Link>::RunInstant(Instant now) {
  now_ = now;
  for (int32_t hub = 0; hub < hubs_; ++hub) {
    if (next_download_[Index(hub)] == now) TakeDownloads(hub);
    if (next_upload_[Index(hub)] == now) TakeUploads(hub);
  }
  TakeTimers();
  if (ledger_.meetings().HasFull()) {
    ledger_.meetings().PassFull(now_, [this](OpIndex, std::span<const int32_t> workers) {
      for (const int32_t worker : workers) BeginStep(worker);
    });
  }
  Settle();
  ledger_.OnInstantDone(now_, [this] { return TotalsNow(); });
}

template <typename Uploads, RememberingLink Link>
void PhasedRun<Uploads, Link>::Settle() {
  Settle(inbound_, inbound_touched_, next_download_);
  Settle(outbound_, outbound_touched_, next_upload_);
}

template <typename Uploads, RememberingLink Link>
void PhasedRun<Uploads, Link>::Settle(std::vector<Link>& links, std::vector<uint8_t>& touched,
                                      std::vector<Instant>& next) {
  if constexpr (requires { Link::kSharesNetwork; }) {
    if (std::find(touched.begin(), touched.end(), 1) == touched.end()) return;
    std::fill(next.begin(), next.end(), links.front().Settle(now_));
    CheckStop(links.front().settle_cost() / kFlowsPerPart);
    std::fill(touched.begin(), touched.end(), 0);
  } else {
    for (size_t hub = 0; hub < links.size(); ++hub) {
      if (!touched[hub]) continue;
      next[hub] = links[hub].Settle(now_);
      CheckStop(links[hub].settle_cost() / kFlowsPerPart);
      touched[hub] = 0;
    }
  }
}

template <typename Uploads, RememberingLink Link>
void PhasedRun<Uploads, Link>::TakeDownloads(int32_t hub) {
  flows_.clear();
  inbound_[Index(hub)].TakeEnded(now_, flows_);
  inbound_touched_[Index(hub)] = 1;
  for (const int32_t worker : flows_) {
    WorkerState& state = workers_[Index(worker)];
    if (state.row->downloads.empty()) {
      ReadArrivals(worker, hub, state.downloads->phases[Index(hub)].total,
                   arrived_[hubs_ > 1 ? Index(worker) : 0]);
    }
    if (--state.hubs_left == 0) EndDownloads(worker);
  }
}

template <typename Uploads, RememberingLink Link>
void PhasedRun<Uploads, Link>::TakeUploads(int32_t hub) {
  flows_.clear();
  outbound_[Index(hub)].TakeEnded(now_, flows_);
  outbound_touched_[Index(hub)] = 1;
  for (const int32_t worker : flows_) {
    WorkerState& state = workers_[Index(worker)];
    const Link& link = outbound_[Index(hub)];
    if constexpr (!Uploads::kNeedsCut) {
      uploads_[Index(hub)].EndBatch(worker, now_, link.Read(worker),
                                    [&](OpIndex op, int32_t service, Instant start, Instant end) {
                                      if (options_.trace == nullptr) return;
                                      state.trace.Add({.worker = worker,
                                                       .op = op,
                                                       .step = state.step,
                                                       .service = service,
                                                       .start = start,
                                                       .end = end});
                                    });
    } else {
      uploads_[Index(hub)].EndBatch(worker, now_, link);
    }
    if (--state.outbound_active == 0)
      state.exposed +=
          std::max<int64_t>(0, (now_ - std::max(state.uploading_since, state.computed_at)).ticks);
    GoOnUploading(worker, hub);
  }
}

template <typename Uploads, RememberingLink Link>
void PhasedRun<Uploads, Link>::TakeTimers() {
  while (!timers_.empty() && timers_.TopKey() == now_.ticks) {
    const IndexedHeap::Slot slot = timers_.Pop();
    const int32_t worker = slot / hubs_;
    switch (workers_[Index(worker)].phase) {
      case Phase::kUploading:
        GoOnUploading(worker, slot % hubs_);
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

template <typename Uploads, RememberingLink Link>
void PhasedRun<Uploads, Link>::BeginStep(int32_t worker) {
  WorkerState& state = workers_[Index(worker)];
  const int32_t recorded = state.sampler.Next(state.step);
  ranks_.BeginStep(worker, recorded);
  state.downloads = downloads_.Of(recorded, ranks_.RanksOf(worker));
  CheckStop(graph_.chunk_count() / kChunksPerPart);
  state.row = &rows_.Of(state.speed_class, state.compute_speed, recorded, *state.downloads,
                        ranks_.AreShuffled(worker) ? nullptr : ranks_.RanksOf(worker));
  state.phase = Phase::kDownloading;
  state.step_begin = now_;
  state.exposed = 0;
  state.hubs_left = 0;
  for (int32_t hub = 0; hub < hubs_; ++hub) {
    const PhasePlan::DownloadPhase& phase = state.downloads->phases[Index(hub)];
    if (phase.total.ticks == 0) continue;
    ++state.hubs_left;
    StartFlow(inbound_[Index(hub)], worker, phase.total, [&](auto& chunks) {
      for (const Span work : state.downloads->chunks[Index(hub)]) chunks.Add(work);
    });
    inbound_touched_[Index(hub)] = 1;
  }
  CheckStop(graph_.chunk_count() / kChunksPerPart + kUnitsPerStep);
}

// Appends the downloads that have arrived while the worker's flow carried so much, and traces their
// chunks if all have.
template <typename Uploads, RememberingLink Link>
void PhasedRun<Uploads, Link>::ReadArrivals(int32_t worker, int32_t hub, Span carried,
                                            std::vector<LaneSchedule::Arrival>& arrivals) {
  WorkerState& state = workers_[Index(worker)];
  const PhasePlan::DownloadPhase& phase = state.downloads->phases[Index(hub)];
  const bool traced = options_.trace != nullptr && carried == phase.total;
  auto reader = inbound_[Index(hub)].Read(worker);
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

template <typename Uploads, RememberingLink Link>
void PhasedRun<Uploads, Link>::EndDownloads(int32_t worker) {
  WorkerState& state = workers_[Index(worker)];
  const Instant cut = state.row->downloads.empty() ? Compute(worker) : CutOf(worker);
  state.computed_at = cut + state.row->after_cut;
  // After the last arrival the worker computes without a break until all is done, so what it has
  // not done by then was done before.
  const int64_t busy_before =
      static_cast<int64_t>(state.row->computation) - (state.computed_at - now_).ticks;
  state.exposed = (now_ - state.step_begin).ticks - busy_before;
  if (options_.trace != nullptr) TraceAfterCut(worker, cut);
  CheckStop(graph_.chunk_count() / kChunksPerPart);
  BeginUploads(worker, cut);
}

// Runs the step's computation, up to the cut; returns when that was reached.
template <typename Uploads, RememberingLink Link>
Instant PhasedRun<Uploads, Link>::Compute(int32_t worker) {
  WorkerState& state = workers_[Index(worker)];
  std::vector<LaneSchedule::Arrival>& arrivals = arrived_[hubs_ > 1 ? Index(worker) : 0];
  if (hubs_ > 1)
    std::sort(arrivals.begin(), arrivals.end(),
              [](const auto& a, const auto& b) { return a.at < b.at; });
  ready_.clear();
  Instant cut;
  if (options_.trace != nullptr) {
    Tracer tracer{.operations = plan_.computations,
                  .trace = state.trace,
                  .worker = worker,
                  .step = state.step};
    cut = state.downloads->computation->Run(state.step_begin, arrivals, state.row->durations.data(),
                                            ready_, tracer);
  } else {
    cut = state.downloads->computation->Run(state.step_begin, arrivals, state.row->durations.data(),
                                            ready_, LaneSchedule::Unwatched{});
  }
  arrivals.clear();
  return cut;
}

// The same, from the arrivals that can decide it.
template <typename Uploads, RememberingLink Link>
Instant PhasedRun<Uploads, Link>::CutOf(int32_t worker) const {
  const WorkerState& state = workers_[Index(worker)];
  const int64_t before_cut =
      static_cast<int64_t>(state.row->computation) - state.row->after_cut.ticks;
  auto reader = inbound_.front().Read(worker);
  Instant cut = state.step_begin + Span{before_cut};
  for (const PhaseRow::Decisive& download : state.row->downloads)
    cut = std::max(cut, reader.After(download.work) + download.after);
  return cut;
}

template <typename Uploads, RememberingLink Link>
void PhasedRun<Uploads, Link>::TraceAfterCut(int32_t worker, Instant cut) {
  WorkerState& state = workers_[Index(worker)];
  for (const PhaseRow::Ran& ran : state.row->ran) {
    state.trace.Add({.worker = worker,
                     .op = ran.op,
                     .step = state.step,
                     .start = cut + (ran.start - Instant{}),
                     .end = cut + (ran.end - Instant{})});
  }
}

template <typename Uploads, RememberingLink Link>
void PhasedRun<Uploads, Link>::BeginUploads(int32_t worker, Instant cut) {
  WorkerState& state = workers_[Index(worker)];
  state.phase = Phase::kUploading;
  state.last_end = state.computed_at;
  state.hubs_left = 1;  // until all have begun
  FileReadyUploads(worker);
  for (int32_t hub = 0; hub < hubs_; ++hub) {
    Uploads& uploads = uploads_[Index(hub)];
    if (uploads.empty()) continue;
    ++state.hubs_left;
    if constexpr (!Uploads::kNeedsCut) {
      if (plan_.after_cut.empty()) uploads.BeginOwn(worker);
    }
    if (!plan_.after_cut.empty()) uploads.Begin(worker, *state.row, cut);
    if constexpr (Uploads::kRanked) uploads.Rank(worker, *state.row, ranks_.RanksOf(worker));
    GoOnUploading(worker, hub);
  }
  if (--state.hubs_left == 0) EndStepAt(worker);
}

// Without a cut: gives every hub its part of what the step's computation said.
template <typename Uploads, RememberingLink Link>
void PhasedRun<Uploads, Link>::FileReadyUploads(int32_t worker) {
  if constexpr (!Uploads::kNeedsCut) {
    filed_.assign(Index(hubs_), 0);
    for (LaneSchedule::Ready upload : ready_) {
      const int32_t hub = rows_.HubOfUpload(upload.sink);
      upload.sink = rows_.place_of_upload()[Index(upload.sink)];
      uploads_[Index(hub)].OwnReady(worker)[filed_[Index(hub)]++] = upload;
    }
  }
}

// The outbound link is idle: sends what is in line, or waits for what will be, or is done.
template <typename Uploads, RememberingLink Link>
void PhasedRun<Uploads, Link>::GoOnUploading(int32_t worker, int32_t hub) {
  WorkerState& state = workers_[Index(worker)];
  Uploads& uploads = uploads_[Index(hub)];
  uploads.LineUp(worker, now_);
  const Span work = uploads.TakeBatch(worker, now_);
  if (work.ticks > 0) {
    CheckStop(1 + uploads.ChunksOfBatch(worker) / kChunksPerPart);
    if (state.outbound_active++ == 0) state.uploading_since = now_;
    StartFlow(outbound_[Index(hub)], worker, work,
              [&](auto& chunks) { uploads.AddBatchTo(worker, chunks); });
    outbound_touched_[Index(hub)] = 1;
  } else if (!uploads.AllReady(worker)) {
    timers_.Set(TimerOf(worker, hub), uploads.NextReady(worker).ticks);
  } else {
    EndUploadsTo(worker, hub);
  }
}

template <typename Uploads, RememberingLink Link>
void PhasedRun<Uploads, Link>::EndUploadsTo(int32_t worker, int32_t hub) {
  WorkerState& state = workers_[Index(worker)];
  Instant end = now_;
  if (!plan_.updates_on[Index(hub)].empty()) {
    Uploads& uploads = uploads_[Index(hub)];
    if constexpr (!Uploads::kNeedsCut) {
      Tracer tracer{.operations = plan_.updates_on[Index(hub)],
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
  if (--state.hubs_left == 0) EndStepAt(worker);
}

// Everything of the step is known: it ends with the last of it.
template <typename Uploads, RememberingLink Link>
void PhasedRun<Uploads, Link>::EndStepAt(int32_t worker) {
  WorkerState& state = workers_[Index(worker)];
  state.phase = Phase::kEnding;
  if (state.last_end == now_) {
    EndStep(worker);
  } else {
    timers_.Set(TimerOf(worker, 0), state.last_end.ticks);
  }
}

template <typename Uploads, RememberingLink Link>
void PhasedRun<Uploads, Link>::EndStep(int32_t worker) {
  CheckStop(graph_.chunk_count() / kChunksPerPart);
  WorkerState& state = workers_[Index(worker)];
  ended_.by_lane[PhasePlan::kComputation] += state.row->computation;
  for (int32_t hub = 0; hub < hubs_; ++hub) {
    ended_.by_lane[Index(PhasePlan::HubLane(hub))] += state.row->updates[Index(hub)].total;
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
  if (!ledger_.meetings().Couples(worker, kStepEnd)) BeginStep(worker);
}

namespace {

// True if an upload may have a rank in some step.
bool RanksUploads(const JobGraph& job, const PhasePlan& plan) {
  if (job.rankings.empty()) return false;
  const Ranking& ranking = *job.rankings.front();
  if (ranking.rule == Ranking::Rule::kArrival) return false;
  if (ranking.rule == Ranking::Rule::kShuffled) return true;
  const size_t size = Index(job.programs.front()->size());
  for (size_t row = 0; row < ranking.ranks.size(); row += size) {
    for (const OpIndex op : plan.uploads) {
      if (ranking.ranks[row + Index(op)] != Ranking::kUnranked) return true;
    }
  }
  return false;
}

template <RememberingLink Link>
absl::StatusOr<RunResult> RunOver(const JobGraph& job, const PhasePlan& plan,
                                  const RunOptions& options, StopCheck stop, const Link& inbound,
                                  const Link& outbound) {
  const bool fit = options.trace == nullptr && UploadStreams::Fit(*job.programs.front(), plan);
  if (absl::Status status = stop(); !status.ok()) return status;
  if (RanksUploads(job, plan)) {
    if (fit && job.rankings.front()->rule != Ranking::Rule::kShuffled)
      return PhasedRun<SortedUploads, Link>(job, plan, options, stop, inbound, outbound).Go();
    return PhasedRun<RankedUploadLines, Link>(job, plan, options, stop, inbound, outbound).Go();
  }
  if (fit) return PhasedRun<UploadStreams, Link>(job, plan, options, stop, inbound, outbound).Go();
  return PhasedRun<UploadLines, Link>(job, plan, options, stop, inbound, outbound).Go();
}

}  // namespace

absl::StatusOr<RunResult> RunInPhases(const JobGraph& job, const PhasePlan& plan,
                                      const RunOptions& options, bool own_links_bind,
                                      StopCheck stop) {
  const size_t workers = options.start_offsets.size();
  const NetworkSpec& inbound = job.networks[PhasePlan::kInbound];
  const NetworkSpec& outbound = job.networks[PhasePlan::kOutbound];
  if (own_links_bind) {
    const auto links_of = [&](int32_t network) {
      const int32_t hubs = job.lanes().CountOf(network);
      return LoggedMaxMinNetwork::Link(std::make_shared<LoggedMaxMinNetwork>(
          hubs, job.networks[Index(network)].CapacitiesOf(job.workers(), hubs)));
    };
    return RunOver(job, plan, options, stop, links_of(PhasePlan::kInbound),
                   links_of(PhasePlan::kOutbound));
  }
  if (inbound.sharing == NetworkSpec::Sharing::kTurns) {
    return RunOver(job, plan, options, stop, LoggedTurnsLink(workers, inbound.turn),
                   LoggedTurnsLink(workers, outbound.turn));
  }
  if (inbound.sharing == NetworkSpec::Sharing::kFirstCome) {
    return RunOver(job, plan, options, stop, LoggedFirstComeLink(workers),
                   LoggedFirstComeLink(workers));
  }
  return RunOver(job, plan, options, stop, LoggedLink(workers), LoggedLink(workers));
}

}  // namespace stepcast
