#include "tests/core/engine/naive_simulation.h"

#include <algorithm>
#include <list>
#include <set>
#include <utility>
#include <variant>

#include "tests/core/engine/naive_graph.h"
#include "tests/core/engine/naive_turns.h"
#include "tests/core/network/exact_max_min.h"

namespace stepcast::testing {

namespace {

constexpr int64_t kNanosecondsPerSecond = 1'000'000'000;

struct Stream {
  size_t operation = 0;
  int64_t bytes = 0;  // still to be sent
  int services = 0;   // already had
};

struct Chunk {
  Stream stream;  // what is left of it after this chunk
  Exact left;     // bytes, or nanoseconds of a computation
  bool ends_operation = true;
  int service = 0;
  Exact start_ns;
};

// One resource of one worker.
struct Lane {
  std::list<Stream> queue;  // in order of arrival
  std::optional<Chunk> running;
  // Where links forward: what they have of this lane, and how many of the first of it are there.
  std::list<Chunk> on_its_way;
  int arrived = 0;
  Exact last_arrival_ns;
};

// The worker that has the turn on a server's link in one direction, and those that come next.
struct TurnLine {
  std::list<size_t> newcomers;
  std::list<size_t> others;
  std::optional<size_t> serving;
  Exact bytes_left;  // of the turn
};

struct Worker {
  Exact offset_ns;
  Exact speed;      // of its computations
  Exact bandwidth;  // bytes per nanosecond, each direction
  std::map<std::pair<Resource, int>, Lane> lanes;
  std::map<size_t, std::set<size_t>>
      waiting;  // what each operation that has not begun still waits for
  std::set<size_t> unfinished;
  std::set<size_t> awaits_sum;                // of those that have not begun
  std::set<std::pair<size_t, size_t>> ended;  // step, operation
  size_t recorded = 0;                        // the step it runs
  std::map<size_t, int64_t> ranks;
  size_t begun = 0;  // steps
  std::vector<Exact> ends;
};

// The effects of one worker's completions of a round.
struct Round {
  std::set<size_t> ready;
  std::vector<std::pair<Lane*, Stream>> rejoining;
};

class NaiveSimulation {
 public:
  NaiveSimulation(const Profile& profile, const Scenario& scenario, const NaiveOptions& options)
      : graph_(MakeNaiveGraph(profile, scenario)), scenario_(scenario), options_(options) {
    for (int w = 0; w < scenario.workers; ++w) workers_.push_back(MakeWorker(w));
    MakeForwardingLinks();
  }

  NaiveResult Run() {
    Settle();
    GiveTurns();
    while (!AllDone()) {
      Advance();
      Settle();
      GiveTurns();
    }
    return Conclude();
  }

 private:
  Worker MakeWorker(int w) const {
    Worker worker;
    worker.offset_ns =
        scenario_.start_offsets_ns.empty() ? 0 : scenario_.start_offsets_ns[static_cast<size_t>(w)];
    worker.speed = 1;
    worker.bandwidth = Exact(scenario_.bandwidth_bytes_per_second) / kNanosecondsPerSecond;
    int before = 0;
    for (const WorkerGroup& group : scenario_.worker_groups) {
      if (w >= before && w < before + group.count) {
        worker.speed = Exact(*group.compute_speed_factor);
        worker.bandwidth = Exact(*group.bandwidth_bytes_per_second) / kNanosecondsPerSecond;
      }
      before += group.count;
    }
    return worker;
  }

  // In turns, where flows may wait at two links.
  void MakeForwardingLinks() {
    const auto* const turns = std::get_if<Turns>(&scenario_.servers().link_sharing);
    if (turns == nullptr) return;
    NaiveTurns::Rules rules{
        .servers = scenario_.servers().servers,
        .server_rate = Exact(scenario_.bandwidth_bytes_per_second) / kNanosecondsPerSecond,
        .turn_bytes = turns->bytes};
    for (const Worker& worker : workers_) rules.worker_rates.push_back(worker.bandwidth);
    const bool has_slow = std::any_of(workers_.begin(), workers_.end(), [&](const Worker& worker) {
      return worker.bandwidth < rules.server_rate;
    });
    if (rules.servers == 1 && !has_slow) return;
    forwarding_.emplace(Resource::kDownlink, rules);
    rules.from_workers = true;
    forwarding_.emplace(Resource::kUplink, rules);
  }

  bool AllDone() const {
    return std::all_of(workers_.begin(), workers_.end(), [this](const Worker& worker) {
      return worker.ends.size() >= static_cast<size_t>(options_.steps_per_worker);
    });
  }

  // Goes to the next instant at which a chunk ends or a worker begins late.
  void Advance() {
    const std::vector<std::pair<Chunk*, Exact>> running = Rates();
    std::optional<Exact> span;
    const auto consider = [&span](const Exact& candidate) {
      if (!span.has_value() || candidate < *span) span = candidate;
    };
    for (const auto& [chunk, rate] : running) {
      if (rate > 0) consider(chunk->left / rate);
    }
    for (const Worker& worker : workers_) {
      if (worker.begun == 0) consider(worker.offset_ns - now_);
    }
    for (const auto& [direction, links] : forwarding_) {
      if (const std::optional<Exact> next = links.NextSpan()) consider(*next);
    }
    for (auto& [which, line] : lines_) {
      if (line.serving.has_value())
        consider(line.bytes_left / RateOf(*line.serving, which, running));
    }
    for (auto& [which, line] : lines_) {
      if (line.serving.has_value())
        line.bytes_left -= *span * RateOf(*line.serving, which, running);
    }
    for (const auto& [chunk, rate] : running) chunk->left -= *span * rate;
    for (auto& [direction, links] : forwarding_) {
      links.Advance(*span);
      for (const auto& [w, server] : links.TakeHandedOver())
        workers_[w].lanes.at({direction, server}).running->left = 0;
      for (const auto& [w, server] : links.TakeDelivered())
        workers_[w].lanes.at({direction, server}).arrived += 1;
    }
    now_ += *span;
  }

  Exact RateOf(size_t w, const std::pair<Resource, int>& which,
               const std::vector<std::pair<Chunk*, Exact>>& running) {
    const Chunk* const chunk = &*workers_[w].lanes.at(which).running;
    return std::find_if(running.begin(), running.end(),
                        [chunk](const auto& one) { return one.first == chunk; })
        ->second;
  }

  bool IsSending(size_t w, const std::pair<Resource, int>& which) const {
    const auto lane = workers_[w].lanes.find(which);
    return lane != workers_[w].lanes.end() && lane->second.running.has_value();
  }

  // In turns: when a turn is over the next one begins. Whoever was idle goes before those who were
  // not.
  void GiveTurns() {
    if (!std::holds_alternative<Turns>(scenario_.servers().link_sharing)) return;
    for (auto& [direction, links] : forwarding_) links.GiveTurns();
    if (!forwarding_.empty()) return;
    for (const Resource direction : {Resource::kDownlink, Resource::kUplink}) {
      for (int server = 0; server < scenario_.servers().servers; ++server)
        GiveTurn({direction, server});
    }
  }

  void GiveTurn(const std::pair<Resource, int>& which) {
    TurnLine& line = lines_[which];
    for (size_t w = 0; w < workers_.size(); ++w) {
      const bool is_known = line.serving == w ||
                            std::count(line.newcomers.begin(), line.newcomers.end(), w) > 0 ||
                            std::count(line.others.begin(), line.others.end(), w) > 0;
      if (!is_known && IsSending(w, which)) line.newcomers.push_back(w);
    }
    if (line.serving.has_value() && (line.bytes_left == 0 || !IsSending(*line.serving, which))) {
      if (IsSending(*line.serving, which)) line.others.push_back(*line.serving);
      line.serving.reset();
      events_.turns_ended += 1;
    }
    std::list<size_t>& next = line.newcomers.empty() ? line.others : line.newcomers;
    if (line.serving.has_value() || next.empty()) return;
    events_.newcomers_first += !line.newcomers.empty() && !line.others.empty() ? 1 : 0;
    line.serving = next.front();
    next.pop_front();
    line.bytes_left = std::get<Turns>(scenario_.servers().link_sharing).bytes;
  }

  // Every running chunk with its speed at this moment, which is 0 where it waits for its link.
  std::vector<std::pair<Chunk*, Exact>> Rates() {
    std::vector<std::pair<Chunk*, Exact>> result;
    for (Worker& worker : workers_) {
      for (auto& [which, lane] : worker.lanes) {
        if (!lane.running.has_value() || IsTransfer(which.first)) continue;
        result.emplace_back(&*lane.running,
                            which.first == Resource::kWorker ? worker.speed : Exact(1));
      }
    }
    for (const Resource direction : {Resource::kDownlink, Resource::kUplink}) {
      if (forwarding_.empty()) ShareLinks(direction, result);
    }
    return result;
  }

  // Links: first those of the servers, then those of the workers.
  void ShareLinks(Resource direction, std::vector<std::pair<Chunk*, Exact>>& result) {
    const auto servers = static_cast<size_t>(scenario_.servers().servers);
    std::vector<Exact> capacities(
        servers, Exact(scenario_.bandwidth_bytes_per_second) / kNanosecondsPerSecond);
    std::vector<std::vector<size_t>> flows;
    std::vector<Chunk*> chunks;
    for (size_t w = 0; w < workers_.size(); ++w) {
      capacities.push_back(workers_[w].bandwidth);
      for (auto& [which, lane] : workers_[w].lanes) {
        if (which.first != direction || !lane.running.has_value()) continue;
        if (!IsServed(w, which, *lane.running)) {
          result.emplace_back(&*lane.running, 0);
          continue;
        }
        flows.push_back({static_cast<size_t>(which.second), servers + w});
        chunks.push_back(&*lane.running);
      }
    }
    const std::vector<Exact> rates = MaxMinRates(capacities, flows);
    bool unequal = false;
    for (size_t i = 0; i < rates.size(); ++i) {
      result.emplace_back(chunks[i], rates[i]);
      for (size_t j = 0; j < i; ++j)
        unequal = unequal || (flows[i][0] == flows[j][0] && rates[i] != rates[j]);
    }
    events_.unequal_rates += unequal ? 1 : 0;
  }

  // True if the server's link carries the worker's chunk now. In turns it carries that of whoever
  // has the turn. First come first served it carries one: the one that came first, the lowest
  // worker's where several did. Whatever comes later has come later, so it goes on to its end.
  bool IsServed(size_t w, const std::pair<Resource, int>& which, const Chunk& chunk) {
    const LinkSharing& sharing = scenario_.servers().link_sharing;
    if (std::holds_alternative<EqualShares>(sharing)) return true;
    if (std::holds_alternative<Turns>(sharing)) return lines_.at(which).serving == w;
    for (size_t other = 0; other < workers_.size(); ++other) {
      const auto lane = workers_[other].lanes.find(which);
      if (other == w || lane == workers_[other].lanes.end() || !lane->second.running.has_value())
        continue;
      const Exact& arrival = lane->second.running->start_ns;
      if (arrival > chunk.start_ns || (arrival == chunk.start_ns && other > w)) continue;
      events_.waits_for_links += 1;
      events_.arrivals_together += arrival == chunk.start_ns ? 1 : 0;
      return false;
    }
    return true;
  }

  // All that happens at this instant, round by round.
  void Settle() {
    events_.instants += 1;
    CountTies();
    for (bool again = true; again;) {
      again = false;
      std::vector<Round> rounds;
      for (Worker& worker : workers_) {
        rounds.push_back(CompleteChunks(worker));
        if (worker.begun > worker.ends.size() && worker.unfinished.empty()) EndStep(worker);
      }
      for (size_t w = 0; w < workers_.size(); ++w) {
        BringSums(workers_[w], rounds[w].ready);
        if (MayBegin(workers_[w])) BeginStep(w, rounds[w].ready);
      }
      for (size_t w = 0; w < workers_.size(); ++w) {
        Enqueue(workers_[w], rounds[w].ready);
        for (const auto& [lane, stream] : rounds[w].rejoining) {
          events_.rejoined_behind += lane->queue.empty() ? 0 : 1;
          lane->queue.push_back(stream);
        }
      }
      for (Worker& worker : workers_) again = Choose(worker) || again;
    }
  }

  // Of what waits for sums: whatever waits for nothing else than those that are there now.
  void BringSums(Worker& worker, std::set<size_t>& ready) {
    std::erase_if(worker.awaits_sum, [&](size_t operation) {
      if (!IsSummed(graph_[operation], worker.begun - 1)) return false;
      if (worker.waiting.at(operation).empty()) ready.insert(operation);
      events_.sums_awaited += worker.waiting.at(operation).empty() ? 1 : 0;
      return true;
    });
  }

  // In a worker's step, from 0.
  bool IsSummed(const NaiveOperation& download, size_t step) const {
    if (download.sum_of_last_step && step == 0) return true;
    const size_t of_step = download.sum_of_last_step ? step - 1 : step;
    return std::all_of(workers_.begin(), workers_.end(), [&](const Worker& worker) {
      return std::all_of(download.sum_of.begin(), download.sum_of.end(), [&](size_t before) {
        return worker.ended.contains({of_step, before});
      });
    });
  }

  void CountTies() {
    int all = 0;
    bool same_worker = false;
    for (const Worker& worker : workers_) {
      int own = 0;
      for (const auto& [which, lane] : worker.lanes)
        own += lane.running.has_value() && lane.running->left == 0 ? 1 : 0;
      all += own;
      same_worker = same_worker || own > 1;
    }
    events_.ties += all > 1 ? 1 : 0;
    events_.ties_of_one_worker += same_worker ? 1 : 0;
  }

  Round CompleteChunks(Worker& worker) {
    Round round;
    std::map<Lane*, std::set<size_t>> released_by;  // who made ready what goes there
    for (auto& [which, lane] : worker.lanes) {
      const std::optional<Chunk> ended = TakeEnded(which, lane, round.rejoining);
      if (!ended.has_value()) continue;
      const Chunk& chunk = *ended;
      chunks_.push_back({.worker = static_cast<size_t>(&worker - workers_.data()),
                         .step = worker.ends.size(),
                         .operation = chunk.stream.operation,
                         .service = chunk.service,
                         .start_ns = chunk.start_ns,
                         .end_ns = now_});
      if (!chunk.ends_operation) continue;
      worker.unfinished.erase(chunk.stream.operation);
      worker.ended.insert({worker.ends.size(), chunk.stream.operation});
      for (auto& [operation, others] : worker.waiting) {
        if (others.erase(chunk.stream.operation) == 0 || !others.empty()) continue;
        if (worker.awaits_sum.contains(operation)) continue;
        round.ready.insert(operation);
        released_by[LaneOf(worker, operation)].insert(chunk.stream.operation);
      }
    }
    for (const auto& [lane, operations] : released_by)
      events_.released_together += operations.size() > 1 ? 1 : 0;
    for (const auto& [lane, stream] : round.rejoining) {
      events_.stopped_streams += 1;
      events_.stopped_at_arrival += released_by.contains(lane) ? 1 : 0;
    }
    return round;
  }

  // The lane's chunk that ends now, if any. A stream that is not done rejoins when the lane is
  // free.
  std::optional<Chunk> TakeEnded(const std::pair<Resource, int>& which, Lane& lane,
                                 std::vector<std::pair<Lane*, Stream>>& rejoining) {
    std::optional<Chunk> ended;
    if (lane.running.has_value() && lane.running->left == 0) {
      std::swap(ended, lane.running);
      if (!ended->ends_operation) rejoining.emplace_back(&lane, ended->stream);
    }
    if (forwarding_.empty() || !IsTransfer(which.first)) return ended;
    if (ended.has_value()) lane.on_its_way.push_back(*ended);
    if (lane.arrived == 0) return std::nullopt;
    lane.arrived -= 1;
    Chunk arrived = lane.on_its_way.front();
    lane.on_its_way.pop_front();
    arrived.start_ns = std::max(arrived.start_ns, lane.last_arrival_ns);
    lane.last_arrival_ns = now_;
    return arrived;
  }

  Lane* LaneOf(Worker& worker, size_t operation) const {
    return &worker.lanes[{graph_[operation].resource, graph_[operation].server}];
  }

  void Enqueue(Worker& worker, const std::set<size_t>& ready) {
    std::map<Lane*, int> arrivals;
    for (const size_t operation : ready) {
      worker.waiting.erase(operation);
      Lane* lane = LaneOf(worker, operation);
      lane->queue.push_back({.operation = operation, .bytes = graph_[operation].bytes});
      if (++arrivals[lane] == 2) events_.ready_together += 1;
    }
  }

  void EndStep(Worker& worker) {
    if (worker.ends.size() >= static_cast<size_t>(options_.steps_per_worker))
      events_.beyond_required += 1;
    worker.ends.push_back(now_);
  }

  bool MayBegin(const Worker& worker) const {
    if (worker.begun == 0) return worker.offset_ns <= now_;
    if (worker.begun > worker.ends.size()) return false;
    if (scenario_.servers().synchronization != Synchronization::kSynchronous) return true;
    // Whoever has begun another step already has seen all the others end this one.
    return std::all_of(workers_.begin(), workers_.end(), [&worker](const Worker& other) {
      return other.ends.size() >= worker.begun;
    });
  }

  void BeginStep(size_t w, std::set<size_t>& ready) {
    Worker& worker = workers_[w];
    worker.recorded = options_.sample(w, worker.begun);
    worker.ranks = RanksOf(w, worker.begun);
    worker.begun += 1;
    for (size_t operation = 0; operation < graph_.size(); ++operation) {
      worker.unfinished.insert(operation);
      worker.waiting[operation] = graph_[operation].waiting_for;
      if (!graph_[operation].sum_of.empty() && !IsSummed(graph_[operation], worker.begun - 1))
        worker.awaits_sum.insert(operation);
      else if (graph_[operation].waiting_for.empty())
        ready.insert(operation);
    }
  }

  std::map<size_t, int64_t> RanksOf(size_t w, size_t n) const {
    const TransferOrder order = scenario_.servers().transfer_order;
    if (order == TransferOrder::kRandom || order == TransferOrder::kTic ||
        order == TransferOrder::kTac)
      return options_.ranks(w, n);
    std::map<size_t, int64_t> ranks;
    for (size_t operation = 0; operation < graph_.size(); ++operation) {
      if (!IsTransfer(graph_[operation].resource)) continue;
      if (order == TransferOrder::kReverse) ranks[operation] = -static_cast<int64_t>(operation);
      if (order == TransferOrder::kRecorded)
        ranks[operation] = graph_[operation].recorded_end_ns[workers_[w].recorded];
      const auto named = scenario_.servers().transfer_priorities.find(graph_[operation].name);
      if (order == TransferOrder::kExplicit &&
          named != scenario_.servers().transfer_priorities.end())
        ranks[operation] = named->second;
    }
    return ranks;
  }

  // Lets the worker's idle resources take up work; whether any of it is over at once.
  bool Choose(Worker& worker) {
    bool over_at_once = false;
    for (auto& [which, lane] : worker.lanes) {
      if (lane.running.has_value() || lane.queue.empty()) continue;
      const auto next = Next(worker, lane);
      events_.overtakings += next == lane.queue.begin() ? 0 : 1;
      Stream stream = *next;
      lane.queue.erase(next);
      lane.running = IsTransfer(which.first) ? NextChunk(stream) : Computation(worker, stream);
      lane.running->start_ns = now_;
      if (options_.disturbance_ns && lane.running->left > 0)
        Disturb(*lane.running, IsTransfer(which.first));
      if (IsTransfer(which.first) && !forwarding_.empty()) {
        forwarding_.at(which.first)
            .Start({static_cast<size_t>(&worker - workers_.data()), which.second},
                   lane.running->left);
      }
      over_at_once = over_at_once || lane.running->left == 0;
      if (which.first == Resource::kUplink) CountEarlyUpload(worker);
    }
    return over_at_once;
  }

  // Streams that have a rank and were not served yet go first; all others in order of arrival.
  static std::list<Stream>::iterator Next(const Worker& worker, Lane& lane) {
    auto best = lane.queue.end();
    for (auto it = lane.queue.begin(); it != lane.queue.end(); ++it) {
      if (it->services > 0 || !worker.ranks.contains(it->operation)) continue;
      if (best == lane.queue.end() ||
          worker.ranks.at(it->operation) < worker.ranks.at(best->operation))
        best = it;
    }
    return best == lane.queue.end() ? lane.queue.begin() : best;
  }

  // The bytes that may go in one service: first the window, then the quantum, where there is one.
  Chunk NextChunk(const Stream& stream) const {
    int64_t most = stream.bytes;
    const Multiplexing& multiplexing = scenario_.servers().multiplexing;
    if (const auto* window = std::get_if<Window>(&multiplexing)) {
      if (stream.services == 0) most = window->bytes;
      if (stream.services > 0 && window->quantum_bytes > 0) most = window->quantum_bytes;
    } else if (const auto* robin = std::get_if<RoundRobin>(&multiplexing)) {
      most = stream.services == 0 ? robin->window_bytes : robin->quantum_bytes;
    }
    const int64_t sent = std::min(stream.bytes, most);
    return {.stream = {.operation = stream.operation,
                       .bytes = stream.bytes - sent,
                       .services = stream.services + 1},
            .left = sent,
            .ends_operation = sent == stream.bytes,
            .service = stream.services};
  }

  Chunk Computation(const Worker& worker, const Stream& stream) {
    const Exact& duration = graph_[stream.operation].durations_ns[worker.recorded];
    events_.zero_length += duration == 0 ? 1 : 0;
    return {.stream = stream, .left = duration};
  }

  void Disturb(Chunk& chunk, bool is_transfer) const {
    const Exact bytes_per_ns = Exact(scenario_.bandwidth_bytes_per_second) / kNanosecondsPerSecond;
    const Exact changed =
        chunk.left + options_.disturbance_ns() * (is_transfer ? bytes_per_ns : Exact(1));
    if (changed > 0) chunk.left = changed;
  }

  void CountEarlyUpload(const Worker& worker) {
    const bool downloading = std::any_of(
        worker.unfinished.begin(), worker.unfinished.end(),
        [this](size_t operation) { return graph_[operation].resource == Resource::kDownlink; });
    events_.uploads_while_downloading += downloading ? 1 : 0;
  }

  NaiveResult Conclude() const {
    NaiveResult result{.chunks = chunks_, .events = events_};
    for (const auto& [direction, links] : forwarding_) {
      result.events.turns_ended += links.turns_ended();
      result.events.newcomers_first += links.newcomers_first();
      result.events.waits_at_second += links.waits_at_second();
    }
    std::vector<std::vector<Exact>> completions;
    for (const Worker& worker : workers_) {
      result.step_ends_ns.push_back(worker.ends);
      completions.push_back(worker.ends);
      completions.back().insert(completions.back().begin(), worker.offset_ns);
    }
    const std::optional<Exact> rate =
        NaiveStepsPerNanosecond(completions, static_cast<size_t>(options_.warmup_steps),
                                static_cast<size_t>(options_.steps_per_worker));
    if (rate.has_value()) result.steps_per_second = *rate * kNanosecondsPerSecond;
    return result;
  }

  const std::vector<NaiveOperation> graph_;
  const Scenario& scenario_;
  const NaiveOptions& options_;
  std::vector<Worker> workers_;
  std::map<std::pair<Resource, int>, TurnLine> lines_;
  std::map<Resource, NaiveTurns> forwarding_;  // by direction; empty: links hold back the sender
  Exact now_ = 0;
  std::vector<NaiveChunk> chunks_;
  NaiveEvents events_;
};

}  // namespace

std::optional<Exact> NaiveStepsPerNanosecond(const std::vector<std::vector<Exact>>& completions,
                                             size_t warmup, size_t required) {
  Exact from = completions.front()[warmup];
  Exact to = completions.front()[required];
  for (const std::vector<Exact>& own : completions) {
    from = std::max(from, own[warmup]);
    to = std::max(to, own[required]);
  }
  Exact sum = 0;
  for (const std::vector<Exact>& own : completions) {
    std::vector<Exact> inside;
    for (size_t n = warmup == 0 ? 0 : 1; n < own.size(); ++n) {
      if (from <= own[n] && own[n] <= to) inside.push_back(own[n]);
    }
    if (inside.size() < 2) return std::nullopt;
    sum += Exact(inside.size() - 1) / (inside.back() - inside.front());
  }
  return sum;
}

NaiveResult SimulateNaively(const Profile& profile, const Scenario& scenario,
                            const NaiveOptions& options) {
  return NaiveSimulation(profile, scenario, options).Run();
}

}  // namespace stepcast::testing
