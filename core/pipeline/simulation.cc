#include "core/pipeline/simulation.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <deque>
#include <optional>
#include <queue>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

#include "core/base/error.h"
#include "core/base/random.h"
#include "core/pipeline/fair_links.h"

namespace stepcast {
namespace {

// Times of gloo over TCP, measured with PyTorch 1.13 (tests/testbed): a send takes its caller's
// time where the receiver waits already (a copy into the socket) and where not; a send of no more
// than the socket's buffer is over soon after its transfer began; a link queues so much of other
// connections before a notification.
constexpr Span kSendToWaiting = Microseconds(400);
constexpr Span kSendToNobody = Microseconds(100);
constexpr Span kSendIsOver = Microseconds(1000);
constexpr double kSocketBytes = 2.5e6;
constexpr double kQueuedBytes = 0.9e6;

// Bits of a micro-batch's number.
int32_t BitsOf(int32_t micro_batches) { return std::bit_width(Index(micro_batches - 1)); }

enum class Happening : uint8_t {
  kComputed,
  kSpent,         // the time that a send takes of its caller
  kBucketReady,   // index: stage x replica; part: reduction
  kLatencyOver,   // of a pair's first transfer, on links that devices share
  kTransferred,   // of a pair's first transfer, on others
  kSendOver,      // index: device
  kNotified,      // of a pair's first notification
  kReducedAlone,  // of a device's first reduction
  kFlowsEnd,      // part: version
  kTailOver,
};

struct Event {
  int64_t at = 0;
  int64_t order = 0;
  Happening kind = Happening::kComputed;
  int32_t index = 0;
  int64_t part = 0;

  friend bool operator>(const Event& a, const Event& b) {
    return a.at != b.at ? a.at > b.at : a.order > b.order;
  }
};

class Simulation {
 public:
  Simulation(const PipelineJob& job, StopCheck stop, PipelineLog* log);
  absl::StatusOr<PipelineRun> Run();

 private:
  struct Message {
    bool sent = false;
    bool posted = false;
    bool arrived = false;
  };
  // A computation of a device's order, alike in all replicas: its stage, and the messages of the
  // first replica that it waits for and makes; -1: none.
  struct Slot {
    PipelineWork work;
    int32_t stage = 0;
    int32_t input = -1;
    int32_t output = -1;
  };
  // The ends of a message.
  struct Ends {
    int32_t from = 0;  // devices
    int32_t to = 0;
    int64_t bytes = 0;
    int32_t pair = 0;

    bool IsLocal() const { return from == to; }
  };
  // In the queue of an ordered pair: a message, or the notification of its receive.
  struct Queued {
    int32_t message = 0;
    bool is_notification = false;
  };
  struct Pair {
    std::deque<Queued> queue;
    bool busy = false;
    int64_t begun = 0;  // of what is first
  };
  struct Device {
    int32_t rank = 0;           // of its replica
    int32_t first_message = 0;  // of its replica's
    size_t next = 0;            // of its order
    bool busy = false;
    int32_t waits = 0;  // sends that it waits for before it goes on
    int32_t sends = 0;  // under way
    int32_t reductions = 0;
    int32_t step = 0;
    bool in_tail = false;
    bool posted = false;  // the receive of `next`
    int32_t in_flight = 0;
    int64_t begun = 0;  // of what it computes, or of its step's end
    int64_t computes_until = 0;
    int64_t step_begun = 0;
  };
  struct Ring {
    std::deque<std::pair<int32_t, size_t>> queue;  // stage and reduction; stage -1: the gather
    bool busy = false;
    int64_t begun = 0;
    int32_t updated = 0;  // replicas whose tail is over, before the gather
  };

  const PipelineJob& job_;
  PacedStopCheck stop_;
  PipelineLog* const log_;
  int32_t p_, m_, stages_, replicas_;
  bool split_;
  int64_t now_ = 0;
  int64_t order_ = 0;
  double bytes_per_tick_;
  std::priority_queue<Event, std::vector<Event>, std::greater<>> events_;
  std::vector<std::vector<Slot>> orders_;  // by device of a replica
  std::vector<int32_t> last_of_stage_;     // index in its device's order, by stage
  // By replica, direction and stage: a message is 2^way_bits_ times that, and its micro-batch.
  std::vector<Ends> ways_;
  int32_t way_bits_;
  std::vector<Device> devices_;
  std::vector<Message> messages_;
  std::vector<Pair> pairs_;
  std::vector<Ring> rings_;
  std::vector<std::vector<int32_t>> ready_;  // by stage and reduction, replicas that are ready
  // Transfers of a pair, and rings of a device, on links that devices share.
  FairLinks flows_;
  int64_t flows_version_ = 0;
  std::vector<int32_t> ended_in_step_;
  int32_t barrier_count_ = 0;
  PipelineRun run_;

  int32_t ReplicaOf(int32_t x) const { return x / p_; }
  int32_t RankOf(int32_t x) const { return devices_[Index(x)].rank; }
  const std::vector<Slot>& OrderOf(int32_t x) const { return orders_[Index(RankOf(x))]; }
  void Push(int64_t at, Happening kind, int32_t index, int64_t part = 0) {
    events_.push({at, order_++, kind, index, part});
  }
  bool IsFused() const {
    return job_.receives == PipelineReceives::kFused || job_.receives == PipelineReceives::kPaired;
  }
  bool IsGloo() const { return job_.transport == PipelineTransport::kGloo; }
  double ScaleOf(int32_t x) const {
    const double scale = job_.scale.empty() ? 1 : job_.scale[Index(x)];
    if (job_.step_scale.empty()) return scale;
    return scale *
           job_.step_scale[Index(std::min(devices_[Index(x)].step, job_.steps - 1))][Index(x)];
  }

  Slot SlotOf(int32_t rank, const PipelineWork& work) const;
  void AddWays(int32_t first);
  // A message of the first replica, or none, in the replica of a device.
  int32_t OfReplica(int32_t x, int32_t message) const {
    return message < 0 ? -1 : message + devices_[Index(x)].first_message;
  }
  int32_t InputOf(int32_t x, const Slot& slot) const { return OfReplica(x, slot.input); }
  int32_t OutputOf(int32_t x, const Slot& slot) const { return OfReplica(x, slot.output); }
  const Ends& EndsOf(int32_t message) const { return ways_[Index(message >> way_bits_)]; }
  int32_t PairOf(int32_t from, int32_t to) const {
    return from * 2 + (RankOf(to) == (RankOf(from) + 1) % p_ ? 0 : 1);
  }

  void BeginStep(int32_t x);
  void PostReceive(int32_t x, int32_t message);
  void Send(int32_t x, int32_t message, bool waited);
  void Meet(int32_t message);
  void Serve(int32_t pair);
  void Notify(int32_t pair);
  void Transfer(int32_t pair);
  void Arrive(int32_t pair);
  void SendOver(int32_t x, bool waited);
  void Advance(int32_t x);
  void Compute(int32_t x);
  void Computed(int32_t x);
  void PostNext(int32_t x);
  void AfterBackward(int32_t x, int32_t stage);
  void ReadyToReduce(int32_t stage, size_t reduction);
  const StageReduction& FirstOf(int32_t rank) const;
  void TailOver(int32_t x);
  void ServeRing(int32_t rank);
  void Reduced(int32_t rank);
  void EndStep(int32_t x);
  void Handle(const Event& event);
  PipelineSlice SliceOf(PipelineSlice::Kind kind, int32_t x, int64_t begun) const;
  int64_t LoggedAs(int32_t step, int32_t message) const;
  void LogComputation(int32_t x, const Slot& slot);
  void LogTransfer(int32_t message, int64_t begun);
  void LogReduction(int32_t rank, const Ring& ring);
  void LogEndOfStep(int32_t x);
  void EndFlows();
  void ShareLinks();
  Span TimeOf(int32_t x, const Slot& slot) const;
  std::vector<bool> fused_sends_;  // by message: its sender waits for it
};

Simulation::Simulation(const PipelineJob& job, StopCheck stop, PipelineLog* log)
    : job_(job),
      stop_(stop),
      log_(log),
      p_(job.layout.devices),
      m_(job.layout.micro_batches),
      stages_(job.layout.stages()),
      replicas_(job.replicas),
      split_(SplitsBackward(job.layout.schedule)),
      bytes_per_tick_(job.bytes_per_second / 1e9 / static_cast<double>(kTicksPerNanosecond)),
      last_of_stage_(Index(stages_)),
      way_bits_(BitsOf(m_)),
      devices_(Index(p_ * replicas_)),
      messages_((size_t{2} * Index(replicas_) * Index(stages_)) << way_bits_),
      pairs_(Index(p_ * replicas_) * 2),
      rings_(Index(p_)),
      flows_(devices_.size() * 2, bytes_per_tick_),
      ended_in_step_(Index(job.steps)),
      fused_sends_(messages_.size()) {
  for (int32_t rank = 0; rank < p_; ++rank) {
    std::vector<Slot>& order = orders_.emplace_back();
    for (const PipelineWork& work : stepcast::OrderOf(job.layout, rank)) {
      order.push_back(SlotOf(rank, work));
      if (work.part == PipelinePart::kBackward || work.part == PipelinePart::kBackwardWeight)
        last_of_stage_[Index(order.back().stage)] = static_cast<int32_t>(order.size() - 1);
    }
  }
  for (int32_t x = 0; x < p_ * replicas_; ++x)
    devices_[Index(x)] = {.rank = x % p_, .first_message = ReplicaOf(x) * 2 * stages_ << way_bits_};
  for (int32_t first = 0; first < p_ * replicas_; first += p_) AddWays(first);
  for (const auto& of_stage : job.reductions) ready_.emplace_back(of_stage.size());
  run_.step_ends.resize(Index(job.steps));
  run_.computation.resize(devices_.size());
  run_.chunks_in_flight.resize(Index(p_));
  run_.ends.resize(devices_.size());
}

Simulation::Slot Simulation::SlotOf(int32_t rank, const PipelineWork& work) const {
  Slot slot{.work = work, .stage = job_.layout.StageOf(rank, work.chunk)};
  if (work.part == PipelinePart::kBackwardWeight) return slot;
  const bool forward = work.part == PipelinePart::kForward;
  const auto into = [&](int32_t stage) {
    return (((forward ? 0 : stages_) + stage) << way_bits_) + work.micro_batch;
  };
  if (slot.stage != (forward ? 0 : stages_ - 1)) slot.input = into(slot.stage);
  if (slot.stage != (forward ? stages_ - 1 : 0))
    slot.output = into(slot.stage + (forward ? 1 : -1));
  return slot;
}

// The ends of all messages of the replica whose first device is `first`.
void Simulation::AddWays(int32_t first) {
  for (const int32_t step : {-1, 1}) {
    for (int32_t stage = 0; stage < stages_; ++stage) {
      const int32_t source = stage + step;
      Ends& way = ways_.emplace_back();
      if (source < 0 || source >= stages_) continue;
      way.from = first + job_.layout.DeviceOf(source);
      way.to = first + job_.layout.DeviceOf(stage);
      way.bytes = job_.output_bytes[Index(std::min(source, stage))];
      way.pair = PairOf(way.from, way.to);
      if (job_.links == PipelineLinks::kSerial)
        way.pair = std::min(way.pair, PairOf(way.to, way.from));
    }
  }
}

Span Simulation::TimeOf(int32_t x, const Slot& slot) const {
  const PipelineWork& work = slot.work;
  size_t drawn = 0;
  if (job_.times.size() > 1) {
    Random random({job_.seed, static_cast<uint64_t>(x),
                   static_cast<uint64_t>(devices_[Index(x)].step),
                   static_cast<uint64_t>(work.micro_batch)});
    drawn = random.Below(job_.times.size());
  }
  const StageTimes& times = job_.times[drawn][Index(slot.stage)];
  Span span = times.forward;
  if (work.part == PipelinePart::kBackwardWeight) {
    span = times.backward_weight;
  } else if (work.part != PipelinePart::kForward) {
    span = times.backward;
    if (work.part == PipelinePart::kBackward && work.micro_batch == m_ - 1)
      span += times.last_backward_extra;
  }
  const double scale = ScaleOf(x);
  if (scale == 1) return span;
  return {std::llround(static_cast<double>(span.ticks) * scale)};
}

void Simulation::BeginStep(int32_t x) {
  Device& device = devices_[Index(x)];
  device.next = 0;
  device.step_begun = now_;
  device.in_tail = false;
  device.reductions = 0;
  for (int32_t chunk = 0; chunk < job_.layout.chunks; ++chunk)
    device.reductions +=
        static_cast<int32_t>(job_.reductions[Index(job_.layout.StageOf(RankOf(x), chunk))].size());
  device.posted = false;
  if (job_.receives == PipelineReceives::kEager) {
    for (const Slot& slot : OrderOf(x)) {
      const int32_t message = InputOf(x, slot);
      if (message >= 0) PostReceive(x, message);
    }
    device.posted = true;
  }
  Advance(x);
}

void Simulation::PostReceive(int32_t x, int32_t message) {
  const Ends& ends = EndsOf(message);
  if (ends.IsLocal()) return;
  if (!IsGloo()) {
    messages_[Index(message)].posted = true;
    Meet(message);
    return;
  }
  const int32_t back = PairOf(x, ends.from);
  pairs_[Index(back)].queue.push_back({message, true});
  Serve(back);
}

void Simulation::Send(int32_t x, int32_t message, bool waited) {
  Message& state = messages_[Index(message)];
  if (EndsOf(message).IsLocal()) {
    state.arrived = true;
    return;
  }
  Device& device = devices_[Index(x)];
  ++device.sends;
  if (waited) ++device.waits;
  fused_sends_[Index(message)] = waited;
  if (IsGloo()) {
    device.busy = true;
    Push(now_ + (state.posted ? kSendToWaiting : kSendToNobody).ticks, Happening::kSpent, x);
  }
  state.sent = true;
  Meet(message);
}

void Simulation::Meet(int32_t message) {
  const Message& state = messages_[Index(message)];
  if (!state.sent || !state.posted) return;
  const int32_t pair = EndsOf(message).pair;
  pairs_[Index(pair)].queue.push_back({message, false});
  Serve(pair);
}

void Simulation::Serve(int32_t index) {
  Pair& pair = pairs_[Index(index)];
  while (!pair.busy && !pair.queue.empty()) {
    pair.busy = true;
    pair.begun = now_;
    const Queued first = pair.queue.front();
    if (first.is_notification) {
      // Behind what other connections of its device have queued on the link.
      const double queued = flows_.LeftOn(index / 2 * 2, now_);
      const double wait = std::min(queued, kQueuedBytes) / bytes_per_tick_;
      Push(now_ + std::llround(wait), Happening::kNotified, index);
      return;
    }
    const Ends& ends = EndsOf(first.message);
    if (IsGloo()) {
      const double beyond = std::max(0.0, static_cast<double>(ends.bytes) - kSocketBytes);
      Push(now_ + kSendIsOver.ticks + std::llround(beyond / bytes_per_tick_), Happening::kSendOver,
           ends.from, fused_sends_[Index(first.message)] ? 1 : 0);
    }
    const bool free = ends.bytes == 0 || std::isinf(bytes_per_tick_);
    const bool shared = !free && job_.links == PipelineLinks::kDevice;
    const double sending = free || shared ? 0 : static_cast<double>(ends.bytes) / bytes_per_tick_;
    Push(now_ + job_.latency.ticks + std::llround(sending),
         shared ? Happening::kLatencyOver : Happening::kTransferred, index);
  }
}

void Simulation::Notify(int32_t index) {
  Pair& pair = pairs_[Index(index)];
  const int32_t message = pair.queue.front().message;
  pair.queue.pop_front();
  pair.busy = false;
  messages_[Index(message)].posted = true;
  Meet(message);
  Serve(index);
}

void Simulation::Transfer(int32_t index) {
  const Ends& ends = EndsOf(pairs_[Index(index)].queue.front().message);
  flows_.Add({.index = index}, static_cast<double>(ends.bytes), {ends.from * 2, ends.to * 2 + 1},
             now_);
}

void Simulation::Arrive(int32_t index) {
  Pair& pair = pairs_[Index(index)];
  const int32_t message = pair.queue.front().message;
  pair.queue.pop_front();
  pair.busy = false;
  const Ends& ends = EndsOf(message);
  messages_[Index(message)] = {.arrived = true};
  if (log_ != nullptr) LogTransfer(message, pair.begun);
  Serve(index);
  if (!IsGloo()) SendOver(ends.from, fused_sends_[Index(message)]);
  Advance(ends.to);
}

void Simulation::SendOver(int32_t x, bool waited) {
  Device& device = devices_[Index(x)];
  --device.sends;
  if (waited) --device.waits;
  Advance(x);
}

// Begins what can begin now.
void Simulation::Advance(int32_t x) {
  Device& device = devices_[Index(x)];
  if (device.busy || device.in_tail || device.waits > 0 || device.step >= job_.steps) return;
  if (device.next == OrderOf(x).size()) {
    if (device.sends > 0 || device.reductions > 0) return;
    device.in_tail = true;
    device.begun = now_;
    double scale = 1;
    for (int32_t replica = 0; replica < replicas_; ++replica) {
      const double other = ScaleOf(replica * p_ + RankOf(x));
      scale = replica == 0 ? other : std::max(scale, other);
    }
    const auto tail = static_cast<double>(job_.tails[Index(RankOf(x))].ticks);
    Push(now_ + std::llround(tail * scale), Happening::kTailOver, x);
    return;
  }
  const int32_t input = InputOf(x, OrderOf(x)[device.next]);
  if (!device.posted) {
    device.posted = true;
    if (input >= 0) PostReceive(x, input);
    // It may have come at once, and this been called for it.
    if (device.busy) return;
  }
  if (input >= 0 && !messages_[Index(input)].arrived) return;
  if (input >= 0) messages_[Index(input)].arrived = false;
  Compute(x);
}

void Simulation::Compute(int32_t x) {
  Device& device = devices_[Index(x)];
  const Slot& slot = OrderOf(x)[device.next];
  const Span span = TimeOf(x, slot);
  device.busy = true;
  device.begun = now_;
  device.computes_until = now_ + span.ticks;
  run_.computation[Index(x)] += span;
  if (slot.work.part == PipelinePart::kForward) {
    ++device.in_flight;
    if (x < p_)
      run_.chunks_in_flight[Index(x)] = std::max(run_.chunks_in_flight[Index(x)], device.in_flight);
  }
  if (HasBuckets(job_.reduction) &&
      static_cast<int32_t>(device.next) == last_of_stage_[Index(slot.stage)]) {
    const std::vector<StageReduction>& all = job_.reductions[Index(slot.stage)];
    for (size_t i = 0; i < all.size(); ++i) {
      const auto before = static_cast<double>(all[i].before_end.ticks) * ScaleOf(x);
      const auto at = std::max<int64_t>(0, span.ticks - std::llround(before));
      Push(now_ + at, Happening::kBucketReady, slot.stage, static_cast<int64_t>(i));
    }
  }
  Push(now_ + span.ticks, Happening::kComputed, x);
}

void Simulation::Computed(int32_t x) {
  Device& device = devices_[Index(x)];
  const std::vector<Slot>& order = OrderOf(x);
  const Slot& slot = order[device.next];
  device.busy = false;
  if (log_ != nullptr) LogComputation(x, slot);
  if (device.step == 0) run_.ends[Index(x)].push_back({now_});
  if (slot.work.part == PipelinePart::kBackward ||
      slot.work.part == PipelinePart::kBackwardWeight) {
    --device.in_flight;
    AfterBackward(x, slot.stage);
  }
  ++device.next;
  device.posted = job_.receives == PipelineReceives::kEager;
  const int32_t output = OutputOf(x, slot);
  const bool last = device.next == order.size();
  const int32_t input = last || !IsFused() ? -1 : InputOf(x, order[device.next]);
  if (IsFused() && !last) device.posted = true;
  if (input >= 0 && job_.receives == PipelineReceives::kPaired) PostReceive(x, input);
  if (output >= 0) Send(x, output, IsFused() && !last);
  if (input >= 0 && job_.receives == PipelineReceives::kFused) PostReceive(x, input);
  Advance(x);
}

// Launches what waited for the backward.
void Simulation::AfterBackward(int32_t x, int32_t stage) {
  const auto at = static_cast<int32_t>(devices_[Index(x)].next);
  const auto launch = [&](int32_t of) {
    for (size_t i = 0; i < job_.reductions[Index(of)].size(); ++i) ReadyToReduce(of, i);
  };
  if (job_.reduction == PipelineReduction::kByChunk && at == last_of_stage_[Index(stage)])
    launch(stage);
  if (job_.reduction != PipelineReduction::kAtEnd) return;
  for (int32_t chunk = 0; chunk < job_.layout.chunks; ++chunk)
    if (last_of_stage_[Index(job_.layout.StageOf(RankOf(x), chunk))] > at) return;
  for (int32_t chunk = 0; chunk < job_.layout.chunks; ++chunk)
    launch(job_.layout.StageOf(RankOf(x), chunk));
}

void Simulation::ReadyToReduce(int32_t stage, size_t reduction) {
  int32_t& ready = ready_[Index(stage)][reduction];
  if (++ready < replicas_) return;
  ready = 0;
  const int32_t rank = job_.layout.DeviceOf(stage);
  rings_[Index(rank)].queue.emplace_back(stage, reduction);
  ServeRing(rank);
}

void Simulation::ServeRing(int32_t rank) {
  Ring& ring = rings_[Index(rank)];
  if (ring.busy || ring.queue.empty()) return;
  ring.busy = true;
  ring.begun = now_;
  Push(now_ + FirstOf(rank).alone.ticks, Happening::kReducedAlone, rank);
}

const StageReduction& Simulation::FirstOf(int32_t rank) const {
  const auto [stage, reduction] = rings_[Index(rank)].queue.front();
  return stage < 0 ? job_.gathers[Index(rank)] : job_.reductions[Index(stage)][reduction];
}

void Simulation::Reduced(int32_t rank) {
  Ring& ring = rings_[Index(rank)];
  const bool is_gather = ring.queue.front().first < 0;
  if (log_ != nullptr) LogReduction(rank, ring);
  ring.queue.pop_front();
  ring.busy = false;
  ServeRing(rank);
  for (int32_t replica = 0; replica < replicas_; ++replica) {
    const int32_t x = replica * p_ + rank;
    if (is_gather) {
      EndStep(x);
      continue;
    }
    --devices_[Index(x)].reductions;
    Advance(x);
  }
}

// All reductions of a device have ended before the tail of any of its replicas begins.
void Simulation::TailOver(int32_t x) {
  const int32_t rank = RankOf(x);
  if (job_.gathers.empty() || job_.gathers[Index(rank)].bytes == 0) return EndStep(x);
  Ring& ring = rings_[Index(rank)];
  if (++ring.updated < replicas_) return;
  ring.updated = 0;
  ring.queue.emplace_back(-1, 0);
  ServeRing(rank);
}

void Simulation::EndStep(int32_t x) {
  Device& device = devices_[Index(x)];
  if (log_ != nullptr) LogEndOfStep(x);
  const int32_t step = device.step++;
  if (++ended_in_step_[Index(step)] == static_cast<int32_t>(devices_.size())) {
    run_.step_ends[Index(step)] = {now_};
    for (size_t other = 0; device.step == job_.counted_from && other < devices_.size(); ++other)
      run_.computation[other] = {std::max<int64_t>(0, devices_[other].computes_until - now_)};
  }
  if (device.step >= job_.steps && !job_.step_barrier) return;
  if (!job_.step_barrier) {
    BeginStep(x);
    return;
  }
  if (++barrier_count_ < static_cast<int32_t>(devices_.size())) return;
  barrier_count_ = 0;
  if (device.step >= job_.steps) return;
  for (size_t other = 0; other < devices_.size(); ++other) BeginStep(static_cast<int32_t>(other));
}

void Simulation::EndFlows() {
  for (const auto& [index, is_ring] : flows_.TakeEnded(now_))
    is_ring ? Reduced(index) : Arrive(index);
}

void Simulation::ShareLinks() {
  const std::optional<int64_t> next = flows_.Share(now_);
  ++flows_version_;
  if (next.has_value()) Push(*next, Happening::kFlowsEnd, 0, flows_version_);
}

PipelineSlice Simulation::SliceOf(PipelineSlice::Kind kind, int32_t x, int64_t begun) const {
  return {.kind = kind,
          .replica = ReplicaOf(x),
          .device = RankOf(x),
          .step = devices_[Index(x)].step,
          .work = {},
          .begin = {begun},
          .end = {now_}};
}

int64_t Simulation::LoggedAs(int32_t step, int32_t message) const {
  if (message < 0 || EndsOf(message).IsLocal()) return -1;
  return step * static_cast<int64_t>(messages_.size()) + message;
}

void Simulation::LogComputation(int32_t x, const Slot& slot) {
  const Device& device = devices_[Index(x)];
  PipelineSlice slice = SliceOf(PipelineSlice::Kind::kComputation, x, device.begun);
  slice.stage = slot.stage;
  slice.work = slot.work;
  slice.input = LoggedAs(device.step, InputOf(x, slot));
  slice.output = LoggedAs(device.step, OutputOf(x, slot));
  log_->OnSlice(slice);
}

// A receiver is in the step that it receives for, a sender may be in the next.
void Simulation::LogTransfer(int32_t message, int64_t begun) {
  const Ends& ends = EndsOf(message);
  PipelineSlice slice = SliceOf(PipelineSlice::Kind::kTransfer, ends.from, begun);
  const int32_t way = message >> way_bits_;
  const bool forward = way / stages_ % 2 == 0;
  slice.to = RankOf(ends.to);
  slice.step = devices_[Index(ends.to)].step;
  slice.stage = way % stages_ + (forward ? -1 : 1);
  slice.work = {.part = forward  ? PipelinePart::kForward
                        : split_ ? PipelinePart::kBackwardInput
                                 : PipelinePart::kBackward,
                .micro_batch = message - (way << way_bits_),
                .chunk = slice.stage / p_};
  slice.bytes = ends.bytes;
  slice.output = LoggedAs(slice.step, message);
  log_->OnSlice(slice);
}

void Simulation::LogReduction(int32_t rank, const Ring& ring) {
  const auto [stage, reduction] = ring.queue.front();
  if (stage < 0) return;  // a part of the step's end
  for (int32_t replica = 0; replica < replicas_; ++replica) {
    PipelineSlice slice = SliceOf(PipelineSlice::Kind::kReduction, replica * p_ + rank, ring.begun);
    slice.stage = stage;
    slice.work.chunk = stage / p_;
    slice.bytes = job_.reductions[Index(stage)][reduction].bytes;
    log_->OnSlice(slice);
  }
}

void Simulation::LogEndOfStep(int32_t x) {
  const Device& device = devices_[Index(x)];
  if (now_ > device.begun) log_->OnSlice(SliceOf(PipelineSlice::Kind::kRest, x, device.begun));
  log_->OnSlice(SliceOf(PipelineSlice::Kind::kStep, x, device.step_begun));
}

void Simulation::Handle(const Event& event) {
  switch (event.kind) {
    case Happening::kComputed:
      return Computed(event.index);
    case Happening::kSpent:
      devices_[Index(event.index)].busy = false;
      return Advance(event.index);
    case Happening::kBucketReady:
      return ReadyToReduce(event.index, static_cast<size_t>(event.part));
    case Happening::kLatencyOver:
      return Transfer(event.index);
    case Happening::kTransferred:
      return Arrive(event.index);
    case Happening::kSendOver:
      return SendOver(event.index, event.part == 1);
    case Happening::kNotified:
      return Notify(event.index);
    case Happening::kReducedAlone: {
      const double bytes = FirstOf(event.index).wire_bytes;
      if (bytes <= 0) return Reduced(event.index);
      std::vector<int32_t> links;
      for (int32_t replica = 0; replica < replicas_; ++replica) {
        links.push_back((replica * p_ + event.index) * 2);
        links.push_back((replica * p_ + event.index) * 2 + 1);
      }
      return flows_.Add({.index = event.index, .is_ring = true}, bytes, std::move(links), now_);
    }
    case Happening::kFlowsEnd:
      if (event.part == flows_version_) EndFlows();
      return;
    case Happening::kTailOver:
      return TailOver(event.index);
  }
}

absl::StatusOr<PipelineRun> Simulation::Run() {
  for (size_t x = 0; x < devices_.size(); ++x) BeginStep(static_cast<int32_t>(x));
  while (!events_.empty()) {
    now_ = events_.top().at;
    while (!events_.empty() && events_.top().at == now_) {
      const Event event = events_.top();
      events_.pop();
      ++run_.events;
      Handle(event);
    }
    if (flows_.changed()) ShareLinks();
    if (!stop_.GoesOn(1)) return stop_.status();
  }
  if (ended_in_step_.back() < static_cast<int32_t>(devices_.size()))
    return absl::FailedPreconditionError("devices wait for each other's transfers for ever");
  return std::move(run_);
}

}  // namespace

absl::StatusOr<PipelineRun> SimulatePipeline(const PipelineJob& job, StopCheck stop,
                                             PipelineLog* log) {
  const int64_t messages = (int64_t{2} * job.replicas * job.layout.stages())
                           << BitsOf(job.layout.micro_batches);
  if (messages > kMaxPipelineMessages)
    return MakeError(absl::StatusCode::kOutOfRange,
                     absl::StrCat("replicas of ", job.replicas, " speeds with ",
                                  job.layout.stages(), " stages and ", job.layout.micro_batches,
                                  " micro-batches each are more than can be simulated: ask for "
                                  "fewer worker groups, stages or micro-batches"),
                     {.reason = "PIPELINE_TOO_LARGE"});
  return Simulation(job, stop, log).Run();
}

}  // namespace stepcast
