// The plain engine: one event per chunk, for every graph, order, sharing rule and number of
// servers.
//
// State is flat: worker-major arrays of pending dependencies, running chunks and queues; one
// indexed heap holds an event per busy processor, and the network says when its next flow ends. An
// instant is processed whole: completions of one worker in rounds (all completions, then what they
// made ready in graph order, then stopped transfers, then idle lanes choose; zero-length work forms
// the next round), and the network settles when nothing more happens at it. Workers meet only in
// the network, so their order within an instant does not matter. Network is EqualShareLink or
// MaxMinNetwork. Threads: none.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

#include "core/base/bounded_list.h"
#include "core/base/indexed_heap.h"
#include "core/base/stop_check.h"
#include "core/base/time.h"
#include "core/engine/completions.h"
#include "core/engine/compute_speed.h"
#include "core/engine/lane_queues.h"
#include "core/engine/run_ledger.h"
#include "core/engine/simulation.h"
#include "core/engine/step_graph.h"
#include "core/engine/step_ranks.h"
#include "core/engine/step_sampler.h"
#include "core/engine/usage_meter.h"

namespace stepcast {

template <typename Network>
class PlainRun {
 public:
  PlainRun(const StepGraph& graph, const RunOptions& options, Network downlinks, Network uplinks,
           StopCheck stop)
      : graph_(graph),
        options_(options),
        stop_(stop),
        lanes_(graph.lanes().count()),
        first_connection_(graph.lanes().first_connection()),
        first_uplink_(graph.lanes().Uplink(0)),
        servers_(graph.lanes().servers),
        processors_(graph.lanes().first_connection()),
        worker_count_(static_cast<int32_t>(options.start_offsets.size())),
        networks_{std::move(downlinks), std::move(uplinks)},
        events_(static_cast<size_t>(worker_count_) * static_cast<size_t>(processors_ + 1)),
        queues_(graph, worker_count_, StepRanks::Needed(options.order)),
        ranks_(graph, options, worker_count_),
        ledger_(graph, options),
        usage_(worker_count_, graph.lanes()),
        workers_(static_cast<size_t>(worker_count_)),
        pending_(std::make_unique_for_overwrite<int32_t[]>(static_cast<size_t>(worker_count_) *
                                                           static_cast<size_t>(graph.size()))),
        running_(static_cast<size_t>(worker_count_) * static_cast<size_t>(lanes_)),
        completions_(worker_count_),
        completed_(static_cast<size_t>(lanes_)),
        ready_(static_cast<size_t>(graph.size()) + 1),  // one more for AddIf
        stopped_(static_cast<size_t>(lanes_)),
        // A lane gets on it once as completed and once for each operation that lines up.
        free_(static_cast<size_t>(lanes_) + static_cast<size_t>(graph.size())) {
    for (int32_t worker = 0; worker < worker_count_; ++worker) {
      for (LaneIndex lane = 0; lane < processors_; ++lane)
        lane_of_slot_.push_back({.worker = worker, .lane = lane});
    }
    SetSpeeds();
    if (options.trace == nullptr) return;
    for (WorkerState& state : workers_)
      state.trace = BoundedList<ChunkRecord>(static_cast<size_t>(graph.chunk_count()));
  }

  absl::StatusOr<RunResult> Go() {
    for (int32_t worker = 0; worker < worker_count_; ++worker) {
      workers_[Index(worker)].sampler = StepSampler(options_, graph_.step_count(), worker);
      events_.Set(StartSlot(worker), options_.start_offsets[Index(worker)].ticks);
    }
    while (!ledger_.Done() && status_.ok()) {
      const Instant next{
          std::min(events_.TopKey(), std::min(next_end_[0].ticks, next_end_[1].ticks))};
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
    return result;
  }

 private:
  // What takes about the time of one completed chunk: pending counts copied, and links and flows
  // looked at in sharing.
  static constexpr OpIndex kCopiesPerUnit = 64;
  static constexpr int64_t kSharesPerUnit = 16;

  struct WorkerState {
    StepSampler sampler;
    double compute_speed = 1;
    int32_t step = 0;      // completed
    int32_t recorded = 0;  // the recorded step this one was sampled from
    OpIndex operations_left = 0;
    Instant step_begin;
    BoundedList<ChunkRecord> trace{0};  // of the current step, where one is wanted
  };
  struct Running {
    Chunk chunk;
    Instant start;
  };
  struct WorkerLane {
    int32_t worker = 0;
    LaneIndex lane = 0;
  };

  static size_t Index(int32_t i) { return static_cast<size_t>(i); }
  // By lane.
  Running* RunningOf(int32_t worker) { return &running_[Index(worker) * Index(lanes_)]; }
  IndexedHeap::Slot ProcessorSlot(int32_t worker, LaneIndex lane) const {
    return worker * processors_ + lane;
  }
  IndexedHeap::Slot StartSlot(int32_t worker) const { return worker_count_ * processors_ + worker; }
  size_t DirectionOf(LaneIndex lane) const { return lane < first_uplink_ ? 0 : 1; }
  WorkerLane LaneOf(size_t direction, int32_t flow) const {
    const LaneIndex first_lane = direction == 0 ? first_connection_ : first_uplink_;
    if (servers_ == 1) return {.worker = flow, .lane = first_lane};
    return {.worker = flow / servers_, .lane = first_lane + flow % servers_};
  }
  int32_t ServerOf(LaneIndex lane) const {
    return lane - (lane < first_uplink_ ? first_connection_ : first_uplink_);
  }

  void SetSpeeds() {
    size_t worker = 0;
    for (const WorkerGroup& group : options_.worker_groups) {
      for (int32_t i = 0; i < group.count; ++i)
        workers_[worker++].compute_speed = group.compute_speed_factor.value_or(1);
    }
  }

  // Counts work, in completed chunks or what takes as long, and, every kStopCheckInterval of it,
  // asks whether to go on.
  void CheckStop(int64_t work) {
    work_until_check_ -= work;
    if (work_until_check_ > 0 || !status_.ok()) return;
    work_until_check_ = kStopCheckInterval;
    status_ = stop_();
  }

  void RunInstant(Instant now) {
    now_ = now;
    for (size_t direction = 0; direction < networks_.size(); ++direction) TakeEndedFlows(direction);
    if (!RunOneCompletion()) RunCompletions();
    if (ledger_.barrier().Full()) PassBarrier();
    for (size_t direction = 0; direction < networks_.size(); ++direction) {
      if (touched_[direction]) SettleNetwork(direction);
    }
    ledger_.OnInstantDone(now_, [this] { return TotalsNow(); });
  }

  void TakeEndedFlows(size_t direction) {
    if (next_end_[direction] != now_) return;
    networks_[direction].TakeEnded(now_, ended_[direction]);
    touched_[direction] = true;
  }

  // The commonest instants: one computation ends, or one flow, and nothing else. False, and nothing
  // done, where it is another.
  bool RunOneCompletion() {
    const bool computation = events_.TopKey() == now_.ticks;
    const size_t flows = ended_[0].size() + ended_[1].size();
    if (flows + static_cast<size_t>(computation) != 1) return false;
    WorkerLane which;
    if (computation) {
      const IndexedHeap::Slot slot = events_.Top();
      if (slot >= StartSlot(0) || !events_.HasOneTop()) return false;
      which = lane_of_slot_[Index(slot)];
    } else {
      const size_t direction = ended_[0].empty() ? 1 : 0;
      which = LaneOf(direction, ended_[direction].front());
      ended_[direction].clear();
    }
    RunRoundsAfter(which);
    if (computation) RemoveIfOver(ProcessorSlot(which.worker, which.lane));
    return true;
  }

  void RunCompletions() {
    TakeEvents();
    completions_.TakeAll([this](int32_t, LaneIndex lane) { completed_.Add(lane); },
                         [this](int32_t worker) { RunRounds(worker); });
    for (const IndexedHeap::Slot slot : events_now_) RemoveIfOver(slot);
    events_now_.clear();
  }

  void RemoveIfOver(IndexedHeap::Slot slot) {
    if (events_.Contains(slot) && events_.KeyOf(slot) == now_.ticks) events_.Remove(slot);
  }

  // Everything that ends or starts now. Processors' events stay in the queue: most of them get
  // their next key at this instant.
  void TakeEvents() {
    for (size_t direction = 0; direction < networks_.size(); ++direction) {
      for (const int32_t flow : ended_[direction]) NoteCompletion(LaneOf(direction, flow));
      ended_[direction].clear();
    }
    if (events_.TopKey() != now_.ticks) return;
    events_.AppendTops(events_now_);
    for (const IndexedHeap::Slot slot : events_now_) {
      if (slot < StartSlot(0)) {
        NoteCompletion(lane_of_slot_[Index(slot)]);
      } else {
        const int32_t worker = slot - StartSlot(0);
        events_.Remove(slot);
        ledger_.OnStart(worker, now_);
        BeginStep(worker);
        RunRounds(worker);
      }
    }
  }

  void NoteCompletion(WorkerLane which) { completions_.Note(which.worker, which.lane); }

  // All rounds of one worker at this instant: from completed_ and ready_ until nothing more ends.
  void RunRounds(int32_t worker) {
    Running* const running = RunningOf(worker);
    do {
      for (const LaneIndex lane : completed_) Complete(worker, lane, running[lane]);
      if (completed_.size() > 1) std::sort(ready_.begin(), ready_.end());
      for (const LaneIndex lane : completed_) free_.Add(lane);
      completed_.Clear();
      LineUpAll(worker);
      for (const LaneIndex lane : free_) ServeNext(worker, lane);
      free_.Clear();
    } while (!completed_.empty());
    usage_.OnSettled(worker, now_);
  }

  // The same where one lane's completion is all there is, with fewer lists.
  [[gnu::flatten]] void RunRoundsAfter(WorkerLane which) {
    Complete(which.worker, which.lane, RunningOf(which.worker)[which.lane]);
    LineUpAll(which.worker);
    ServeNext(which.worker, which.lane);
    for (const LaneIndex lane : free_) ServeNext(which.worker, lane);
    free_.Clear();
    if (!completed_.empty()) return RunRounds(which.worker);
    usage_.OnSettled(which.worker, now_);
  }

  // What this round made ready, in graph order, and what it stopped.
  void LineUpAll(int32_t worker) {
    for (const OpIndex op : ready_) LineUp(worker, graph_.lane(op), {.op = op});
    ready_.Clear();
    for (const Chunk chunk : stopped_)
      LineUp(worker, graph_.lane(chunk.op), {.op = chunk.op, .service = chunk.service + 1});
    stopped_.Clear();
  }

  // An idle lane chooses.
  void ServeNext(int32_t worker, LaneIndex lane) {
    if (RunningOf(worker)[lane].chunk) return;
    if (const Chunk next = queues_.Pop(worker, lane)) Start(worker, lane, next);
  }

  void Complete(int32_t worker, LaneIndex lane, Running& running) {
    CheckStop(1);
    const Chunk chunk = std::exchange(running.chunk, Chunk{});
    WorkerState& state = workers_[Index(worker)];
    usage_.OnChunkEnd(worker, lane);
    if (options_.trace != nullptr) {
      state.trace.Add({.worker = worker,
                       .op = chunk.op,
                       .step = state.step,
                       .service = chunk.service,
                       .start = running.start,
                       .end = now_});
    }
    if (lane >= first_connection_ && chunk.service + 1 < graph_.work(chunk.op).services) {
      stopped_.Add(chunk);
      return;
    }
    int32_t* const pending = &pending_[Index(worker) * Index(graph_.size())];
    for (const OpIndex dependent : graph_.dependents(chunk.op)) {
      ready_.AddIf(--pending[dependent] == 0, dependent);
    }
    if (--state.operations_left == 0) EndStep(worker);
  }

  // Starts at once where nothing could go before it; else it waits for the end of the round.
  void LineUp(int32_t worker, LaneIndex lane, Chunk chunk) {
    const bool idle = !RunningOf(worker)[lane].chunk;
    if (idle && queues_.NothingGoesBefore(worker, lane)) {
      Start(worker, lane, chunk);
      return;
    }
    if (idle) free_.Add(lane);
    if (chunk.service == 0) {
      queues_.Push(worker, lane, chunk.op, ranks_.RankOf(worker, chunk.op));
    } else {
      queues_.PushStopped(worker, lane, chunk);
    }
  }

  void Start(int32_t worker, LaneIndex lane, Chunk chunk) {
    RunningOf(worker)[lane] = {.chunk = chunk, .start = now_};
    if (lane >= first_connection_) {
      const size_t direction = DirectionOf(lane);
      networks_[direction].Start(worker * servers_ + ServerOf(lane),
                                 graph_.work(chunk.op).OfService(chunk.service));
      touched_[direction] = true;
      usage_.OnTransferStart(worker);
      return;
    }
    const Span duration = DurationOf(worker, lane, chunk.op);
    if (duration.ticks == 0) {
      completed_.Add(lane);
      return;
    }
    events_.Set(ProcessorSlot(worker, lane), (now_ + duration).ticks);
    usage_.OnComputationStart(worker, lane, duration);
  }

  Span DurationOf(int32_t worker, LaneIndex lane, OpIndex op) const {
    const WorkerState& state = workers_[Index(worker)];
    const Span recorded = graph_.duration(state.recorded, op);
    return lane == LaneMap::kWorker ? AtSpeed(recorded, state.compute_speed) : recorded;
  }

  void EndStep(int32_t worker) {
    WorkerState& state = workers_[Index(worker)];
    ++state.step;
    simulated_operations_ += graph_.size();
    ledger_.OnStepEnd(worker, state.step_begin, now_);
    if (options_.trace != nullptr) {
      options_.trace->OnStep({state.trace.begin(), state.trace.end()});
      state.trace.Clear();
    }
    if (options_.synchronization == Synchronization::kAsynchronous) BeginStep(worker);
  }

  // Makes the roots ready; RunRounds does the rest.
  void BeginStep(int32_t worker) {
    WorkerState& state = workers_[Index(worker)];
    state.step_begin = now_;
    state.operations_left = graph_.size();
    state.recorded = state.sampler.Next(state.step);
    ranks_.BeginStep(worker, state.recorded);
    std::memcpy(&pending_[Index(worker) * Index(graph_.size())], graph_.dependency_counts().data(),
                Index(graph_.size()) * sizeof(int32_t));
    for (const OpIndex root : graph_.roots()) ready_.Add(root);
    CheckStop(graph_.size() / kCopiesPerUnit);
  }

  void PassBarrier() {
    ledger_.barrier().Pass(now_);
    for (int32_t worker = 0; worker < worker_count_ && status_.ok(); ++worker) {
      BeginStep(worker);
      RunRounds(worker);
    }
  }

  void SettleNetwork(size_t direction) {
    touched_[direction] = false;
    next_end_[direction] = networks_[direction].Settle(now_);
    CheckStop(networks_[direction].settle_cost() / kSharesPerUnit);
  }

  UsageWindow::Totals TotalsNow() const {
    UsageWindow::Totals totals{.by_lane = std::vector<UsageWindow::Ticks>(Index(lanes_)),
                               .exposed = usage_.ExposedUntil(now_)};
    for (LaneIndex lane = 0; lane < lanes_; ++lane) {
      UsageWindow::Ticks& done = totals.by_lane[Index(lane)];
      if (lane >= first_connection_) {
        done = networks_[DirectionOf(lane)].CarriedBy(now_, ServerOf(lane));
        continue;
      }
      done = usage_.ComputedOn(lane);
      for (int32_t worker = 0; worker < worker_count_; ++worker) {
        const IndexedHeap::Slot slot = ProcessorSlot(worker, lane);
        if (events_.Contains(slot)) done -= events_.KeyOf(slot) - now_.ticks;
      }
    }
    return totals;
  }

  const StepGraph& graph_;
  const RunOptions& options_;
  const StopCheck stop_;
  const LaneIndex lanes_;
  const LaneIndex first_connection_;
  const LaneIndex first_uplink_;
  const int32_t servers_;
  const LaneIndex processors_;  // lanes per worker that are no connections
  const int32_t worker_count_;
  std::array<Network, 2> networks_;                          // down, up
  std::array<Instant, 2> next_end_{kEndOfTime, kEndOfTime};  // of a flow
  std::array<bool, 2> touched_{};
  IndexedHeap events_;
  LaneQueues queues_;
  StepRanks ranks_;
  RunLedger ledger_;
  UsageMeter usage_;
  std::vector<WorkerState> workers_;
  std::unique_ptr<int32_t[]> pending_;    // dependencies left, by worker and operation
  std::vector<Running> running_;          // by worker and lane
  std::vector<WorkerLane> lane_of_slot_;  // of processors
  Instant now_;
  absl::Status status_;
  int64_t work_until_check_ = 0;
  int64_t simulated_operations_ = 0;
  // Of the instant and the round at hand; members only to keep their memory.
  std::vector<IndexedHeap::Slot> events_now_;
  Completions completions_;
  std::array<std::vector<int32_t>, 2>
      ended_;  // flows, by direction; empty from one instant to the next
  BoundedList<LaneIndex> completed_;
  BoundedList<OpIndex> ready_;
  BoundedList<Chunk> stopped_;
  BoundedList<LaneIndex> free_;  // to choose anew
};

}  // namespace stepcast
