#include "core/engine/joint_run.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "core/engine/joint_sequence.h"
#include "core/engine/run_ledger.h"
#include "core/engine/step_sampler.h"

namespace stepcast {

namespace {

using Stretch = std::pair<Instant, Instant>;

// The parts of stretches of time that lie in others, which ascend; asked in ascending order.
class Sweep {
 public:
  explicit Sweep(const std::vector<Stretch>& stretches) : stretches_(stretches) {}

  int64_t Within(Instant begin, Instant end) {
    while (at_ < stretches_.size() && stretches_[at_].second <= begin) ++at_;
    int64_t ticks = 0;
    for (size_t i = at_; i < stretches_.size() && stretches_[i].first < end; ++i) {
      ticks += (std::min(end, stretches_[i].second) - std::max(begin, stretches_[i].first)).ticks;
    }
    return ticks;
  }

 private:
  const std::vector<Stretch>& stretches_;
  size_t at_ = 0;
};

// kScales: workers' times are the table's, scaled.
template <bool kScales>
class JointRun {
 public:
  JointRun(const JobGraph& job, const PreparedJoint& prepared, const RunOptions& options,
           StopCheck stop)
      : plan_(*prepared.plan),
        table_(*prepared.table),
        options_(options),
        pace_(stop),
        program_(*job.programs.front()),
        worker_count_(Index(job.workers())),
        streams_(Index(program_.lanes().after_compute())),
        ledger_(job, options),
        joint_(job),
        first_row_(worker_count_, 0),
        row_(worker_count_),
        scale_(kScales ? worker_count_ : 0),
        began_(worker_count_),
        begin_(worker_count_),
        end_(worker_count_),
        node_begin_(plan_.nodes().size() * worker_count_),
        node_end_(plan_.nodes().size() * worker_count_),
        node_after_(plan_.nodes().size()),
        joints_are_early_(plan_.JointsAreEarly()),
        ready_(joints_are_early_ ? 0 : plan_.joints().size() * worker_count_),
        arrived_(plan_.joints().size()),
        begun_(plan_.joints().size()),
        ended_(plan_.joints().size()),
        work_(streams_, 0) {
    std::vector<double> speeds;
    samplers_.reserve(worker_count_);
    for (size_t w = 0; w < worker_count_; ++w) {
      const auto worker = static_cast<int32_t>(w);
      samplers_.emplace_back(job, options, worker);
      const double speed = job.compute_speed(worker);
      const auto found = std::find(speeds.begin(), speeds.end(), speed);
      first_row_[w] =
          static_cast<uint32_t>(Index(job.step_count()) * Index(found - speeds.begin()));
      if (found == speeds.end()) speeds.push_back(speed);
    }
    if (speeds != std::vector<double>{1} || (kScales && !table_.is_whole()))
      own_table_.emplace(plan_, program_, speeds, kScales);
  }

  absl::StatusOr<RunResult> Go() {
    for (size_t w = 0; w < worker_count_; ++w) end_[w] = Instant{} + options_.start_offsets[w];
    BeginStep();
    InOrder([&](int32_t worker) { ledger_.OnStart(worker, now_); });
    while (!ledger_.Done()) {
      if (absl::Status status = RunStep(); !status.ok()) return status;
      EndStep();
      if (!pace_.GoesOn(static_cast<int64_t>(worker_count_ * (1 + plan_.joints().size())) /
                        kOperationsPerUnit)) {
        return pace_.status();
      }
    }
    RunResult result = ledger_.Finish(now_, TotalsNow());
    result.simulated_operations = simulated_operations_;
    result.joint_times = joint_.times();
    result.path = EnginePath::kMemoised;
    return result;
  }

 private:
  // What takes about as long as a chunk does in the plain engine.
  static constexpr int64_t kOperationsPerUnit = 4;

  // A time of the table in the worker's step at hand. Of a whole number n of nanoseconds, 2520 n
  // ticks, and a scale of q / 2520: n q ticks; 315 has an inverse among 64-bit numbers.
  Span Scaled(Span span, size_t w) const {
    if constexpr (kScales) {
      return {static_cast<int64_t>((static_cast<uint64_t>(span.ticks) >> 3) * scale_[w])};
    } else {
      return span;
    }
  }
  static constexpr uint64_t kInverseOf315 = 0x2FF2FF2FF2FF2FF3;

  const JointTable& table() const { return own_table_.has_value() ? *own_table_ : table_; }

  // Every worker's next step, from where its last one ended.
  void BeginStep() {
    began_.swap(begin_);
    begin_.swap(end_);
    for (size_t w = 0; w < worker_count_; ++w) {
      row_[w] = first_row_[w] + static_cast<uint32_t>(samplers_[w].Next(step_));
      if constexpr (kScales)
        scale_[w] = kInverseOf315 * static_cast<uint64_t>(samplers_[w].scale());
    }
    ++step_;
    last_begin_ = *std::max_element(begin_.begin(), begin_.end());
    joint_.OnRoundBegin(last_begin_);
    if (!joints_are_early_) return;
    std::fill(arrived_.begin(), arrived_.end(), Instant{});
    const size_t count = arrived_.size();
    for (size_t w = 0; w < worker_count_; ++w) {
      const Span* const earliest = table().joints_earliest(row_[w]);
      for (size_t i = 0; i < count; ++i)
        arrived_[i] = std::max(arrived_[i], begin_[w] + Scaled(earliest[i], w));
    }
  }

  // The events at the workers' begins of the step at hand, in the order of those instants; what
  // is of one instant together.
  template <typename Happens>
  void InOrder(Happens happens) {
    order_.resize(worker_count_);
    for (size_t w = 0; w < worker_count_; ++w) order_[w] = {begin_[w], static_cast<int32_t>(w)};
    std::sort(order_.begin(), order_.end());
    for (size_t i = 0; i < order_.size(); ++i) {
      now_ = order_[i].first;
      happens(order_[i].second);
      if (i + 1 == order_.size() || order_[i + 1].first != now_)
        ledger_.OnInstantDone(now_, [this] { return TotalsNow(); });
    }
  }

  // The instants of all that the step at hand has, up to the ends of its joint operations and
  // nodes.
  absl::Status RunStep() {
    ended_count_ = 0;
    std::fill(ended_.begin(), ended_.end(), kEndOfTime);
    size_t next = 0;           // instruction
    size_t next_to_begin = 0;  // joint operation
    under_way_.clear();
    while (true) {
      while (next < plan_.instructions().size() && Follow(plan_.instructions()[next])) ++next;
      if (next == plan_.instructions().size() && ended_count_ == ended_.size())
        return absl::OkStatus();
      const Instant begins =
          joint_.CanBegin() ? std::max(arrived_[next_to_begin], now_) : kEndOfTime;
      const Instant ends = joint_.NextEnd();
      now_ = std::min(begins, ends);
      if (now_ >= kEndOfTime) return SimulatedTimeExhausted();
      if (ends == now_) {
        TakeEnded();
      } else {
        const JointSequence::Begun begun = joint_.Begin(now_);
        slots_.resize(std::max(slots_.size(), Index(begun.slot) + 1));
        slots_[Index(begun.slot)] = next_to_begin;
        begun_[next_to_begin++] = now_;
      }
    }
  }

  void TakeEnded() {
    slots_ended_.clear();
    joint_.TakeEnded(now_, slots_ended_);
    for (const int32_t slot : slots_ended_) {
      const size_t position = slots_[Index(slot)];
      ended_[position] = now_;
      ++ended_count_;
      if (!under_way_.empty() && begun_[position] <= under_way_.back().second) {
        under_way_.back().first = std::min(under_way_.back().first, begun_[position]);
        under_way_.back().second = now_;
      } else {
        under_way_.emplace_back(begun_[position], now_);
      }
      // Of several at once an earlier begin may join what were two stretches.
      while (under_way_.size() > 1 &&
             under_way_.back().first <= under_way_[under_way_.size() - 2].second) {
        const Stretch last = under_way_.back();
        under_way_.pop_back();
        under_way_.back().first = std::min(under_way_.back().first, last.first);
        under_way_.back().second = last.second;
      }
    }
  }

  // False: it waits for a joint operation that has not ended yet.
  bool Follow(const JointPlan::Instruction& instruction) {
    const auto index = Index(instruction.index);
    const JointPlan::Waits& waits =
        instruction.is_joint ? plan_.joints()[index] : plan_.nodes()[index].waits;
    Instant latest;
    for (const JointPlan::Input& input : waits.inputs) {
      if (!input.is_joint) continue;
      if (ended_[Index(input.index)] == kEndOfTime) return false;
      latest = std::max(latest, ended_[Index(input.index)]);
    }
    if (instruction.is_joint) {
      ReadyOnAll(index, waits, latest);
    } else {
      RunNode(index, waits, latest);
    }
    return true;
  }

  // By worker: the latest of an instant, of nodes that are waited for, and of what is early, by
  // row; null: nothing.
  void Latest(Instant latest, const Span* earliest, const JointPlan::Waits& waits,
              Instant* at) const {
    if (earliest == nullptr) {
      std::fill(at, at + worker_count_, latest);
    } else {
      for (size_t w = 0; w < worker_count_; ++w)
        at[w] = std::max(latest, begin_[w] + Scaled(earliest[row_[w]], w));
    }
    for (const JointPlan::Input& input : waits.inputs) {
      if (input.is_joint) continue;
      const Instant* const ends = &node_end_[Index(input.index) * worker_count_];
      for (size_t w = 0; w < worker_count_; ++w) at[w] = std::max(at[w], ends[w]);
    }
  }

  void RunNode(size_t node, const JointPlan::Waits& waits, Instant latest) {
    Instant* const begins = &node_begin_[node * worker_count_];
    Instant* const ends = &node_end_[node * worker_count_];
    Latest(latest, waits.early.empty() ? nullptr : table().node_earliest(node), waits, begins);
    const Span* const lengths = table().node_lengths(node);
    for (size_t w = 0; w < worker_count_; ++w) ends[w] = begins[w] + Scaled(lengths[row_[w]], w);
    node_after_[node] = latest;
  }

  void ReadyOnAll(size_t position, const JointPlan::Waits& waits, Instant latest) {
    if (!joints_are_early_) {
      Instant* const ready = &ready_[position * worker_count_];
      for (size_t w = 0; w < worker_count_; ++w)
        ready[w] =
            std::max(latest, begin_[w] + Scaled(table().joint_earliest(position, row_[w]), w));
      for (const JointPlan::Input& input : waits.inputs) {
        if (input.is_joint) continue;
        const Instant* const ends = &node_end_[Index(input.index) * worker_count_];
        for (size_t w = 0; w < worker_count_; ++w) ready[w] = std::max(ready[w], ends[w]);
      }
      arrived_[position] = *std::max_element(ready, ready + worker_count_);
    }
    joint_.ArriveAll(position, arrived_[position]);
  }

  void EndStep() {
    Instant latest;
    for (const JointPlan::Input& input : plan_.step_end().inputs) {
      if (input.is_joint) latest = std::max(latest, ended_[Index(input.index)]);
    }
    const bool waits = !plan_.step_end().early.empty();
    Latest(latest, waits ? table().end_earliest() : nullptr, plan_.step_end(), end_.data());
    AddUse();
    simulated_operations_ += static_cast<int64_t>(worker_count_) * program_.size();
    BeginStep();
    if (ledger_.IsPlainRound()) {
      now_ = last_begin_;
      ledger_.OnRoundEnd(began_, begin_, now_);
    } else {
      InOrder([&](int32_t worker) { ledger_.OnStepEnd(worker, began_[Index(worker)], now_); });
    }
  }

  // The use that the step at hand adds to the account.
  void AddUse() {
    for (size_t s = 0; s < streams_; ++s) {
      const Span* const work = table().work(s);
      for (size_t w = 0; w < worker_count_; ++w) work_[s] += Scaled(work[row_[w]], w).ticks;
    }
    if (streams_ == 1) {
      AddUseOfOneStream();
    } else {
      for (size_t w = 0; w < worker_count_; ++w) AddUseOfStreams(w);
    }
  }

  // Computation of one stream never overlaps itself, so that stretches are added one by one.
  void AddUseOfOneStream() {
    for (const auto& [begin, end] : under_way_) {
      exposed_ += Idle(end, [begin = begin](size_t) { return begin; });
    }
    Instant over;  // the last end of those begun so far
    for (size_t i = 0; i < plan_.joints().size(); ++i) {
      if (i == 0) {
        AddWaiting(i, [&](size_t w) { return begin_[w]; });
      } else if (over < begun_[i]) {
        AddWaiting(i, [&](size_t) { return over; });
      }
      over = std::max(over, ended_[i]);
    }
  }

  // Before the joint operation at that position begins with none under way, a worker waits from
  // when it had that or a later one ready; not before `over`.
  template <typename Over>
  void AddWaiting(size_t position, Over over) {
    if (joints_are_early_) {
      const Span* const earliest = table().rest_earliest(position);
      waiting_ += Idle(begun_[position], [&](size_t w) {
        return std::max(over(w), begin_[w] + Scaled(earliest[row_[w]], w));
      });
      return;
    }
    first_ready_.assign(worker_count_, kEndOfTime);
    for (size_t i = position; i < plan_.joints().size(); ++i) {
      const Instant* const ready = &ready_[i * worker_count_];
      for (size_t w = 0; w < worker_count_; ++w)
        first_ready_[w] = std::min(first_ready_[w], ready[w]);
    }
    waiting_ +=
        Idle(begun_[position], [&](size_t w) { return std::max(over(w), first_ready_[w]); });
  }

  // Time from from(worker) to `end` without computation, of all workers, where that is before it.
  // REQUIRES: one stream.
  template <typename From>
  UsageWindow::Ticks Idle(Instant end, From from) const {
    UsageWindow::Ticks sum = 0;
    for (size_t w = 0; w < worker_count_; ++w) {
      const Instant begin = std::min(from(w), end);
      sum += (end - begin).ticks;
      const auto scale = [this, w](Span span) { return Scaled(span, w); };
      sum -= table().ComputedWithin(row_[w], begin - begin_[w], end - begin_[w], scale).ticks;
    }
    for (size_t node = 0; node < plan_.nodes().size(); ++node) {
      if (node_after_[node] >= end) continue;
      const Instant* const begins = &node_begin_[node * worker_count_];
      const Instant* const ends = &node_end_[node * worker_count_];
      for (size_t w = 0; w < worker_count_; ++w) {
        const Span computed = std::min(end, ends[w]) - std::max(std::min(from(w), end), begins[w]);
        sum -= std::max(Span{}, computed).ticks;
      }
    }
    return sum;
  }

  void AddUseOfStreams(size_t w) {
    computing_.clear();
    for (const auto& [begin, end] : table().computing(row_[w]))
      computing_.emplace_back(begin_[w] + Scaled(begin, w), begin_[w] + Scaled(end, w));
    for (size_t node = 0; node < plan_.nodes().size(); ++node) {
      const Instant begin = node_begin_[node * worker_count_ + w];
      const Instant end = node_end_[node * worker_count_ + w];
      if (begin < end) computing_.emplace_back(begin, end);
    }
    Merge();
    Sweep exposing(computing_);
    for (const auto& [begin, end] : under_way_)
      exposed_ += (end - begin).ticks - exposing.Within(begin, end);
    AddWaitingOf(w);
  }

  void Merge() {
    std::sort(computing_.begin(), computing_.end());
    size_t kept = 0;
    for (const auto& [begin, end] : computing_) {
      if (kept > 0 && begin <= computing_[kept - 1].second) {
        computing_[kept - 1].second = std::max(computing_[kept - 1].second, end);
      } else {
        computing_[kept++] = {begin, end};
      }
    }
    computing_.resize(kept);
  }

  // As AddWaiting, of one worker.
  void AddWaitingOf(size_t w) {
    const size_t count = plan_.joints().size();
    first_ready_.resize(count);
    Instant first = kEndOfTime;
    for (size_t i = count; i-- > 0;) {
      first = std::min(first, joints_are_early_
                                  ? begin_[w] + Scaled(table().joint_earliest(i, row_[w]), w)
                                  : ready_[i * worker_count_ + w]);
      first_ready_[i] = first;
    }
    Sweep sweep(computing_);
    Instant over = begin_[w];  // the last end of those begun so far
    for (size_t i = 0; i < count; ++i) {
      const Instant from = std::max(over, first_ready_[i]);
      if (from < begun_[i]) waiting_ += (begun_[i] - from).ticks - sweep.Within(from, begun_[i]);
      over = std::max(over, ended_[i]);
    }
  }

  // At the end of a step of the last worker: the others may be at work on their next one, of which
  // no joint operation has begun yet.
  UsageWindow::Totals TotalsNow() const {
    const Lanes& lanes = program_.lanes();
    UsageWindow::Totals totals{.by_lane = std::vector<UsageWindow::Ticks>(Index(lanes.count())),
                               .exposed = exposed_,
                               .waiting = waiting_};
    for (size_t s = 0; s < streams_; ++s) totals.by_lane[s] = work_[s];
    totals.by_lane[Index(lanes.first_joint())] =
        static_cast<UsageWindow::Ticks>(joint_.BusyUntil(now_)) *
        static_cast<UsageWindow::Ticks>(worker_count_);
    for (size_t w = 0; w < worker_count_; ++w) {
      if (begin_[w] >= now_) continue;
      const Span done = now_ - begin_[w];
      for (size_t s = 0; s < streams_; ++s) {
        for (const auto& [recorded, length] : table().early(row_[w], s)) {
          const Span begin = Scaled(recorded, w);
          if (begin >= done) break;
          totals.by_lane[s] += std::min(Scaled(length, w), done - begin).ticks;
        }
      }
      totals.waiting += WaitedInNext(w, done);
    }
    return totals;
  }

  int64_t WaitedInNext(size_t w, Span done) const {
    Span first = done;
    for (size_t i = 0; i < plan_.joints().size(); ++i) {
      if (plan_.joints()[i].inputs.empty())
        first = std::min(first, Scaled(table().joint_earliest(i, row_[w]), w));
    }
    int64_t waited = (done - first).ticks;
    for (const auto& [begin, end] : table().computing(row_[w])) {
      const Span from = std::max(Scaled(begin, w), first);
      const Span to = std::min(Scaled(end, w), done);
      if (from < to) waited -= (to - from).ticks;
    }
    return waited;
  }

  const JointPlan& plan_;
  const JointTable& table_;              // at the recorded speed
  std::optional<JointTable> own_table_;  // in its place where workers have other speeds
  const RunOptions& options_;
  PacedStopCheck pace_;
  const Program& program_;
  const size_t worker_count_;
  const size_t streams_;
  RunLedger ledger_;
  JointSequence joint_;
  std::vector<StepSampler> samplers_;  // by worker
  std::vector<uint32_t> first_row_;    // by worker: of its speed
  Instant now_;
  // The step at hand, by worker: its number, the table's row, its begin and that of the step
  // before it, its end.
  int32_t step_ = 0;
  std::vector<uint32_t> row_;
  std::vector<uint64_t> scale_;  // see Scaled
  std::vector<Instant> began_;
  std::vector<Instant> begin_;
  std::vector<Instant> end_;
  Instant last_begin_;  // of all workers
  // By node, then worker; by joint operation, then worker.
  std::vector<Instant> node_begin_;
  std::vector<Instant> node_end_;
  std::vector<Instant> node_after_;  // by node: it begins no earlier on any worker
  const bool joints_are_early_;
  std::vector<Instant> ready_;    // empty where joint operations are early
  std::vector<Instant> arrived_;  // by joint operation: on the last worker
  std::vector<Instant> begun_;
  std::vector<Instant> ended_;  // kEndOfTime: not yet
  size_t ended_count_ = 0;
  std::vector<size_t> slots_;       // the joint operation in each
  std::vector<Stretch> under_way_;  // merged
  // Over the run.
  std::vector<UsageWindow::Ticks> work_;  // by stream
  UsageWindow::Ticks exposed_ = 0;
  UsageWindow::Ticks waiting_ = 0;
  int64_t simulated_operations_ = 0;
  // Members only to keep their memory.
  std::vector<int32_t> slots_ended_;
  std::vector<Stretch> computing_;
  std::vector<Instant> first_ready_;
  std::vector<std::pair<Instant, int32_t>> order_;
};

}  // namespace

bool HasJointWorkOnly(const JobGraph& job, const RunOptions& options) {
  return !job.joint.ops.empty() && job.programs.size() == 1 && job.networks.empty() &&
         job.couplings.empty() && job.peer_edges.empty() && !job.slows_computation() &&
         !job.joint.cycles.has_value() && !job.joint.priorities.has_value() &&
         options.trace == nullptr && options.until == kEndOfTime &&
         options.fastest_path != EnginePath::kPlain;
}

absl::StatusOr<RunResult> RunJoint(const JobGraph& job, const PreparedJoint& prepared,
                                   const RunOptions& options, StopCheck stop) {
  if (options.scaling != nullptr) return JointRun<true>(job, prepared, options, stop).Go();
  return JointRun<false>(job, prepared, options, stop).Go();
}

}  // namespace stepcast
