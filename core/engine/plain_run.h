// The plain engine: one event per chunk, for every job.
//
// State is flat: worker-major arrays of pending dependencies, running chunks and queues; one
// indexed heap holds an event per busy processor, and the network says when its next flow ends. An
// instant is processed whole: completions of one worker in rounds (all completions, then what they
// made ready in graph order, then stopped transfers, then idle lanes choose; zero-length work forms
// the next round). Then meetings that are full and releases of other workers begin rounds of their
// own, worker by worker, until nothing more happens; then networks settle. Workers meet nowhere
// else, so their order within an instant does not matter. With gatherings all workers go from round
// to round together, and what the completions of a round gather is ready in it. Threads: none.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

#include "core/base/bounded_list.h"
#include "core/base/indexed_heap.h"
#include "core/base/stop_check.h"
#include "core/base/time.h"
#include "core/engine/completions.h"
#include "core/engine/job_graph.h"
#include "core/engine/joint_sequence.h"
#include "core/engine/lane_queues.h"
#include "core/engine/peer_releases.h"
#include "core/engine/plain_run_state.h"
#include "core/engine/program.h"
#include "core/engine/run_ledger.h"
#include "core/engine/simulation.h"
#include "core/engine/step_ranks.h"
#include "core/engine/usage_meter.h"
#include "core/network/network.h"

namespace stepcast {

template <Network N>
class PlainRun : private PlainRunState {
 public:
  // One network for each of the job's. All must outlive it.
  PlainRun(const JobGraph& job, const RunOptions& options, std::vector<N> networks, StopCheck stop)
      : job_(job),
        options_(options),
        stop_(stop),
        lanes_(job.lanes()),
        lane_count_(lanes_.count()),
        first_link_(lanes_.first_link()),
        worker_count_(job.workers()),
        only_program_(job.programs.size() == 1 ? job.programs.front().get() : nullptr),
        size_(LargestOf(job)),
        networks_(std::move(networks)),
        network_count_(networks_.size()),
        next_end_(networks_.size(), kEndOfTime),
        touched_(networks_.size(), false),
        events_(Index(worker_count_) * Index(first_link_ + 1)),
        queues_(job, StepRanks::Needed(job)),
        ranks_(job, options),
        ledger_(job, options),
        releases_(job),
        joint_(job),
        couples_operations_(ledger_.meetings().couples_operations()),
        waits_for_peers_(releases_.has_edges()),
        gathers_(releases_.has_gatherings()),
        joins_(!job.joint.ops.empty()),
        can_merge_(AreAlike(job, options)),
        holds_back_(couples_operations_ || joins_),
        meets_(waits_for_peers_ || joins_ || !job.couplings.empty()),
        slows_(job.slows_computation()),
        scales_(options.scaling != nullptr),
        paces_(job.joint.has_paces()),
        usage_(worker_count_, lanes_),
        workers_(Index(worker_count_)),
        pending_(std::make_unique_for_overwrite<int32_t[]>(Index(worker_count_) * Index(size_))),
        running_(Index(worker_count_) * Index(lane_count_)),
        completions_(worker_count_),
        next_(gathers_ ? worker_count_ : 0),
        ended_(networks_.size()),
        // With networks that forward, a link's lane once more as delivered.
        completed_(Index(kForwards ? 2 * lane_count_ : lane_count_)),
        ready_(Index(size_) + 1),  // one more for AddIf
        stopped_(Index(lane_count_)),
        // A lane gets on it once as completed and once for each operation that lines up.
        free_(Index(lane_count_) + Index(size_)) {
    for (LaneIndex lane = 0; lane < lane_count_; ++lane) {
      const LaneSpec& spec = lanes_[lane];
      routes_.push_back(lanes_.IsLink(lane) ? Route{.network = Index(spec.network),
                                                    .lanes = lanes_.CountOf(spec.network),
                                                    .index = spec.index}
                                            : Route{});
    }
    for (int32_t network = 0; network < lanes_.networks(); ++network)
      first_lanes_.push_back(lanes_.FirstOf(network));
    for (int32_t worker = 0; worker < worker_count_; ++worker) {
      for (LaneIndex lane = 0; lane < first_link_; ++lane)
        lane_of_slot_.push_back({.worker = worker, .lane = lane});
      WorkerState& state = workers_[Index(worker)];
      state.program = &job.program(worker);
      state.sampler = StepSampler(job, options, worker);
      state.compute_speed = job.compute_speed(worker);
      if (options.trace != nullptr)
        state.trace = BoundedList<ChunkRecord>(static_cast<size_t>(state.program->chunk_count()));
      if (slows_) state.clock.SetLevel(Instant{}, kFullSpeed);
    }
    if (slows_) virtual_ends_.resize(Index(worker_count_) * Index(first_link_));
    if (paces_) computes_.resize(Index(worker_count_), 0);
    if constexpr (kForwards) on_their_way_.resize(running_.size());
  }

  absl::StatusOr<RunResult> Go() {
    for (int32_t worker = 0; worker < worker_count_; ++worker)
      events_.Set(StartSlot(worker), options_.start_offsets[Index(worker)].ticks);
    while (!ledger_.Done() && status_.ok()) {
      Instant next{events_.TopKey()};
      for (size_t network = 0; network < network_count_; ++network)
        next = std::min(next, next_end_[network]);
      if (joins_) next = std::min({next, joint_.NextEnd(), joint_.NextBegin()});
      if (ledger_.EndsBefore(next)) {
        now_ = options_.until;
        break;
      }
      if (next >= kEndOfTime) return SimulatedTimeExhausted();
      RunInstant(next);
      if (std::exchange(begun_now_, 0) == worker_count_ && can_merge_ && alike_ == 1) Merge();
    }
    if (!status_.ok()) return status_;
    RunResult result = ledger_.Finish(now_, TotalsNow());
    result.simulated_operations = simulated_operations_;
    result.joint_times = joint_.times();
    return result;
  }

 private:
  // True if a lane may go on when the network has its chunk, before that is delivered.
  static constexpr bool kForwards = requires(N network, Instant now, std::vector<int32_t>& flows) {
    network.TakeDelivered(now, flows);
  };

  // The work that takes about the time of one completed chunk: pending counts copied, and links and
  // flows looked at in sharing.
  static constexpr OpIndex kCopiesPerUnit = 64;
  static constexpr int64_t kSharesPerUnit = 16;

  // A worker's computation without a transfer under way.
  static constexpr LinkLevel kFullSpeed{.residual = LinkLevel::kUnit, .flows = 1};

  // The one program of most jobs is nearer at hand.
  const Program& ProgramOf(const WorkerState& state) const {
    return only_program_ != nullptr ? *only_program_ : *state.program;
  }
  // By lane.
  Running* RunningOf(int32_t worker) { return &running_[Index(worker) * Index(lane_count_)]; }
  int32_t* PendingOf(int32_t worker) { return &pending_[Index(worker) * Index(size_)]; }
  IndexedHeap::Slot ProcessorSlot(int32_t worker, LaneIndex lane) const {
    return worker * first_link_ + lane;
  }
  IndexedHeap::Slot StartSlot(int32_t worker) const { return worker_count_ * first_link_ + worker; }
  WorkerLane LaneOf(size_t network, int32_t flow) const {
    const LaneIndex first = first_lanes_[network];
    const int32_t count = routes_[Index(first)].lanes;
    if (count == 1) return {.worker = flow, .lane = first};
    return {.worker = flow / count, .lane = first + flow % count};
  }

  // All workers have begun a step at this instant, all of which has happened: from now on the first
  // stands for all.
  void Merge() {
    for (const WorkerState& state : workers_) {
      if (state.step != workers_.front().step) return;
    }
    for (int32_t worker = 1; worker < worker_count_; ++worker) {
      for (LaneIndex lane = 0; lane < first_link_; ++lane)
        events_.Remove(ProcessorSlot(worker, lane));
      if (paces_) computing_ -= std::exchange(computes_[Index(worker)], 0);
    }
    alike_ = worker_count_;
    joint_.Merge();
    usage_.Merge();
    ledger_.Merge();
  }
  // Number of workers that are simulated, each for alike_ of them.
  int32_t LookedAt() const { return worker_count_ / alike_; }

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
    for (size_t network = 0; network < network_count_; ++network) TakeEndedFlows(network);
    const bool joint_ends = joins_ && joint_.NextEnd() == now;
    if (joint_ends) NoteEndedJoint();
    if (joint_ends || !RunOneCompletion()) RunCompletions();
    while (meets_ && HasMeetings() && status_.ok()) RunMeetings();
    if (slows_) SetRates();
    for (size_t network = 0; network < network_count_; ++network) {
      if (touched_[network] != 0) SettleNetwork(network);
    }
    ledger_.OnInstantDone(now_, [this] { return TotalsNow(); });
  }

  void TakeEndedFlows(size_t network) {
    if (next_end_[network] != now_) return;
    if constexpr (kForwards) {
      networks_[network].TakeEnded(now_, handed_over_);
      networks_[network].TakeDelivered(now_, ended_[network]);
      // A worker's lanes are taken the last noted first: what is handed over before what arrives.
      for (const int32_t flow : ended_[network]) NoteDelivery(LaneOf(network, flow));
      for (const int32_t flow : handed_over_) NoteCompletion(LaneOf(network, flow));
      handed_over_.clear();
      ended_[network].clear();
    } else {
      networks_[network].TakeEnded(now_, ended_[network]);
      ended_flows_ += ended_[network].size();
    }
    touched_[network] = 1;
  }

  // The commonest instants: one computation ends, or one flow, and nothing else. False, and nothing
  // done, where it is another.
  bool RunOneCompletion() {
    if (kForwards || gathers_) return false;
    const bool computation = events_.TopKey() == now_.ticks;
    if (ended_flows_ + static_cast<size_t>(computation) != 1) return false;
    WorkerLane which;
    if (computation) {
      const IndexedHeap::Slot slot = events_.Top();
      if (slot >= StartSlot(0) || !events_.HasOneTop()) return false;
      which = lane_of_slot_[Index(slot)];
    } else {
      size_t network = 0;
      while (ended_[network].empty()) ++network;
      which = LaneOf(network, ended_[network].front());
      ended_[network].clear();
      ended_flows_ = 0;
    }
    RunRoundsAfter(which);
    if (computation) RemoveIfOver(ProcessorSlot(which.worker, which.lane));
    return true;
  }

  void RunCompletions() {
    TakeEvents();
    RunCompleted();
    for (const IndexedHeap::Slot slot : events_now_) RemoveIfOver(slot);
    events_now_.clear();
  }

  void RemoveIfOver(IndexedHeap::Slot slot) {
    if (events_.Contains(slot) && events_.KeyOf(slot) == now_.ticks) events_.Remove(slot);
  }

  // Everything that ends or starts now. Processors' events stay in the queue: most of them get
  // their next key at this instant.
  void TakeEvents() {
    for (size_t network = 0; network < network_count_; ++network) {
      for (const int32_t flow : ended_[network]) NoteCompletion(LaneOf(network, flow));
      ended_[network].clear();
    }
    ended_flows_ = 0;
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

  // On every worker.
  [[gnu::noinline]] void NoteEndedJoint() {
    joint_.TakeEnded(now_, joint_ended_);
    for (const int32_t slot : joint_ended_) {
      for (int32_t worker = 0; worker < LookedAt(); ++worker)
        NoteCompletion({.worker = worker, .lane = lanes_.first_joint() + slot});
    }
    joint_ended_.clear();
  }

  void NoteCompletion(WorkerLane which) { completions_.Note(which.worker, which.lane); }
  void NoteDelivery(WorkerLane which) { completions_.Note(which.worker, lane_count_ + which.lane); }

  // The rounds that begin with completions_, however many.
  void RunCompleted() {
    do {
      if (gathers_) GatherAll();
      completions_.TakeAll(
          [this](int32_t, int32_t what) {
            what < FirstReady() ? completed_.Add(what) : ready_.Add(what - FirstReady());
          },
          [this](int32_t worker) { RunRounds(worker); });
    } while (TakeNext());
  }
  bool TakeNext() {
    if (!next_.empty()) std::swap(completions_, next_);
    return !completions_.empty();
  }
  // The least number that stands for an operation that is ready, those below for what ended.
  int32_t FirstReady() const { return 2 * lane_count_; }

  // Notes what the gatherings that completions_ complete make ready.
  [[gnu::noinline]] void GatherAll() {
    completions_.ForEach([this](int32_t worker, int32_t what) {
      const LaneIndex lane = what % lane_count_;
      Chunk chunk = RunningOf(worker)[lane].chunk;
      if constexpr (kForwards) {
        if (lanes_.IsLink(lane)) {
          if (what < lane_count_) return;
          OnTheirWay& of = on_their_way_[Index(worker) * Index(lane_count_) + Index(lane)];
          if (const size_t at = of.gathered++; at < of.chunks.size()) chunk = of.chunks[at].chunk;
        }
      }
      if (lanes_.IsLink(lane) &&
          chunk.service + 1 < ProgramOf(workers_[Index(worker)]).work(chunk.op).services)
        return;
      releases_.Gather(worker, chunk.op, [this](int32_t waiting, OpIndex op) {
        if (--PendingOf(waiting)[op] == 0) completions_.Note(waiting, FirstReady() + op);
      });
    });
  }

  // All rounds of one worker at this instant: from completed_ and ready_ until nothing more ends.
  // With gatherings only the first; the next one is noted.
  void RunRounds(int32_t worker) {
    Running* const running = RunningOf(worker);
    do {
      for (const LaneIndex lane : completed_) {
        if constexpr (kForwards) {
          if (lane >= lane_count_) {
            Deliver(worker, lane - lane_count_);
            continue;
          }
          free_.Add(lane);
          if (lane >= first_link_) {
            HandOver(worker, lane, running[lane]);
            continue;
          }
        }
        Complete(worker, lane, running[lane]);
      }
      if (completed_.size() > 1 || gathers_) std::sort(ready_.begin(), ready_.end());
      if constexpr (!kForwards) {
        for (const LaneIndex lane : completed_) free_.Add(lane);
      }
      completed_.Clear();
      LineUpAll(worker);
      for (const LaneIndex lane : free_) ServeNext(worker, lane);
      free_.Clear();
    } while (!completed_.empty() && !gathers_);
    NoteNext(worker);
    OnSettled(worker);
  }
  void NoteNext(int32_t worker) {
    for (const LaneIndex lane : completed_) next_.Note(worker, lane);
    completed_.Clear();
  }

  // The same where one lane's completion is all there is, with fewer lists.
  [[gnu::flatten]] void RunRoundsAfter(WorkerLane which) {
    Complete(which.worker, which.lane, RunningOf(which.worker)[which.lane]);
    LineUpAll(which.worker);
    ServeNext(which.worker, which.lane);
    for (const LaneIndex lane : free_) ServeNext(which.worker, lane);
    free_.Clear();
    if (!completed_.empty()) return RunRounds(which.worker);
    OnSettled(which.worker);
  }

  // All of the worker's instant has happened, so far.
  void OnSettled(int32_t worker) {
    usage_.OnSettled(worker, now_);
    if (slows_) settled_.push_back(worker);
  }

  // Lines up the operations that this round made ready, in graph order, and those that it stopped.
  void LineUpAll(int32_t worker) {
    const Program& program = ProgramOf(workers_[Index(worker)]);
    for (const OpIndex op : ready_) {
      if (holds_back_ && Meets(worker, op)) continue;
      LineUp(worker, program.lane(op), {.op = op});
    }
    ready_.Clear();
    for (const Chunk chunk : stopped_)
      LineUp(worker, program.lane(chunk.op), {.op = chunk.op, .service = chunk.service + 1});
    stopped_.Clear();
  }

  // Out of line, as is all that few jobs have: the loop around it is the product's innermost.
  [[gnu::noinline]] bool Meets(int32_t worker, OpIndex op) {
    if (lanes_.IsJoint(ProgramOf(workers_[Index(worker)]).lane(op))) {
      joint_.Arrive(op, now_);
      usage_.OnJointReady(worker);
      return true;
    }
    if (!couples_operations_ || !ledger_.meetings().Couples(worker, op)) return false;
    ledger_.meetings().Arrive(worker, op, now_);
    return true;
  }
  [[gnu::noinline]] void TellPeers(int32_t worker, OpIndex op) { releases_.End(worker, op); }
  // The time that a computation takes at the rate at hand; notes its end on the worker's clock.
  [[gnu::noinline]] Span AtRate(int32_t worker, LaneIndex lane, Span duration) {
    const LevelClock& clock = workers_[Index(worker)].clock;
    const int64_t end = clock.VirtualAt(now_) + duration.ticks;
    virtual_ends_[Index(ProcessorSlot(worker, lane))] = end;
    return clock.InstantOf(end) - now_;
  }

  // Begins what full meetings and other workers' ends release, each worker in rounds of its own.
  void RunMeetings() {
    ledger_.meetings().PassFull(now_, [this](OpIndex op, std::span<const int32_t> members) {
      for (const int32_t worker : members) {
        if (!status_.ok()) return;
        if (op == kStepEnd) {
          BeginStep(worker);
        } else {
          LineUp(worker, workers_[Index(worker)].program->lane(op), {.op = op});
          if (gathers_) NoteNext(worker);
        }
        RunRounds(worker);
      }
      if (TakeNext()) RunCompleted();
    });
    releases_.TakeReleased(
        [this](int32_t worker, OpIndex op) { ready_.AddIf(--PendingOf(worker)[op] == 0, op); },
        [this](int32_t worker) { RunRounds(worker); });
    if (TakeNext()) RunCompleted();
    if (joins_) RunJoint();
  }

  // Begins what is ready on all workers, and ends what takes no time.
  void RunJoint() {
    while (joint_.CanBegin(now_)) {
      const JointSequence::Begun begun = joint_.Begin(now_);
      for (int32_t worker = 0; worker < LookedAt(); ++worker) {
        RunningOf(worker)[lanes_.first_joint() + begun.slot] = {
            .chunk = {.op = begun.op, .service = begun.slot}, .start = now_};
        usage_.OnJointStart(worker);
        OnSettled(worker);
      }
      CheckStop(LookedAt());
    }
    if (joint_.NextEnd() != now_) return;
    NoteEndedJoint();
    RunCompleted();
  }

  bool HasMeetings() {
    return ledger_.meetings().HasFull() || releases_.HasReleased() ||
           (joins_ && (joint_.CanBegin(now_) || joint_.NextEnd() == now_));
  }

  void SetRates() {
    for (const int32_t worker : settled_) SetRate(worker);
    if (paces_) {
      for (const int32_t worker : settled_) {
        const auto computes = static_cast<uint8_t>(usage_.IsComputing(worker));
        computing_ += computes - std::exchange(computes_[Index(worker)], computes);
      }
      joint_.OnInstantEnd(now_, computing_ > 0);
    }
    settled_.clear();
  }
  LinkLevel RateOf(int32_t worker) const {
    if (paces_) return joint_.pace() != nullptr ? joint_.pace()->computation : kFullSpeed;
    return usage_.IsCommunicating(worker) ? job_.overlapped_speed : kFullSpeed;
  }
  // The worker's computation goes on at the speed that its transfers leave it.
  void SetRate(int32_t worker) {
    WorkerState& state = workers_[Index(worker)];
    const LinkLevel rate = RateOf(worker);
    if (rate == state.clock.level()) return;
    state.clock.SetLevel(now_, rate);
    for (LaneIndex lane = 0; lanes_.IsCompute(lane); ++lane) {
      const IndexedHeap::Slot slot = ProcessorSlot(worker, lane);
      if (!events_.Contains(slot) || events_.KeyOf(slot) <= now_.ticks) continue;
      const int64_t end = state.clock.InstantOf(virtual_ends_[Index(slot)]).ticks;
      usage_.OnComputationProlonged(lane, {end - events_.KeyOf(slot)});
      events_.Set(slot, end);
    }
  }

  // An idle lane chooses.
  void ServeNext(int32_t worker, LaneIndex lane) {
    if (RunningOf(worker)[lane].chunk) return;
    if (const Chunk next = queues_.Pop(worker, lane)) Start(worker, lane, next);
  }

  // The lane's network has all of the chunk.
  void HandOver(int32_t worker, LaneIndex lane, Running& running) {
    CheckStop(1);
    on_their_way_[Index(worker) * Index(lane_count_) + Index(lane)].chunks.push_back(running);
    const Chunk chunk = std::exchange(running.chunk, Chunk{});
    if (chunk.service + 1 < ProgramOf(workers_[Index(worker)]).work(chunk.op).services)
      stopped_.Add(chunk);
  }

  // The first of the lane's chunks that are on their way has arrived, and counts as begun when the
  // one before had.
  void Deliver(int32_t worker, LaneIndex lane) {
    OnTheirWay& of = on_their_way_[Index(worker) * Index(lane_count_) + Index(lane)];
    Running first = of.chunks.front();
    of.chunks.pop_front();
    if (gathers_) --of.gathered;
    first.start = std::max(first.start, std::exchange(of.last, now_));
    Complete(worker, lane, first);
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
    const Program& program = ProgramOf(state);
    if (lane >= first_link_ && chunk.service + 1 < program.work(chunk.op).services) {
      if constexpr (!kForwards) stopped_.Add(chunk);
      return;
    }
    int32_t* const pending = PendingOf(worker);
    for (const OpIndex dependent : program.dependents(chunk.op)) {
      ready_.AddIf(--pending[dependent] == 0, dependent);
    }
    if (waits_for_peers_) TellPeers(worker, chunk.op);
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
    WorkerState& state = workers_[Index(worker)];
    if (lane >= first_link_) {
      const Route& route = routes_[Index(lane)];
      networks_[route.network].Start(worker * route.lanes + route.index,
                                     ProgramOf(state).work(chunk.op).OfService(chunk.service));
      touched_[route.network] = 1;
      usage_.OnTransferStart(worker);
      return;
    }
    const Span recorded = ProgramOf(state).duration(state.recorded, chunk.op);
    const bool computes = lanes_.IsCompute(lane);
    Span duration = computes ? AtSpeed(recorded, state.compute_speed) : recorded;
    if (duration.ticks == 0) {
      usage_.OnComputationStart(worker, lane, duration);
      completed_.Add(lane);
      return;
    }
    // Hubs' processors are no worker's.
    if (scales_ && lanes_[lane].role != LaneRole::kHub)
      duration = {InWholeNanoseconds(duration).ticks / StepScaling::kUnit * state.sampler.scale()};
    if (slows_ && computes) duration = AtRate(worker, lane, duration);
    events_.Set(ProcessorSlot(worker, lane), (now_ + duration).ticks);
    usage_.OnComputationStart(worker, lane, duration);
  }

  void EndStep(int32_t worker) {
    WorkerState& state = workers_[Index(worker)];
    ++state.step;
    simulated_operations_ += int64_t{ProgramOf(state).size()} * alike_;
    ledger_.OnStepEnd(worker, state.step_begin, now_);
    if (options_.trace != nullptr) {
      options_.trace->OnStep({state.trace.begin(), state.trace.end()});
      state.trace.Clear();
    }
    if (!ledger_.meetings().Couples(worker, kStepEnd)) BeginStep(worker);
  }

  // Makes the roots ready; RunRounds does the rest.
  void BeginStep(int32_t worker) {
    WorkerState& state = workers_[Index(worker)];
    state.step_begin = now_;
    ++begun_now_;
    if (joins_) joint_.OnStepBegin(now_);
    const Program& program = ProgramOf(state);
    state.operations_left = program.size();
    state.recorded = state.sampler.Next(state.step);
    ranks_.BeginStep(worker, state.recorded);
    int32_t* const pending = PendingOf(worker);
    std::memcpy(pending, program.dependency_counts().data(),
                Index(program.size()) * sizeof(int32_t));
    if (waits_for_peers_ || gathers_) releases_.BeginStep(worker, pending);
    for (const OpIndex root : program.roots()) ready_.AddIf(pending[root] == 0, root);
    CheckStop(program.size() / kCopiesPerUnit);
  }

  void SettleNetwork(size_t network) {
    touched_[network] = 0;
    next_end_[network] = networks_[network].Settle(now_);
    CheckStop(networks_[network].settle_cost() / kSharesPerUnit);
  }

  UsageWindow::Totals TotalsNow() const {
    UsageWindow::Totals totals{.by_lane = std::vector<UsageWindow::Ticks>(Index(lane_count_)),
                               .exposed = usage_.ExposedUntil(now_),
                               .waiting = usage_.WaitingUntil(now_)};
    for (LaneIndex lane = 0; lane < lane_count_; ++lane) {
      UsageWindow::Ticks& done = totals.by_lane[Index(lane)];
      if (lanes_.IsLink(lane)) {
        done = networks_[Index(lanes_[lane].network)].CarriedBy(now_, lanes_[lane].index);
        continue;
      }
      if (lanes_.IsJoint(lane)) {
        // Joint lanes are told of together, at the first.
        if (lane == lanes_.first_joint())
          done = static_cast<UsageWindow::Ticks>(joint_.BusyUntil(now_)) * worker_count_;
        continue;
      }
      done = usage_.ComputedOn(lane);
      for (int32_t worker = 0; worker < LookedAt(); ++worker) {
        const IndexedHeap::Slot slot = ProcessorSlot(worker, lane);
        if (events_.Contains(slot))
          done -= UsageWindow::Ticks{events_.KeyOf(slot) - now_.ticks} * alike_;
      }
    }
    return totals;
  }

  const JobGraph& job_;
  const RunOptions& options_;
  const StopCheck stop_;
  const Lanes& lanes_;
  const LaneIndex lane_count_;
  const LaneIndex first_link_;
  const int32_t worker_count_;
  const Program* const only_program_;   // null: several
  const OpIndex size_;                  // of the largest program
  std::vector<Route> routes_;           // by lane; of links
  std::vector<LaneIndex> first_lanes_;  // by network
  std::vector<N> networks_;
  const size_t network_count_;
  std::vector<Instant> next_end_;  // by network: of a flow
  std::vector<uint8_t> touched_;   // by network
  IndexedHeap events_;
  LaneQueues queues_;
  StepRanks ranks_;
  RunLedger ledger_;
  PeerReleases releases_;
  JointSequence joint_;
  const bool couples_operations_;
  const bool waits_for_peers_;
  const bool gathers_;
  const bool joins_;
  const bool can_merge_;
  const bool holds_back_;  // operations that are ready, for other workers
  const bool meets_;
  const bool slows_;
  const bool scales_;
  const bool paces_;  // by the joint operation under way
  UsageMeter usage_;
  std::vector<WorkerState> workers_;
  std::unique_ptr<int32_t[]> pending_;    // dependencies left, by worker and operation
  std::vector<Running> running_;          // by worker and lane
  std::vector<OnTheirWay> on_their_way_;  // likewise, where networks forward
  std::vector<WorkerLane> lane_of_slot_;  // of processors
  std::vector<int64_t> virtual_ends_;     // of processors, on their worker's clock, where it slows
  std::vector<uint8_t> computes_;         // by worker, where joint operations have paces
  int32_t computing_ = 0;                 // of them
  Instant now_;
  absl::Status status_;
  int64_t work_until_check_ = 0;
  int64_t simulated_operations_ = 0;
  int32_t begun_now_ = 0;  // workers that begin a step at the instant at hand
  int32_t alike_ = 1;      // see Merge
  // Scratch of the instant and the round at hand; members only to keep their memory.
  std::vector<IndexedHeap::Slot> events_now_;
  Completions completions_;                  // of the round at hand
  Completions next_;                         // of the next one, where workers gather
  std::vector<std::vector<int32_t>> ended_;  // flows, by network; empty between instants
  std::vector<int32_t> handed_over_;         // likewise, of one network
  std::vector<int32_t> joint_ended_;         // slots; empty between instants
  std::vector<int32_t> settled_;  // workers, perhaps several times; where transfers slow them down
  size_t ended_flows_ = 0;        // of all networks
  BoundedList<LaneIndex> completed_;
  BoundedList<OpIndex> ready_;
  BoundedList<Chunk> stopped_;
  BoundedList<LaneIndex> free_;  // to choose anew
};

}  // namespace stepcast
