#include "core/engine/joint_run.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <numeric>
#include <optional>
#include <utility>
#include <vector>

#include "core/engine/joint_sequence.h"
#include "core/engine/run_ledger.h"
#include "core/engine/step_sampler.h"
#include "core/network/link_level.h"

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
        paces_(job.joint.has_paces()),
        in_order_(!job.joint.cycles.has_value() && !job.joint.priorities.has_value()),
        first_row_(worker_count_, 0),
        row_(worker_count_),
        scale_(kScales ? worker_count_ : 0),
        began_(worker_count_),
        begin_(worker_count_),
        end_(worker_count_),
        early_end_(worker_count_),
        next_node_(streams_),
        node_begin_(plan_.nodes().size() * worker_count_),
        node_end_(plan_.nodes().size() * worker_count_),
        node_step_(plan_.nodes().size(), -1),
        node_after_(plan_.nodes().size()),
        joints_are_early_(plan_.JointsAreEarly()),
        ready_(joints_are_early_ ? 0 : plan_.joints().size() * worker_count_),
        arrived_(plan_.joints().size()),
        begun_(plan_.joints().size()),
        ended_(plan_.joints().size()),
        ended_clock_(plan_.joints().size()),
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
    if (paces_) {
      origin_ = end_;
      clocks_.emplace_back().SetLevel(Instant{}, kFullSpeed);
    }
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
  // Operations that take about as long as a chunk does in the plain engine.
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
  static constexpr LinkLevel kFullSpeed{.residual = LinkLevel::kUnit, .flows = 1};
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
        arrived_[i] = std::max(arrived_[i], Origin(w) + Scaled(earliest[i], w));
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

  // When all workers' computation has come to that point of its clock, which joint
  // operations slow down. All workers have one clock: it changes with what is under way on all of
  // them. Without paces it shows the time.
  Instant RealOf(Instant at) const {
    if (clocks_.empty()) return at;
    const auto after = std::lower_bound(anchors_.begin(), anchors_.end(), at);
    return clocks_[static_cast<size_t>(after - anchors_.begin()) - 1].InstantOf(at.ticks);
  }
  // The begin of the worker's step on that clock.
  Instant Origin(size_t w) const { return paces_ ? origin_[w] : begin_[w]; }
  Instant ClockNow() const {
    return clocks_.empty() ? now_ : Instant{clocks_.back().VirtualAt(now_)};
  }

  // The instants of all that the step at hand has. Of computation on its clock; of joint operations
  // in time.
  absl::Status RunStep() {
    std::fill(ended_.begin(), ended_.end(), kEndOfTime);
    std::fill(next_node_.begin(), next_node_.end(), 0);
    begin_order_.clear();
    under_way_.clear();
    unready_.resize(ended_.size());
    std::iota(unready_.begin(), unready_.end(), size_t{0});
    for (size_t w = 0; w < worker_count_; ++w)
      early_end_[w] = Origin(w) + Scaled(table().early_end()[row_[w]], w);
    if (paces_) {
      clocks_.erase(clocks_.begin(), clocks_.end() - 1);
      anchors_.assign(1, Instant{-1});
      computes_until_ = *std::max_element(early_end_.begin(), early_end_.end());
    }
    FollowAll();
    for (size_t left = ended_.size();;) {
      do {
        if (joint_.NextEnd() == now_) {
          left -= TakeEnded();
          FollowAll();
        }
        while (!arrivals_.empty() && RealOf(arrivals_.front().first) <= now_) TakeArrival();
        while (joint_.CanBegin(now_)) BeginJoint();
      } while (joint_.NextEnd() == now_);
      if (left == 0) return absl::OkStatus();
      if (paces_) SetPace();
      now_ = std::min(joint_.NextEnd(), joint_.NextBegin());
      if (!arrivals_.empty()) now_ = std::min(now_, RealOf(arrivals_.front().first));
      if (paces_ && joint_.pace() != nullptr && !computes_none_)
        now_ = std::min(now_, RealOf(computes_until_));
      if (now_ >= kEndOfTime) return SimulatedTimeExhausted();
    }
  }

  void TakeArrival() {
    joint_.ArriveAll(arrivals_.front().second, now_);
    std::pop_heap(arrivals_.begin(), arrivals_.end(), std::greater<>());
    arrivals_.pop_back();
  }

  void BeginJoint() {
    const JointSequence::Begun begun = joint_.Begin(now_);
    slots_.resize(std::max(slots_.size(), Index(begun.slot) + 1));
    slots_[Index(begun.slot)] = begun.position;
    begun_[begun.position] = now_;
    begin_order_.push_back(begun.position);
  }

  // The speeds from now on, all of this instant having happened.
  void SetPace() {
    const Instant clock = ClockNow();
    computes_none_ = clock >= computes_until_;
    joint_.OnInstantEnd(now_, !computes_none_);
    const LinkLevel level = joint_.pace() != nullptr ? joint_.pace()->computation : kFullSpeed;
    if (level == clocks_.back().level()) return;
    clocks_.push_back(clocks_.back());
    clocks_.back().SetLevel(now_, level);
    anchors_.push_back(clock);
  }

  // Returns the number of those that ended.
  size_t TakeEnded() {
    slots_ended_.clear();
    joint_.TakeEnded(now_, slots_ended_);
    for (const int32_t slot : slots_ended_) {
      const size_t position = slots_[Index(slot)];
      ended_[position] = now_;
      ended_clock_[position] = ClockNow();
      if (!under_way_.empty() && begun_[position] <= under_way_.back().second) {
        under_way_.back().first = std::min(under_way_.back().first, begun_[position]);
        under_way_.back().second = now_;
      } else {
        under_way_.emplace_back(begun_[position], now_);
      }
      // An earlier begin, of several at once, may join what were two stretches.
      while (under_way_.size() > 1 &&
             under_way_.back().first <= under_way_[under_way_.size() - 2].second) {
        const Stretch last = under_way_.back();
        under_way_.pop_back();
        under_way_.back().first = std::min(under_way_.back().first, last.first);
        under_way_.back().second = last.second;
      }
    }
    return slots_ended_.size();
  }

  // All that waits for nothing any more: nodes of a stream one after the other.
  void FollowAll() {
    for (bool any = true; any;) {
      any = false;
      for (size_t s = 0; s < streams_; ++s) {
        const std::vector<int32_t>& nodes = plan_.nodes_of_streams()[s];
        for (; next_node_[s] < nodes.size() && RunNode(Index(nodes[next_node_[s]]));
             ++next_node_[s])
          any = true;
      }
    }
    std::erase_if(unready_, [this](size_t position) { return ReadyOnAll(position); });
  }

  // The last end, in time and on the clock, of the joint operations that are waited for; none: one
  // of them, or a node, has not ended, or is not known to.
  std::optional<std::pair<Instant, Instant>> LatestJoint(const JointPlan::Waits& waits) const {
    std::pair<Instant, Instant> latest;
    for (const JointPlan::Input& input : waits.inputs) {
      const auto index = Index(input.index);
      if (input.is_joint ? ended_[index] == kEndOfTime : node_step_[index] != step_)
        return std::nullopt;
      if (!input.is_joint) continue;
      latest = std::max(latest, {ended_[index], ended_clock_[index]});
    }
    return latest;
  }

  // By worker: the latest of an instant, of nodes that are waited for, and of what is early, by
  // row; null: nothing.
  void Latest(Instant latest, const Span* earliest, const JointPlan::Waits& waits,
              Instant* at) const {
    if (earliest == nullptr) {
      std::fill(at, at + worker_count_, latest);
    } else {
      for (size_t w = 0; w < worker_count_; ++w)
        at[w] = std::max(latest, Origin(w) + Scaled(earliest[row_[w]], w));
    }
    for (const JointPlan::Input& input : waits.inputs) {
      if (input.is_joint) continue;
      const Instant* const ends = &node_end_[Index(input.index) * worker_count_];
      for (size_t w = 0; w < worker_count_; ++w) at[w] = std::max(at[w], ends[w]);
    }
  }

  // False: what it waits for is not known yet.
  bool RunNode(size_t node) {
    const JointPlan::Waits& waits = plan_.nodes()[node].waits;
    const auto latest = LatestJoint(waits);
    if (!latest.has_value()) return false;
    Instant* const begins = &node_begin_[node * worker_count_];
    Instant* const ends = &node_end_[node * worker_count_];
    Latest(latest->second, waits.early.empty() ? nullptr : table().node_earliest(node), waits,
           begins);
    const Span* const lengths = table().node_lengths(node);
    for (size_t w = 0; w < worker_count_; ++w) ends[w] = begins[w] + Scaled(lengths[row_[w]], w);
    if (paces_)
      computes_until_ = std::max(computes_until_, *std::max_element(ends, ends + worker_count_));
    node_after_[node] = latest->first;
    node_step_[node] = step_;
    return true;
  }

  // False: a joint operation, or a node, that it waits for has not ended.
  bool ReadyOnAll(size_t position) {
    const JointPlan::Waits& waits = plan_.joints()[position];
    const auto latest = LatestJoint(waits);
    if (!latest.has_value()) return false;
    if (!joints_are_early_) {
      Instant* const ready = &ready_[position * worker_count_];
      for (size_t w = 0; w < worker_count_; ++w)
        ready[w] = std::max(latest->second, EarlyReady(position, w));
      for (const JointPlan::Input& input : waits.inputs) {
        if (input.is_joint) continue;
        const Instant* const ends = &node_end_[Index(input.index) * worker_count_];
        for (size_t w = 0; w < worker_count_; ++w) ready[w] = std::max(ready[w], ends[w]);
      }
      arrived_[position] = *std::max_element(ready, ready + worker_count_);
    }
    arrivals_.emplace_back(arrived_[position], position);
    std::push_heap(arrivals_.begin(), arrivals_.end(), std::greater<>());
    return true;
  }
  // When the early operations have ended that it waits for.
  Instant EarlyReady(size_t position, size_t w) const {
    return Origin(w) + Scaled(table().joint_earliest(position, row_[w]), w);
  }
  Instant Ready(size_t position, size_t w) const {
    return joints_are_early_ ? EarlyReady(position, w) : ready_[position * worker_count_ + w];
  }

  void EndStep() {
    const auto latest = *LatestJoint(plan_.step_end());
    const bool waits = !plan_.step_end().early.empty();
    Latest(latest.second, waits ? table().end_earliest() : nullptr, plan_.step_end(), end_.data());
    if (paces_) {
      // A step that begins at once may go on at the same pace.
      next_origin_ = end_;
      if (*std::max_element(end_.begin(), end_.end()) > latest.second) SetPace();
      for (Instant& end : end_) end = std::max(RealOf(end), latest.first);
      for (size_t w = 0; w < worker_count_; ++w)
        early_end_[w] = std::max(RealOf(early_end_[w]), begin_[w]);
      for (size_t i = 0; i < node_begin_.size(); ++i) {
        node_begin_[i] = std::max(RealOf(node_begin_[i]), node_after_[i / worker_count_]);
        node_end_[i] = std::max(RealOf(node_end_[i]), node_begin_[i]);
      }
    }
    AddUse();
    origin_.swap(next_origin_);
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
    if (streams_ == 1) return AddUseOfOneStream();
    for (size_t s = 0; s < streams_; ++s) {
      const Span* const work = table().work(s);
      for (size_t w = 0; w < worker_count_; ++w) work_[s] += Scaled(work[row_[w]], w).ticks;
    }
    for (size_t w = 0; w < worker_count_; ++w) AddUseOfStreams(w);
  }

  // Computation of one stream never overlaps itself, so that stretches are added one by one: all
  // that is early is the first of them.
  void AddUseOfOneStream() {
    for (size_t w = 0; w < worker_count_; ++w) work_[0] += (early_end_[w] - begin_[w]).ticks;
    for (size_t i = 0; i < node_begin_.size(); ++i)
      work_[0] += (node_end_[i] - node_begin_[i]).ticks;
    for (const auto& [begin, end] : under_way_) {
      exposed_ += Idle(end, [begin = begin](size_t) { return begin; });
    }
    before_.clear();  // of each that began: the last end of those begun until then
    Instant over;
    for (const size_t position : begin_order_) {
      before_.push_back(over);
      over = std::max(over, ended_[position]);
    }
    first_ready_.assign(worker_count_, kEndOfTime);
    for (size_t i = begin_order_.size(); i-- > 0;) AddWaiting(i);
  }

  // Before a joint operation begins with none under way, a worker waits from when it had that or a
  // later one ready. REQUIRES: those that began later have been added.
  void AddWaiting(size_t nth) {
    const size_t position = begin_order_[nth];
    const bool looks_up = joints_are_early_ && in_order_;
    for (size_t w = 0; w < worker_count_ && !looks_up; ++w)
      first_ready_[w] = std::min(first_ready_[w], Ready(position, w));
    if (nth > 0 && before_[nth] >= begun_[position]) return;
    const Span* const rest = table().rest_earliest(position);
    waiting_ += Idle(begun_[position], [&](size_t w) {
      const Instant ready = looks_up ? Origin(w) + Scaled(rest[row_[w]], w) : first_ready_[w];
      return std::max(nth > 0 ? before_[nth] : begin_[w], RealOf(ready));
    });
  }

  // Time from from(worker) to `end` without computation, of all workers, where that is before it.
  // REQUIRES: one stream.
  template <typename From>
  UsageWindow::Ticks Idle(Instant end, From from) const {
    UsageWindow::Ticks sum = 0;
    const auto computed = [&](Instant begin, Instant starts, Instant ends) {
      return std::max(Span{}, std::min(end, ends) - std::max(begin, starts)).ticks;
    };
    for (size_t w = 0; w < worker_count_; ++w) {
      const Instant begin = std::min(from(w), end);
      sum += (end - begin).ticks - computed(begin, begin_[w], early_end_[w]);
    }
    for (size_t node = 0; node < plan_.nodes().size(); ++node) {
      if (node_after_[node] >= end) continue;
      const Instant* const begins = &node_begin_[node * worker_count_];
      const Instant* const ends = &node_end_[node * worker_count_];
      for (size_t w = 0; w < worker_count_; ++w)
        sum -= computed(std::min(from(w), end), begins[w], ends[w]);
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

  // The waiting of one worker before each joint operation that began, as AddWaiting has it.
  void AddWaitingOf(size_t w) {
    const size_t count = begin_order_.size();
    first_ready_.resize(count);
    Instant first = kEndOfTime;
    for (size_t i = count; i-- > 0;)
      first_ready_[i] = first = std::min(first, Ready(begin_order_[i], w));
    Sweep sweep(computing_);
    Instant over = begin_[w];  // the last end of those begun so far
    for (size_t i = 0; i < count; ++i) {
      const Instant begun = begun_[begin_order_[i]];
      const Instant from = std::max(over, first_ready_[i]);
      if (from < begun) waiting_ += (begun - from).ticks - sweep.Within(from, begun);
      over = std::max(over, ended_[begin_order_[i]]);
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
  const bool paces_;                   // joint operations and computation slow each other down
  const bool in_order_;                // joint operations begin in their order
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
  std::vector<Instant> origin_;  // with paces; see Origin
  std::vector<Instant> next_origin_;
  std::vector<Instant> early_end_;  // of computation that waits for no joint operation
  Instant last_begin_;              // of all workers
  std::vector<size_t> next_node_;   // by stream
  // By node, then worker; by joint operation, then worker.
  std::vector<Instant> node_begin_;
  std::vector<Instant> node_end_;
  std::vector<int32_t> node_step_;   // by node: the last step in which it was run
  std::vector<Instant> node_after_;  // by node: it begins no earlier on any worker
  const bool joints_are_early_;
  std::vector<Instant> ready_;    // empty where joint operations are early
  std::vector<Instant> arrived_;  // by joint operation: on the last worker
  std::vector<Instant> begun_;
  std::vector<Instant> ended_;        // kEndOfTime: not yet
  std::vector<Instant> ended_clock_;  // on the clock of computation
  std::vector<size_t> unready_;       // joint operations that wait for others, or for nodes
  std::vector<std::pair<Instant, size_t>> arrivals_;  // a heap, on that clock; to be told
  std::vector<size_t> begin_order_;                   // joint operations
  // With paces: the clock of computation from each change on, and what it shows then.
  std::vector<LevelClock> clocks_;
  std::vector<Instant> anchors_;
  Instant computes_until_;          // on that clock: some worker does
  bool computes_none_ = false;      // none does
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
  std::vector<Instant> before_;
  std::vector<std::pair<Instant, int32_t>> order_;
};

}  // namespace

bool HasJointWorkOnly(const JobGraph& job, const RunOptions& options) {
  const bool paces = job.joint.has_paces();
  const bool one_stream = job.lanes().after_compute() == 1;
  // The plain engine takes workers that are alike as one.
  const bool differ = options.scaling != nullptr || job.step_count() > 1;
  const bool plainly = !paces && !job.joint.cycles.has_value() && !job.joint.priorities.has_value();
  return !job.joint.ops.empty() && job.programs.size() == 1 && job.networks.empty() &&
         job.couplings.empty() && job.peer_edges.empty() &&
         (paces ? one_stream : !job.slows_computation()) && (plainly || differ) &&
         options.trace == nullptr && options.until == kEndOfTime &&
         options.fastest_path != EnginePath::kPlain;
}

absl::StatusOr<RunResult> RunJoint(const JobGraph& job, const PreparedJoint& prepared,
                                   const RunOptions& options, StopCheck stop) {
  if (options.scaling != nullptr) return JointRun<true>(job, prepared, options, stop).Go();
  return JointRun<false>(job, prepared, options, stop).Go();
}

}  // namespace stepcast
