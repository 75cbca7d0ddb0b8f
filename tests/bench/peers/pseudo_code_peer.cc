#include "tests/bench/peers/pseudo_code_peer.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>

#include "core/communication/parameter_servers.h"
#include "tests/bench/cpu_clock.h"
#include "tests/bench/peers/sampled_steps.h"

namespace stepcast::bench {

namespace {

enum Sharing : int32_t { kAlone, kDownlink, kUplink };

constexpr int32_t kStart = -1;  // in place of an operation: the worker begins its first step

struct Chunk {
  double remaining = 0;  // seconds, of the whole resource
  Sharing sharing = kAlone;
  int32_t worker = 0;
  int32_t op = 0;
};

// One worker's queue for one resource.
struct Scheduler {
  std::vector<int32_t> queue;  // of a step; taken from the front
  size_t next = 0;
  bool busy = false;
};

struct Worker {
  std::vector<Scheduler> schedulers;
  std::vector<int32_t> waiting;  // by operation: for how many others
  const double* seconds = nullptr;
  size_t operations_left = 0;
  int32_t completed_steps = 0;
};

class TraceGeneration {
 public:
  TraceGeneration(const FlatGraph& graph, const std::vector<double>& seconds,
                  const RunOptions& options)
      : graph_(graph),
        seconds_(seconds),
        options_(options),
        samples_(graph.steps, options),
        workers_(options.start_offsets.size()) {
    result_.step_ends.resize(workers_.size());
    const ServerLanes lanes;
    sharing_.assign(static_cast<size_t>(graph.lanes), kAlone);
    sharing_[static_cast<size_t>(lanes.Downlink(0))] = kDownlink;
    sharing_[static_cast<size_t>(lanes.Uplink(0))] = kUplink;
    for (Worker& worker : workers_) worker.schedulers.resize(static_cast<size_t>(graph.lanes));
  }

  PeerResult Run() {
    for (size_t w = 0; w < workers_.size(); ++w) {
      queue_.push_back({.remaining = ToSeconds(options_.start_offsets[w]),
                        .worker = static_cast<int32_t>(w),
                        .op = kStart});
    }
    while (workers_done_ < workers_.size()) {
      const Chunk chunk = RemoveEarliest();
      if (chunk.op == kStart) {
        StartRandomStep(chunk.worker);
      } else {
        Complete(chunk);
      }
    }
    return std::move(result_);
  }

 private:
  // Lines 10 to 17.
  Chunk RemoveEarliest() {
    const std::array<double, 3> stretch = {1.0, static_cast<double>(active_[kDownlink]),
                                           static_cast<double>(active_[kUplink])};
    // Latest first, so that the earliest leaves from the back.
    const auto left = [&](const Chunk& chunk) { return chunk.remaining * stretch[chunk.sharing]; };
    std::sort(queue_.begin(), queue_.end(),
              [&](const Chunk& a, const Chunk& b) { return left(a) > left(b); });
    const Chunk chunk = queue_.back();
    queue_.pop_back();
    const double duration = left(chunk);
    std::array<double, 3> done{};
    for (size_t kind = 0; kind < done.size(); ++kind) done[kind] = duration / stretch[kind];
    for (Chunk& other : queue_) other.remaining -= done[other.sharing];
    now_ += duration;
    return chunk;
  }

  // Lines 18 to 38.
  void Complete(const Chunk& chunk) {
    Worker& worker = workers_[static_cast<size_t>(chunk.worker)];
    ++result_.cost.operations;
    const auto op = static_cast<size_t>(chunk.op);
    const int32_t lane = graph_.lane[op];
    for (int32_t i = graph_.first_dependent[op]; i < graph_.first_dependent[op + 1]; ++i) {
      const int32_t dependent = graph_.dependents[static_cast<size_t>(i)];
      if (--worker.waiting[static_cast<size_t>(dependent)] == 0) Add(chunk.worker, dependent);
    }
    Scheduler& scheduler = worker.schedulers[static_cast<size_t>(lane)];
    if (scheduler.next < scheduler.queue.size()) {
      RunNext(chunk.worker, lane);
    } else {
      scheduler.busy = false;
      --active_[chunk.sharing];
    }
    if (--worker.operations_left == 0) EndStep(chunk.worker);
  }

  void EndStep(int32_t w) {
    Worker& worker = workers_[static_cast<size_t>(w)];
    result_.step_ends[static_cast<size_t>(w)].push_back(now_);
    if (++worker.completed_steps == options_.steps_per_worker) ++workers_done_;
    StartRandomStep(w);
  }

  void StartRandomStep(int32_t w) {
    Worker& worker = workers_[static_cast<size_t>(w)];
    worker.seconds = &seconds_[static_cast<size_t>(samples_.Next(w)) * graph_.size()];
    worker.waiting = graph_.dependency_count;
    worker.operations_left = graph_.size();
    for (Scheduler& scheduler : worker.schedulers) {
      scheduler.queue.clear();
      scheduler.next = 0;
    }
    for (const int32_t root : graph_.roots) Add(w, root);
  }

  void Add(int32_t w, int32_t op) {
    const int32_t lane = graph_.lane[static_cast<size_t>(op)];
    Scheduler& scheduler = workers_[static_cast<size_t>(w)].schedulers[static_cast<size_t>(lane)];
    scheduler.queue.push_back(op);
    if (scheduler.busy) return;
    scheduler.busy = true;
    ++active_[sharing_[static_cast<size_t>(lane)]];
    RunNext(w, lane);
  }

  void RunNext(int32_t w, int32_t lane) {
    Worker& worker = workers_[static_cast<size_t>(w)];
    Scheduler& scheduler = worker.schedulers[static_cast<size_t>(lane)];
    const int32_t op = scheduler.queue[scheduler.next++];
    queue_.push_back({.remaining = worker.seconds[op],
                      .sharing = sharing_[static_cast<size_t>(lane)],
                      .worker = w,
                      .op = op});
  }

  const FlatGraph& graph_;
  const std::vector<double>& seconds_;
  const RunOptions& options_;
  SampledSteps samples_;
  std::vector<Worker> workers_;
  std::vector<Sharing> sharing_;        // by lane
  std::vector<Chunk> queue_;            // running
  std::array<int64_t, 3> active_ = {};  // workers on a link, by Sharing
  double now_ = 0;
  size_t workers_done_ = 0;
  PeerResult result_;
};

}  // namespace

PseudoCodePeer::PseudoCodePeer(const Program& graph) : graph_(graph) {
  seconds_.reserve(graph_.alone.size());
  for (const Span alone : graph_.alone) seconds_.push_back(ToSeconds(alone));
}

PeerResult PseudoCodePeer::Run(const RunOptions& options) const {
  const double begin = ThreadCpuNs();
  PeerResult result = TraceGeneration(graph_, seconds_, options).Run();
  result.cost.cpu_ns = ThreadCpuNs() - begin;
  return result;
}

}  // namespace stepcast::bench
