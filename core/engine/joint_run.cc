#include "core/engine/joint_run.h"

#include <algorithm>
#include <cstddef>
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

class JointRun {
 public:
  JointRun(const JobGraph& job, const JointPlan& plan, const RunOptions& options, StopCheck stop)
      : job_(job),
        plan_(plan),
        options_(options),
        pace_(stop),
        program_(*job.programs.front()),
        worker_count_(Index(job.workers())),
        streams_(Index(program_.lanes().after_compute())),
        ledger_(job, options),
        joint_(job),
        workers_(worker_count_),
        node_begin_(plan.nodes().size() * worker_count_),
        node_end_(plan.nodes().size() * worker_count_),
        ready_(plan.joints().size() * worker_count_),
        begun_(plan.joints().size()),
        ended_(plan.joints().size()),
        work_(streams_, 0) {
    for (size_t w = 0; w < worker_count_; ++w) {
      const auto worker = static_cast<int32_t>(w);
      workers_[w].sampler = StepSampler(job, options, worker);
      const double speed = job.compute_speed(worker);
      const auto found = std::find(speeds_.begin(), speeds_.end(), speed);
      workers_[w].speed = static_cast<size_t>(found - speeds_.begin());
      if (found == speeds_.end()) speeds_.push_back(speed);
    }
    for (const double speed : speeds_) {
      std::vector<JointPlan::Times>& times = times_.emplace_back();
      for (int32_t step = 0; step < job.step_count(); ++step)
        times.push_back(plan.TimesOf(program_, step, speed));
    }
  }

  absl::StatusOr<RunResult> Go() {
    Start();
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

  struct Worker {
    StepSampler sampler;
    size_t speed = 0;
    int32_t step = 0;
    Instant begin;  // of the step at hand
    const JointPlan::Times* times = nullptr;
    Instant end;
  };

  void BeginStep(Worker& worker, Instant now) {
    worker.begin = now;
    worker.times = &times_[worker.speed][Index(worker.sampler.Next(worker.step++))];
    joint_.OnStepBegin(now);
  }

  // Of all workers, in the order of the instants; those of one instant together.
  template <typename InstantOf, typename Happens>
  void InOrder(InstantOf instant_of, Happens happens) {
    order_.resize(worker_count_);
    for (size_t w = 0; w < worker_count_; ++w) order_[w] = {instant_of(w), w};
    std::sort(order_.begin(), order_.end());
    for (size_t i = 0; i < order_.size(); ++i) {
      now_ = order_[i].first;
      happens(order_[i].second);
      if (i + 1 == order_.size() || order_[i + 1].first != now_)
        ledger_.OnInstantDone(now_, [this] { return TotalsNow(); });
    }
  }

  void Start() {
    InOrder([&](size_t w) { return Instant{} + options_.start_offsets[w]; },
            [&](size_t w) {
              ledger_.OnStart(static_cast<int32_t>(w), now_);
              BeginStep(workers_[w], now_);
            });
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

  void WaitForNodes(const JointPlan::Waits& waits, Instant* at) const {
    for (const JointPlan::Input& input : waits.inputs) {
      if (input.is_joint) continue;
      const Instant* const ends = &node_end_[Index(input.index) * worker_count_];
      for (size_t w = 0; w < worker_count_; ++w) at[w] = std::max(at[w], ends[w]);
    }
  }

  void RunNode(size_t node, const JointPlan::Waits& waits, Instant latest) {
    Instant* const begins = &node_begin_[node * worker_count_];
    Instant* const ends = &node_end_[node * worker_count_];
    for (size_t w = 0; w < worker_count_; ++w)
      begins[w] = std::max(latest, workers_[w].begin + workers_[w].times->node_earliest[node]);
    WaitForNodes(waits, begins);
    for (size_t w = 0; w < worker_count_; ++w) ends[w] = begins[w] + workers_[w].times->nodes[node];
  }

  void ReadyOnAll(size_t position, const JointPlan::Waits& waits, Instant latest) {
    Instant* const ready = &ready_[position * worker_count_];
    for (size_t w = 0; w < worker_count_; ++w)
      ready[w] = std::max(latest, workers_[w].begin + workers_[w].times->joint_earliest[position]);
    WaitForNodes(waits, ready);
    const Instant last = *std::max_element(ready, ready + worker_count_);
    arrived_.resize(ended_.size());
    arrived_[position] = last;
    joint_.ArriveAll(position, last);
  }

  void EndStep() {
    Instant latest;
    for (const JointPlan::Input& input : plan_.step_end().inputs) {
      if (input.is_joint) latest = std::max(latest, ended_[Index(input.index)]);
    }
    for (size_t w = 0; w < worker_count_; ++w) {
      Worker& worker = workers_[w];
      worker.end = std::max(latest, worker.begin + worker.times->end_earliest);
      for (const JointPlan::Input& input : plan_.step_end().inputs) {
        if (!input.is_joint)
          worker.end = std::max(worker.end, node_end_[Index(input.index) * worker_count_ + w]);
      }
      AddUse(w);
    }
    simulated_operations_ += static_cast<int64_t>(worker_count_) * program_.size();
    InOrder([&](size_t w) { return workers_[w].end; },
            [&](size_t w) {
              ledger_.OnStepEnd(static_cast<int32_t>(w), workers_[w].begin, now_);
              BeginStep(workers_[w], now_);
            });
  }

  // What the worker's whole step adds to the account.
  void AddUse(size_t w) {
    const Worker& worker = workers_[w];
    for (size_t s = 0; s < streams_; ++s) work_[s] += worker.times->work[s].ticks;
    computing_.clear();
    for (const auto& [begin, end] : worker.times->computing)
      computing_.emplace_back(worker.begin + begin, worker.begin + end);
    for (size_t node = 0; node < plan_.nodes().size(); ++node) {
      const Instant begin = node_begin_[node * worker_count_ + w];
      const Instant end = node_end_[node * worker_count_ + w];
      if (begin < end) computing_.emplace_back(begin, end);
    }
    Merge();
    Sweep exposing(computing_);
    for (const auto& [begin, end] : under_way_)
      exposed_ += (end - begin).ticks - exposing.Within(begin, end);
    AddWaiting(w);
  }

  void Merge() {
    const bool in_order = std::is_sorted(computing_.begin(), computing_.end());
    if (!in_order) std::sort(computing_.begin(), computing_.end());
    if (streams_ == 1) return;
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

  // Before a joint operation begins with none under way, the worker waits from when it had any of
  // them ready.
  void AddWaiting(size_t w) {
    const size_t count = plan_.joints().size();
    first_ready_.resize(count);
    Instant first = kEndOfTime;
    for (size_t i = count; i-- > 0;) {
      first = std::min(first, ready_[i * worker_count_ + w]);
      first_ready_[i] = first;
    }
    Sweep sweep(computing_);
    Instant over = workers_[w].begin;  // the last end of those begun so far
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
    for (const Worker& worker : workers_) {
      if (worker.times == nullptr || worker.begin >= now_) continue;
      const Span done = now_ - worker.begin;
      for (size_t s = 0; s < streams_; ++s) {
        for (const auto& [begin, length] : worker.times->early[s]) {
          if (begin >= done) break;
          totals.by_lane[s] += std::min(length, done - begin).ticks;
        }
      }
      totals.waiting += WaitedInNext(worker, done);
    }
    return totals;
  }

  int64_t WaitedInNext(const Worker& worker, Span done) const {
    Span first = done;
    for (size_t i = 0; i < plan_.joints().size(); ++i) {
      if (plan_.joints()[i].inputs.empty())
        first = std::min(first, worker.times->joint_earliest[i]);
    }
    int64_t waited = (done - first).ticks;
    for (const auto& [begin, end] : worker.times->computing) {
      const Span from = std::max(begin, first);
      const Span to = std::min(end, done);
      if (from < to) waited -= (to - from).ticks;
    }
    return waited;
  }

  const JobGraph& job_;
  const JointPlan& plan_;
  const RunOptions& options_;
  PacedStopCheck pace_;
  const Program& program_;
  const size_t worker_count_;
  const size_t streams_;
  RunLedger ledger_;
  JointSequence joint_;
  std::vector<Worker> workers_;
  std::vector<double> speeds_;
  std::vector<std::vector<JointPlan::Times>> times_;  // by speed and recorded step
  Instant now_;
  // Of the step at hand: by node, then worker; by joint operation, then worker.
  std::vector<Instant> node_begin_;
  std::vector<Instant> node_end_;
  std::vector<Instant> ready_;
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
  std::vector<std::pair<Instant, size_t>> order_;
};

}  // namespace

bool HasJointWorkOnly(const JobGraph& job, const RunOptions& options) {
  return !job.joint.ops.empty() && job.programs.size() == 1 && job.networks.empty() &&
         job.couplings.empty() && job.peer_edges.empty() && !job.slows_computation() &&
         !job.joint.cycles.has_value() && options.trace == nullptr && options.until == kEndOfTime &&
         options.fastest_path != EnginePath::kPlain;
}

absl::StatusOr<RunResult> RunJoint(const JobGraph& job, const JointPlan& plan,
                                   const RunOptions& options, StopCheck stop) {
  return JointRun(job, plan, options, stop).Go();
}

}  // namespace stepcast
