#include "tests/core/engine/naive_collectives.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <map>
#include <set>
#include <utility>

namespace stepcast::testing {

namespace {

constexpr double kTicksPerSecond = 2520e9;

// A log of all speeds that something has had. It tells by adding them up what has been done, in
// whole ticks from one change to the next.
class SpeedLog {
 public:
  static constexpr int64_t kWhole = int64_t{720720} * 720720;

  // From now on, in units of 1/kWhole.
  void Set(int64_t now, int64_t units) {
    if (speeds_.empty() || speeds_.back().second != units) speeds_.emplace_back(now, units);
  }
  int64_t DoneBy(int64_t now) const {
    int64_t done = 0;
    for (size_t i = 0; i < speeds_.size(); ++i) {
      const int64_t until = i + 1 < speeds_.size() ? speeds_[i + 1].first : now;
      done += static_cast<int64_t>(static_cast<__int128>(until - speeds_[i].first) *
                                   speeds_[i].second / kWhole);
    }
    return done;
  }
  // The first tick by which so much is done if the speed stays.
  int64_t When(int64_t work, int64_t now) const {
    if (DoneBy(now) >= work) return now;
    if (speeds_.empty()) return INT64_MAX;
    const auto [since, units] = speeds_.back();
    const __int128 left = work - DoneBy(since);
    return since + static_cast<int64_t>((left * kWhole + units - 1) / units);
  }

 private:
  std::vector<std::pair<int64_t, int64_t>> speeds_;
};

// Operations that go on together on all workers.
struct UnderWay {
  std::vector<size_t> operations;
  int64_t end = -1;   // where its speed is always the same
  int64_t work = -1;  // else how much is done at its end
};

struct WorkerState {
  SpeedLog clock;  // of its computation
  int32_t step = 0;
  bool begun = false;
  std::vector<int64_t> ready;  // by operation: number of its turn to be ready; -1: not yet
  std::vector<int64_t> ready_at;
  std::vector<int64_t> end;  // -1: not started; of computation: when so much is done on the clock
  std::vector<bool> done;
};

class Naive {
 public:
  explicit Naive(const NaiveCollectives& job)
      : job_(job), operations_(job.profile.operations()), how_(job.scenario.all_reduce()) {
    for (const WorkerGroup& group : job.scenario.worker_groups) {
      for (int32_t i = 0; i < group.count; ++i) {
        speeds_.push_back(group.compute_speed_factor.value_or(1));
        slowest_ = std::min(slowest_, group.bandwidth_bytes_per_second.value_or(
                                          job.scenario.bandwidth_bytes_per_second));
      }
    }
    speeds_.resize(static_cast<size_t>(job.scenario.workers), 1);
    if (job.scenario.worker_groups.empty()) slowest_ = job.scenario.bandwidth_bytes_per_second;
    workers_.resize(static_cast<size_t>(job.scenario.workers));
    ends_.resize(workers_.size());
    for (size_t i = 0; i < operations_.size(); ++i) {
      if (operations_[i].resource == Resource::kCollective) collectives_.push_back(i);
    }
  }

  std::vector<std::vector<int64_t>> Run(int32_t steps) {
    for (WorkerState& worker : workers_) worker.clock.Set(0, SpeedLog::kWhole);
    for (int64_t now = 0;; now = NextEvent(now)) {
      while (Turn(now)) {
      }
      if (Contends()) SetSpeeds(now);
      const bool over = std::all_of(ends_.begin(), ends_.end(), [&](const auto& ends) {
        return static_cast<int32_t>(ends.size()) >= steps;
      });
      if (over) break;
    }
    for (auto& ends : ends_) ends.resize(static_cast<size_t>(steps));
    return ends_;
  }

 private:
  int64_t OffsetOf(size_t worker) const {
    const auto& offsets = job_.scenario.start_offsets_ns;
    return offsets.empty() ? 0 : offsets[worker] * 2520;
  }

  int64_t NextEvent(int64_t now) const {
    int64_t next = INT64_MAX;
    const auto consider = [&](int64_t at) {
      if (at > now) next = std::min(next, at);
    };
    for (const UnderWay& each : under_way_) consider(CollectiveEnd(each, now));
    if (std::holds_alternative<Horovod>(how_.fusion) && under_way_.empty()) consider(next_cycle_);
    for (size_t w = 0; w < workers_.size(); ++w) {
      if (!workers_[w].begun) consider(OffsetOf(w));
      for (size_t i = 0; i < workers_[w].end.size(); ++i) {
        if (!workers_[w].done[i] && workers_[w].end[i] >= 0) consider(EndOf(workers_[w], i, now));
      }
    }
    return next;
  }

  int64_t EndOf(const WorkerState& worker, size_t i, int64_t now) const {
    if (operations_[i].resource == Resource::kWorker) return worker.clock.When(worker.end[i], now);
    const auto at = std::find_if(under_way_.begin(), under_way_.end(), [i](const UnderWay& each) {
      return std::count(each.operations.begin(), each.operations.end(), i) > 0;
    });
    return CollectiveEnd(*at, now);
  }
  int64_t CollectiveEnd(const UnderWay& each, int64_t now) const {
    return Contends() ? progress_.When(each.work, now) : each.end;
  }
  bool Contends() const { return how_.contention.has_value() || how_.collective_slowdown > 1; }

  // At the end of an instant, of all computation and of the collectives under way.
  void SetSpeeds(int64_t now) {
    bool computes = false;
    for (const WorkerState& worker : workers_) {
      for (size_t i = 0; i < worker.end.size(); ++i) {
        computes = computes || (operations_[i].resource == Resource::kWorker &&
                                worker.end[i] >= 0 && !worker.done[i]);
      }
    }
    if (!how_.contention.has_value()) {
      const auto slowed = [](double slowdown) {
        return static_cast<int64_t>(static_cast<double>(SpeedLog::kWhole) / slowdown);
      };
      for (WorkerState& worker : workers_) {
        worker.clock.Set(now,
                         under_way_.empty() ? SpeedLog::kWhole : slowed(how_.overlap_slowdown));
      }
      if (!under_way_.empty())
        progress_.Set(now, computes ? slowed(how_.collective_slowdown) : SpeedLog::kWhole);
      return;
    }
    const auto units = [](double speed) {
      return static_cast<int64_t>(static_cast<double>(SpeedLog::kWhole) * speed);
    };
    const Contention& rates = *how_.contention;
    for (WorkerState& worker : workers_) {
      worker.clock.Set(now, under_way_.empty() ? SpeedLog::kWhole
                                               : units(rates.alpha1 - rates.alpha2 * threads_));
    }
    if (under_way_.empty()) return;
    const int64_t length = computes ? overlapped_ : alone_;
    const int64_t least = std::min(overlapped_, alone_);
    progress_.Set(now, length == least
                           ? SpeedLog::kWhole
                           : units(static_cast<double>(least) / static_cast<double>(length)));
  }
  // The threads of the `i`th operation, a collective.
  int32_t ThreadsOf(size_t i) const {
    size_t before = 0;  // all-reduces
    for (size_t other = 0; other < i; ++other) before += IsAllReduce(other) ? 1 : 0;
    const bool has_own = IsAllReduce(i) && before < job_.threads.size() && job_.threads[before] > 0;
    return has_own ? job_.threads[before] : how_.threads;
  }
  // Collectives begin, as one, for so long if they are alone.
  void Begin(std::vector<size_t> operations, const Operation& as_one, int64_t length,
             int32_t threads, int64_t now) {
    if (under_way_.empty()) progress_ = {};
    if (how_.contention.has_value()) length = Contend(as_one, threads);
    for (WorkerState& worker : workers_) {
      for (const size_t i : operations) worker.end[i] = now;
    }
    under_way_.push_back({.operations = std::move(operations),
                          .end = now + length,
                          .work = progress_.DoneBy(now) + length});
  }
  // The ticks that it takes at its faster rate.
  int64_t Contend(const Operation& operation, int32_t threads) {
    const Contention& rates = *how_.contention;
    threads_ = threads;
    const auto length = [&](const TransferRate& rate) {
      const double power = std::pow(threads_, rates.gamma4);
      const double bytes_per_second = rate.gamma1 - rate.gamma2 * std::exp(-rate.gamma3 * power);
      return Ticks(how_.launch_seconds) + Ticks(Seconds(operation, bytes_per_second));
    };
    overlapped_ = length(rates.overlapped);
    alone_ = length(rates.alone);
    return std::min(overlapped_, alone_);
  }

  // One round of everything that happens at an instant; false: nothing did.
  bool Turn(int64_t now) {
    bool happened = false;
    ++turn_;
    for (size_t w = 0; w < workers_.size(); ++w) {
      WorkerState& worker = workers_[w];
      if (!worker.begun && OffsetOf(w) <= now) {
        worker.begun = true;
        Begin(worker);
        happened = true;
      }
      if (!worker.begun) continue;
      for (size_t i = 0; i < operations_.size(); ++i) {
        if (worker.done[i] || worker.end[i] < 0 || EndOf(worker, i, now) > now) continue;
        worker.done[i] = true;
        happened = true;
      }
      if (std::all_of(worker.done.begin(), worker.done.end(), [](bool done) { return done; })) {
        ends_[w].push_back(now);
        ++worker.step;
        Begin(worker);
        happened = true;
      }
    }
    const size_t went_on = under_way_.size();
    std::erase_if(under_way_,
                  [&](const UnderWay& each) { return CollectiveEnd(each, now) <= now; });
    if (under_way_.size() < went_on) {
      if (std::holds_alternative<Horovod>(how_.fusion) && groups_.empty())
        next_cycle_ = std::max(cycle_begin_ + CycleTicks(), now);
      happened = true;
    }
    for (WorkerState& worker : workers_) {
      if (worker.begun) happened = LineUp(worker, now) || happened;
    }
    for (size_t w = 0; w < workers_.size(); ++w) {
      if (workers_[w].begun) happened = StartComputations(w, now) || happened;
    }
    if (happened) return true;
    return std::holds_alternative<Horovod>(how_.fusion) ? StartGroup(now) : StartCollective(now);
  }

  void Begin(WorkerState& worker) {
    worker.ready.assign(operations_.size(), -1);
    worker.ready_at.assign(operations_.size(), -1);
    worker.end.assign(operations_.size(), -1);
    worker.done.assign(operations_.size(), false);
  }

  bool LineUp(WorkerState& worker, int64_t now) const {
    bool happened = false;
    for (size_t i = 0; i < operations_.size(); ++i) {
      if (worker.ready[i] >= 0) continue;
      const auto& before = operations_[i].waiting_for;
      if (!std::all_of(before.begin(), before.end(),
                       [&](int32_t b) { return worker.done[static_cast<size_t>(b)]; }))
        continue;
      worker.ready[i] = turn_;
      worker.ready_at[i] = now;
      happened = true;
    }
    return happened;
  }

  bool StartComputations(size_t w, int64_t now) {
    WorkerState& worker = workers_[w];
    std::set<int32_t> busy;
    for (size_t i = 0; i < operations_.size(); ++i) {
      if (operations_[i].resource == Resource::kWorker && worker.end[i] >= 0 && !worker.done[i])
        busy.insert(operations_[i].stream);
    }
    std::map<int32_t, size_t> first;  // by stream
    for (size_t i = 0; i < operations_.size(); ++i) {
      const int32_t stream = operations_[i].stream;
      if (operations_[i].resource != Resource::kWorker || worker.end[i] >= 0 ||
          worker.ready[i] < 0 || busy.contains(stream))
        continue;
      const auto [at, is_new] = first.try_emplace(stream, i);
      if (!is_new && worker.ready[i] < worker.ready[at->second]) at->second = i;
    }
    for (const auto& [stream, i] : first) {
      const RecordedStep& step =
          job_.profile
              .steps()[static_cast<size_t>(job_.recorded(static_cast<int32_t>(w), worker.step))];
      const int64_t recorded = (step.end_ns[i] - step.start_ns[i]) * 2520;
      int64_t length = recorded;
      if (speeds_[w] != 1 && recorded > 0) {
        length = std::llround(std::max(1.0, static_cast<double>(recorded) / speeds_[w]));
      }
      worker.end[i] = worker.clock.DoneBy(now) + length;
    }
    return !first.empty();
  }

  bool StartCollective(int64_t now) {
    if (collectives_.empty() ||
        static_cast<int32_t>(under_way_.size()) == how_.concurrent_collectives)
      return false;
    const size_t i = collectives_[next_ % collectives_.size()];
    const auto step = static_cast<int32_t>(next_ / collectives_.size());
    for (const WorkerState& worker : workers_) {
      if (!worker.begun || worker.step != step || worker.ready[i] < 0) return false;
    }
    ++next_;
    const double seconds = how_.launch_seconds + Seconds(operations_[i], slowest_);
    Begin({i}, operations_[i], std::llround(seconds * kTicksPerSecond), ThreadsOf(i), now);
    return true;
  }

  static int64_t Ticks(double seconds) { return std::llround(seconds * 1e9 * 2520); }
  int64_t CycleTicks() const {
    return static_cast<int64_t>(std::get<Horovod>(how_.fusion).cycle_seconds * 1e9 * 2520);
  }

  // Every cycle, empty ones too: what every worker has ready, the first to be so first.
  void BeginCycle(int64_t now) {
    cycle_begin_ = now;
    next_cycle_ = now + CycleTicks();
    std::vector<std::pair<int64_t, size_t>> requests;
    for (const size_t i : collectives_) {
      int64_t at = 0;
      bool all = true;
      for (const WorkerState& worker : workers_) {
        all = all && worker.begun && worker.ready[i] >= 0 && worker.end[i] < 0;
        if (all) at = std::max(at, worker.ready_at[i]);
      }
      if (all) requests.emplace_back(at, i);
    }
    std::sort(requests.begin(), requests.end());
    const int64_t most = std::get<Horovod>(how_.fusion).fusion_bytes;
    std::vector<bool> taken(requests.size(), false);
    for (size_t first = 0; first < requests.size(); ++first) {
      if (taken[first]) continue;
      std::vector<size_t>& group = groups_.emplace_back(1, requests[first].second);
      taken[first] = true;
      if (!IsAllReduce(requests[first].second)) continue;
      int64_t sum = operations_[requests[first].second].size_bytes;
      int64_t skipped = 0;
      for (size_t other = first + 1; other < requests.size(); ++other) {
        if (taken[other]) continue;
        const int64_t bytes = operations_[requests[other].second].size_bytes;
        if (IsAllReduce(requests[other].second) && sum + bytes <= most) {
          sum += bytes;
          taken[other] = true;
          group.push_back(requests[other].second);
          continue;
        }
        skipped += bytes;
        if (sum + skipped > most) break;
      }
    }
  }
  bool IsAllReduce(size_t i) const { return operations_[i].collective == Collective::kAllReduce; }

  bool StartGroup(int64_t now) {
    if (!under_way_.empty()) return false;
    if (groups_.empty() && next_cycle_ <= now) BeginCycle(now);
    if (groups_.empty()) return false;
    const std::vector<size_t> group = groups_.front();
    groups_.erase(groups_.begin());
    Operation fused = operations_[group.front()];
    fused.size_bytes = 0;
    for (const size_t i : group) fused.size_bytes += operations_[i].size_bytes;
    // Each rounded to a tick: a cycle later is another fusing.
    Begin(group, fused, Ticks(how_.launch_seconds) + Ticks(Seconds(fused, slowest_)), how_.threads,
          now);
    return true;
  }

  double Seconds(const Operation& operation, double bytes_per_second) const {
    const double n = job_.scenario.workers;
    if (n == 1) return 0;
    const auto bytes = static_cast<double>(operation.size_bytes);
    const double round = how_.latency_seconds + bytes / (n * bytes_per_second);
    const double added = (n - 1) / n * bytes * how_.reduction_seconds_per_byte;
    switch (operation.collective) {
      case Collective::kAllReduce:
        return 2 * (n - 1) * round + added;
      case Collective::kReduceScatter:
        return (n - 1) * round + added;
      case Collective::kAllGather:
        return (n - 1) * round;
      default:
        return (n - 1) * how_.latency_seconds + bytes / bytes_per_second;
    }
  }

  const NaiveCollectives& job_;
  const std::vector<Operation>& operations_;
  const AllReduce& how_;
  std::vector<double> speeds_;
  double slowest_ = 1e300;
  std::vector<WorkerState> workers_;
  std::vector<std::vector<int64_t>> ends_;
  std::vector<size_t> collectives_;
  size_t next_ = 0;  // of the sequence over all steps
  std::vector<UnderWay> under_way_;
  SpeedLog progress_;       // of all that is under way, since nothing was
  int64_t overlapped_ = 0;  // with contention, as long as it takes while some worker computes
  int64_t alone_ = 0;       // while none does
  int32_t threads_ = 0;
  std::vector<std::vector<size_t>> groups_;  // of Horovod's cycle, those that have not begun
  int64_t cycle_begin_ = 0;
  int64_t next_cycle_ = 0;
  int64_t turn_ = 0;
};

}  // namespace

std::vector<std::vector<int64_t>> NaiveStepEnds(const NaiveCollectives& job, int32_t steps) {
  return Naive(job).Run(steps);
}

namespace {

// The operations of each bucket; it may be empty.
ProfileDraft FusedIn(const std::vector<std::vector<size_t>>& buckets, const ProfileDraft& profile) {
  // A bucket stands in its last member's place; the other members become its alias.
  std::vector<int32_t> stands_for(profile.operations.size());
  for (size_t i = 0; i < stands_for.size(); ++i) stands_for[i] = static_cast<int32_t>(i);
  ProfileDraft fused = profile;
  std::set<size_t> gone;
  for (const std::vector<size_t>& bucket : buckets) {
    if (bucket.empty()) continue;
    Operation& last = fused.operations[bucket.back()];
    for (const size_t member : bucket) {
      if (member == bucket.back()) continue;
      last.size_bytes += profile.operations[member].size_bytes;
      last.waiting_for.insert(last.waiting_for.end(),
                              profile.operations[member].waiting_for.begin(),
                              profile.operations[member].waiting_for.end());
      stands_for[member] = static_cast<int32_t>(bucket.back());
      gone.insert(member);
    }
  }
  std::vector<int32_t> now(profile.operations.size(), -1);
  int32_t count = 0;
  for (size_t i = 0; i < now.size(); ++i) {
    if (!gone.contains(i)) now[i] = count++;
  }
  ProfileDraft kept = fused;
  kept.operations.clear();
  for (RecordedStep& step : kept.steps) step = {};
  for (size_t i = 0; i < fused.operations.size(); ++i) {
    if (gone.contains(i)) continue;
    Operation operation = fused.operations[i];
    std::set<int32_t> waiting;
    for (const int32_t before : operation.waiting_for) {
      const int32_t bucket = stands_for[static_cast<size_t>(before)];
      if (bucket != static_cast<int32_t>(i)) waiting.insert(now[static_cast<size_t>(bucket)]);
    }
    operation.waiting_for.assign(waiting.begin(), waiting.end());
    kept.operations.push_back(operation);
    for (size_t s = 0; s < kept.steps.size(); ++s) {
      kept.steps[s].start_ns.push_back(fused.steps[s].start_ns[i]);
      kept.steps[s].end_ns.push_back(fused.steps[s].end_ns[i]);
    }
  }
  kept.buckets.reset();
  return kept;
}

}  // namespace

ProfileDraft NaivelyFused(const ProfileDraft& profile, int64_t first_bytes, int64_t cap_bytes) {
  std::vector<std::vector<size_t>> buckets(1);
  int64_t bytes = 0;
  for (size_t i = 0; i < profile.operations.size(); ++i) {
    if (profile.operations[i].collective != Collective::kAllReduce) continue;
    buckets.back().push_back(i);
    bytes += profile.operations[i].size_bytes;
    if (bytes < (buckets.size() == 1 ? first_bytes : cap_bytes)) continue;
    buckets.emplace_back();
    bytes = 0;
  }
  return FusedIn(buckets, profile);
}

ProfileDraft NaivelyGrouped(const ProfileDraft& profile, const std::vector<int32_t>& counts) {
  std::vector<std::vector<size_t>> buckets(counts.size());
  size_t at = 0;
  for (size_t i = 0; i < profile.operations.size(); ++i) {
    if (profile.operations[i].collective != Collective::kAllReduce) continue;
    while (buckets[at].size() == static_cast<size_t>(counts[at])) ++at;
    buckets[at].push_back(i);
  }
  return FusedIn(buckets, profile);
}

}  // namespace stepcast::testing
