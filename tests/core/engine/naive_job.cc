#include "tests/core/engine/naive_job.h"

#include <algorithm>
#include <deque>
#include <map>
#include <optional>
#include <set>
#include <stdexcept>
#include <tuple>
#include <utility>

#include "core/base/random.h"

namespace stepcast::testing {

namespace {

// The reading of a clock that runs at `residual` / (`flows` x kUnit), rounded down at each change.
class NaiveClock {
 public:
  void SetRate(Instant at, const LinkLevel& rate) {
    if (!rates_.empty() && rates_.back().second == rate) return;
    rates_.emplace_back(at, rate);
  }
  int64_t At(Instant now) const {
    int64_t shown = 0;
    for (size_t i = 0; i < rates_.size() && rates_[i].first <= now; ++i) {
      const bool is_last = i + 1 == rates_.size() || rates_[i + 1].first > now;
      const Span elapsed = (is_last ? now : rates_[i + 1].first) - rates_[i].first;
      shown += WorkIn(rates_[i].second, elapsed);
    }
    return shown;
  }
  // The first tick that shows it, at the present rate.
  Instant When(int64_t value, Instant now) const {
    if (At(now) >= value) return now;
    int64_t low = 0;
    int64_t high = 1;
    while (At(now + Span{high}) < value) high *= 2;
    while (high - low > 1) {
      const int64_t middle = low + (high - low) / 2;
      (At(now + Span{middle}) < value ? low : high) = middle;
    }
    return now + Span{high};
  }

 private:
  static int64_t WorkIn(const LinkLevel& rate, Span elapsed) {
    if (rate.flows == 0) return 0;
    return static_cast<int64_t>(static_cast<__int128>(elapsed.ticks) * rate.residual /
                                (static_cast<__int128>(rate.flows) * LinkLevel::kUnit));
  }

  std::vector<std::pair<Instant, LinkLevel>> rates_;
};

constexpr LinkLevel kWhole{.residual = LinkLevel::kUnit, .flows = 1};

struct RunningOp {
  OpIndex op = 0;
  Instant start;
  int64_t end = 0;  // of what slows down or is shared: on its clock; else an instant
};

struct NaiveWorker {
  const Program* program = nullptr;
  Random random{0};
  bool is_in_step = false;
  int32_t begun = 0;  // steps
  int32_t ended = 0;
  int32_t recorded = 0;
  std::vector<int32_t> waits;
  size_t left = 0;
  std::map<LaneIndex, RunningOp> running;
  std::map<LaneIndex, std::deque<OpIndex>> lines;
  std::set<OpIndex> at_meeting;  // kStepEnd among them
  std::set<size_t> gatherings;   // that its step still waits for
  NaiveClock clock;
  std::vector<ChunkRecord> step_chunks;
};

// The begin of a round of a worker.
struct NaiveRound {
  std::vector<LaneIndex> ending;
  std::vector<OpIndex> ready;
};

class NaiveJob {
 public:
  NaiveJob(const JobGraph& job, const RunOptions& options)
      : job_(job), options_(options), workers_(Index(job.workers())) {
    for (int32_t w = 0; w < job.workers(); ++w) {
      NaiveWorker& worker = workers_[Index(w)];
      worker.program = &job.program(w);
      const int32_t stream = job.drawing == StepDrawing::kJoint ? 0 : w;
      worker.random = Random({options.seed, options.replication, static_cast<uint64_t>(stream), 1});
      worker.clock.SetRate(Instant{}, kWhole);
    }
  }

  std::vector<ChunkRecord> Run() {
    while (std::any_of(workers_.begin(), workers_.end(), [&](const NaiveWorker& worker) {
      return worker.ended < options_.steps_per_worker;
    })) {
      RunInstant(Next());
    }
    return chunks_;
  }

 private:
  using Rounds = std::vector<NaiveRound>;  // by worker

  static bool IsShared(const NaiveWorker& worker, LaneIndex lane) {
    return worker.program->lanes().IsLink(lane);
  }
  static bool IsSlowed(const NaiveWorker& worker, LaneIndex lane) {
    return worker.program->lanes()[lane].role == LaneRole::kCompute;
  }

  Instant EndOf(const NaiveWorker& worker, LaneIndex lane, const RunningOp& running) const {
    if (IsShared(worker, lane)) return link_.When(running.end, now_);
    if (IsSlowed(worker, lane)) return worker.clock.When(running.end, now_);
    return Instant{running.end};
  }

  Instant Next() const {
    std::optional<Instant> next;
    const auto consider = [&](Instant at) {
      if (!next.has_value() || at < *next) next = at;
    };
    for (size_t w = 0; w < workers_.size(); ++w) {
      if (workers_[w].begun == 0) consider(Instant{} + options_.start_offsets[w]);
      for (const auto& [lane, running] : workers_[w].running)
        consider(EndOf(workers_[w], lane, running));
    }
    if (!next.has_value()) throw std::logic_error("nothing will ever happen again");
    return *next;
  }

  void RunInstant(Instant now) {
    Rounds rounds(workers_.size());
    for (size_t w = 0; w < workers_.size(); ++w) {
      for (const auto& [lane, running] : workers_[w].running) {
        if (EndOf(workers_[w], lane, running) <= now) rounds[w].ending.push_back(lane);
      }
    }
    now_ = now;
    for (size_t w = 0; w < workers_.size(); ++w) {
      if (workers_[w].begun == 0 && Instant{} + options_.start_offsets[w] == now)
        rounds[w].ready = BeginStep(w);
    }
    RunRounds(std::move(rounds));
    for (bool more = true; more;) {
      more = PassFullMeetings();
      more = ReleasePeers() || more;
    }
    Settle();
  }

  // Until nothing more ends at this instant: all completions of a round before anything lines up.
  void RunRounds(Rounds rounds) {
    for (bool more = true; more;) {
      more = false;
      for (size_t w = 0; w < workers_.size(); ++w) {
        for (const LaneIndex lane : rounds[w].ending) {
          for (const OpIndex op : Complete(w, lane)) rounds[w].ready.push_back(op);
        }
      }
      for (size_t w = 0; w < workers_.size(); ++w) {
        BringGathered(w, rounds[w].ready);
        LineUp(w, std::move(rounds[w].ready));
        rounds[w] = {.ending = ServeIdle(w)};
        more = more || !rounds[w].ending.empty();
      }
    }
  }

  void LineUp(size_t w, std::vector<OpIndex> ready) {
    std::sort(ready.begin(), ready.end());
    for (const OpIndex op : ready) {
      if (CouplingOf(w, op).has_value()) {
        Arrive(w, op);
      } else {
        workers_[w].lines[workers_[w].program->lane(op)].push_back(op);
      }
    }
  }

  void BringGathered(size_t w, std::vector<OpIndex>& ready) {
    NaiveWorker& worker = workers_[w];
    std::erase_if(worker.gatherings, [&](size_t i) {
      if (!IsGathered(i, worker.begun)) return false;
      const OpIndex after = job_.gatherings[i].after;
      if (--worker.waits[Index(after)] == 0) ready.push_back(after);
      return true;
    });
  }

  // Lanes whose new chunk takes no time.
  std::vector<LaneIndex> ServeIdle(size_t w) {
    NaiveWorker& worker = workers_[w];
    std::vector<LaneIndex> over;
    for (auto& [lane, line] : worker.lines) {
      if (line.empty() || worker.running.count(lane) > 0) continue;
      const OpIndex op = line.front();
      line.pop_front();
      RunningOp& running = worker.running[lane] = {.op = op, .start = now_};
      const Span duration = worker.program->duration(worker.recorded, op);
      if (IsShared(worker, lane)) {
        starting_.push_back({w, lane});
      } else if (duration.ticks == 0) {
        running.end = IsSlowed(worker, lane) ? worker.clock.At(now_) : now_.ticks;
        over.push_back(lane);
      } else {
        running.end =
            (IsSlowed(worker, lane) ? worker.clock.At(now_) : now_.ticks) + duration.ticks;
      }
    }
    return over;
  }

  // Operations that become ready by it.
  std::vector<OpIndex> Complete(size_t w, LaneIndex lane) {
    NaiveWorker& worker = workers_[w];
    const RunningOp running = worker.running.at(lane);
    worker.running.erase(lane);
    worker.step_chunks.push_back({.worker = static_cast<int32_t>(w),
                                  .op = running.op,
                                  .step = worker.ended,
                                  .start = running.start,
                                  .end = now_});
    std::vector<OpIndex> ready;
    for (const OpIndex op : worker.program->dependents(running.op)) {
      if (--worker.waits[Index(op)] == 0) ready.push_back(op);
    }
    for (const PeerEdge& edge : job_.peer_edges) {
      if (edge.before == running.op) peer_ends_.push_back({w, worker.begun, edge});
    }
    if (!job_.gatherings.empty()) all_ends_.insert({w, worker.begun, running.op});
    if (--worker.left > 0) return ready;
    ++worker.ended;
    worker.is_in_step = false;
    chunks_.insert(chunks_.end(), worker.step_chunks.begin(), worker.step_chunks.end());
    worker.step_chunks.clear();
    if (CouplingOf(w, kStepEnd).has_value()) {
      Arrive(w, kStepEnd);
      return ready;
    }
    for (const OpIndex op : BeginStep(w)) ready.push_back(op);
    return ready;
  }

  // The roots.
  std::vector<OpIndex> BeginStep(size_t w) {
    NaiveWorker& worker = workers_[w];
    worker.is_in_step = true;
    worker.recorded =
        job_.drawing == StepDrawing::kReplay ? worker.begun % job_.step_count()
        : job_.step_count() == 1
            ? 0
            : static_cast<int32_t>(worker.random.Below(static_cast<uint64_t>(job_.step_count())));
    ++worker.begun;
    worker.left = Index(worker.program->size());
    worker.waits = worker.program->dependency_counts();
    for (const PeerEdge& edge : job_.peer_edges) {
      if (!HasPeerEnded(w, worker.begun, edge)) ++worker.waits[Index(edge.after)];
    }
    for (size_t i = 0; i < job_.gatherings.size(); ++i) {
      if (IsGathered(i, worker.begun)) continue;
      ++worker.waits[Index(job_.gatherings[i].after)];
      worker.gatherings.insert(i);
    }
    std::vector<OpIndex> roots;
    for (OpIndex op = 0; op < worker.program->size(); ++op) {
      if (worker.program->dependency_count(op) == 0 && worker.waits[Index(op)] == 0)
        roots.push_back(op);
    }
    return roots;
  }

  size_t PeerOf(size_t w, const PeerEdge& edge) const {
    const auto n = static_cast<int64_t>(workers_.size());
    return static_cast<size_t>(((static_cast<int64_t>(w) + edge.worker_offset) % n + n) % n);
  }
  bool HasPeerEnded(size_t w, int32_t step, const PeerEdge& edge) const {
    return past_ends_.count({PeerOf(w, edge), step, edge.before}) > 0;
  }

  // True if every worker has ended what the operation of that step waits for.
  bool IsGathered(size_t i, int32_t step) const {
    const int32_t of_step = job_.gatherings[i].of_last_step ? step - 1 : step;
    for (size_t w = 0; w < workers_.size() && of_step > 0; ++w) {
      for (const OpIndex before : job_.gatherings[i].befores) {
        if (all_ends_.count({w, of_step, before}) == 0) return false;
      }
    }
    return true;
  }

  std::optional<size_t> CouplingOf(size_t w, OpIndex op) const {
    for (size_t i = 0; i < job_.couplings.size(); ++i) {
      const std::vector<int32_t>& group = job_.groups[Index(job_.couplings[i].group)];
      if (job_.couplings[i].op == op &&
          std::count(group.begin(), group.end(), static_cast<int32_t>(w)) > 0)
        return i;
    }
    return std::nullopt;
  }

  void Arrive(size_t w, OpIndex op) { workers_[w].at_meeting.insert(op); }

  bool PassFullMeetings() {
    std::vector<size_t> full;
    for (size_t i = 0; i < job_.couplings.size(); ++i) {
      const std::vector<int32_t>& group = job_.groups[Index(job_.couplings[i].group)];
      if (std::all_of(group.begin(), group.end(), [&](int32_t w) {
            return workers_[Index(w)].at_meeting.count(job_.couplings[i].op) > 0;
          }))
        full.push_back(i);
    }
    for (const size_t i : full) {
      const OpIndex op = job_.couplings[i].op;
      const std::vector<int32_t>& group = job_.groups[Index(job_.couplings[i].group)];
      for (const int32_t w : group) workers_[Index(w)].at_meeting.erase(op);
      Rounds rounds(workers_.size());
      for (const int32_t w : group) {
        if (op == kStepEnd) {
          rounds[Index(w)].ready = BeginStep(Index(w));
        } else {
          NaiveWorker& worker = workers_[Index(w)];
          worker.lines[worker.program->lane(op)].push_back(op);
        }
      }
      RunRounds(std::move(rounds));
    }
    return !full.empty();
  }

  bool ReleasePeers() {
    if (peer_ends_.empty()) return false;
    std::map<size_t, std::vector<OpIndex>> released;
    const std::vector<PeerEnd> ends = std::exchange(peer_ends_, {});
    for (const PeerEnd& end : ends) {
      for (size_t w = 0; w < workers_.size(); ++w) {
        if (PeerOf(w, end.edge) != end.worker) continue;
        // One that begins the step later looks for itself.
        if (workers_[w].begun == end.step && workers_[w].is_in_step)
          released[w].push_back(end.edge.after);
      }
    }
    for (const PeerEnd& end : ends) past_ends_.insert({end.worker, end.step, end.edge.before});
    Rounds rounds(workers_.size());
    for (const auto& [w, ops] : released) {
      for (const OpIndex op : ops) {
        if (--workers_[w].waits[Index(op)] == 0) rounds[w].ready.push_back(op);
      }
    }
    RunRounds(std::move(rounds));
    return true;
  }

  // Rates follow who is under way now.
  void Settle() {
    for (const auto& [w, lane] : starting_) {
      RunningOp& running = workers_[w].running.at(lane);
      running.end = link_.At(now_) + workers_[w].program->work(running.op).first.ticks;
    }
    starting_.clear();
    int64_t flows = 0;
    for (NaiveWorker& worker : workers_) {
      bool communicates = false;
      for (const auto& [lane, running] : worker.running)
        communicates = communicates || IsShared(worker, lane);
      flows += communicates ? 1 : 0;
      worker.clock.SetRate(now_, communicates ? job_.overlapped_speed : kWhole);
    }
    link_.SetRate(now_, {.residual = LinkLevel::kUnit, .flows = flows});
  }

  struct PeerEnd {
    size_t worker;
    int32_t step;
    PeerEdge edge;
  };

  const JobGraph& job_;
  const RunOptions& options_;
  std::vector<NaiveWorker> workers_;
  NaiveClock link_;
  Instant now_;
  std::vector<std::pair<size_t, LaneIndex>> starting_;
  std::vector<PeerEnd> peer_ends_;  // of this instant, not yet told
  std::set<std::tuple<size_t, int32_t, OpIndex>> past_ends_;
  std::set<std::tuple<size_t, int32_t, OpIndex>> all_ends_;
  std::vector<ChunkRecord> chunks_;
};

}  // namespace

std::vector<ChunkRecord> SimulateJobNaively(const JobGraph& job, const RunOptions& options) {
  return NaiveJob(job, options).Run();
}

}  // namespace stepcast::testing
