#include "tests/bench/peers/simgrid_peer.h"

#include <functional>
#include <iterator>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "core/communication/parameter_servers.h"
#include "simgrid/s4u.hpp"
#include "tests/bench/child_process.h"
#include "tests/bench/cpu_clock.h"
#include "tests/bench/peers/result_bytes.h"
#include "tests/bench/peers/sampled_steps.h"

namespace stepcast::bench {

namespace {

namespace s4u = simgrid::s4u;

// A host does so many operations a second: amounts of computation are in nanoseconds.
constexpr double kHostSpeed = 1e9;
// See README.md for what was tried. The first is the program's name.
constexpr const char* kConfiguration[] = {"bench",
                                          "--cfg=network/model:CM02",
                                          "--cfg=network/optim:Lazy",
                                          "--cfg=network/crosstraffic:0",
                                          "--cfg=network/TCP-gamma:0",
                                          "--cfg=network/weight-S:0",
                                          "--cfg=network/bandwidth-factor:1",
                                          "--cfg=network/latency-factor:1",
                                          "--cfg=cpu/optim:TI",
                                          "--cfg=surf/precision:1e-12",
                                          "--cfg=maxmin/precision:1e-9",
                                          "--log=root.thres:error"};
constexpr int32_t kStart = -1;  // in place of an operation: the worker waits for its first step

struct Lane {
  int32_t worker = 0;
  int32_t lane = 0;
  s4u::Host* from = nullptr;
  s4u::Host* to = nullptr;     // of a connection
  std::vector<int32_t> queue;  // of a step; taken from the front
  size_t next = 0;
  int32_t running = kStart;
  s4u::ActivityPtr activity;  // null: idle
};

struct Worker {
  std::vector<int32_t> waiting;  // by operation: for how many others
  const Span* alone = nullptr;   // of the recorded step at hand
  size_t operations_left = 0;
  int32_t completed_steps = 0;
};

// SimGrid's whole life in a process: its platform is built, begun with, and what goes on from there
// is done as activities complete. The processor's time of the last two, in nanoseconds.
double RunSimGrid(const std::function<void()>& build,
                  const std::function<void(const s4u::Activity&)>& on_completion,
                  const std::function<void()>& begin) {
  std::vector<std::string> arguments(std::begin(kConfiguration), std::end(kConfiguration));
  std::vector<char*> pointers;
  pointers.reserve(arguments.size() + 1);
  for (std::string& argument : arguments) pointers.push_back(argument.data());
  int count = static_cast<int>(pointers.size());
  pointers.push_back(nullptr);
  const s4u::Engine engine(&count, pointers.data());
  build();
  engine.seal_platform();
  s4u::Activity::on_completion_cb(on_completion);
  const double began = ThreadCpuNs();
  begin();
  engine.run();
  return ThreadCpuNs() - began;
}

class Simulation {
 public:
  Simulation(const FlatGraph& graph, const std::vector<int64_t>& bytes, int32_t servers,
             double bytes_per_second, const RunOptions& options)
      : graph_(graph),
        bytes_(bytes),
        map_{.servers = servers},
        bytes_per_second_(bytes_per_second),
        options_(options),
        samples_(graph.steps, options),
        workers_(options.start_offsets.size()),
        lanes_(workers_.size() * static_cast<size_t>(graph.lanes)) {
    result_.step_ends.resize(workers_.size());
  }

  PeerResult Run() {
    result_.cost.cpu_ns = RunSimGrid(
        [this] { BuildPlatform(); },
        [this](const s4u::Activity& activity) { OnCompletion(*activity.get_data<Lane>()); },
        [this] {
          for (size_t w = 0; w < workers_.size(); ++w) WaitForStart(static_cast<int32_t>(w));
        });
    return std::move(result_);
  }

 private:
  Lane& LaneOf(int32_t worker, int32_t lane) {
    return lanes_[static_cast<size_t>(worker) * static_cast<size_t>(graph_.lanes) +
                  static_cast<size_t>(lane)];
  }

  s4u::Link* AddLink(s4u::NetZone* zone, const std::string& name) const {
    s4u::Link* link = zone->create_link(name, bytes_per_second_);
    link->set_latency(0);
    return link;
  }

  void BuildPlatform() {
    s4u::NetZone* zone = s4u::create_full_zone("cluster");
    std::vector<s4u::Host*> servers;
    std::vector<s4u::Link*> down;
    std::vector<s4u::Link*> up;
    for (int32_t server = 0; server < map_.servers; ++server) {
      const std::string name = "server" + std::to_string(server);
      servers.push_back(zone->create_host(name, kHostSpeed));
      down.push_back(AddLink(zone, name + ".down"));
      up.push_back(AddLink(zone, name + ".up"));
    }
    for (size_t w = 0; w < workers_.size(); ++w) {
      const std::string name = "worker" + std::to_string(w);
      s4u::Host* host = zone->create_host(name, kHostSpeed);
      s4u::Link* own_down = map_.servers > 1 ? AddLink(zone, name + ".down") : nullptr;
      s4u::Link* own_up = map_.servers > 1 ? AddLink(zone, name + ".up") : nullptr;
      for (int32_t lane = 0; lane < graph_.lanes; ++lane)
        LaneOf(static_cast<int32_t>(w), lane) = {.worker = static_cast<int32_t>(w), .lane = lane};
      LaneOf(static_cast<int32_t>(w), ServerLanes::kWorker).from = host;
      for (int32_t server = 0; server < map_.servers; ++server) {
        const auto index = static_cast<size_t>(server);
        Connect(zone, servers[index], host, {down[index], own_down},
                LaneOf(static_cast<int32_t>(w), map_.Downlink(server)));
        Connect(zone, host, servers[index], {up[index], own_up},
                LaneOf(static_cast<int32_t>(w), map_.Uplink(server)));
        LaneOf(static_cast<int32_t>(w), map_.Server(server)).from =
            zone->create_host(name + "@" + std::to_string(server), kHostSpeed);
      }
    }
    zone->seal();
  }

  // Through those of the links that there are.
  static void Connect(s4u::NetZone* zone, s4u::Host* from, s4u::Host* to,
                      const std::vector<s4u::Link*>& links, Lane& lane) {
    std::vector<s4u::LinkInRoute> route;
    for (s4u::Link* link : links) {
      if (link != nullptr) route.emplace_back(link);
    }
    zone->add_route(from->get_netpoint(), to->get_netpoint(), nullptr, nullptr, route, false);
    lane.from = from;
    lane.to = to;
  }

  void WaitForStart(int32_t worker) {
    Compute(LaneOf(worker, ServerLanes::kWorker),
            static_cast<double>(options_.start_offsets[static_cast<size_t>(worker)].ticks) /
                kTicksPerNanosecond);
  }

  void Compute(Lane& lane, double ns) {
    const s4u::ExecPtr exec = s4u::Exec::init();
    exec->set_host(lane.from);
    exec->set_flops_amount(ns);
    exec->set_data(&lane);
    lane.activity = exec;
    exec->start();
  }

  void Transfer(Lane& lane, int64_t bytes) {
    const s4u::CommPtr comm = s4u::Comm::sendto_init(lane.from, lane.to);
    comm->set_payload_size(static_cast<uint64_t>(bytes));
    comm->set_data(&lane);
    lane.activity = comm;
    comm->start();
  }

  void OnCompletion(Lane& lane) {
    if (workers_done_ == workers_.size()) return;
    const int32_t op = std::exchange(lane.running, kStart);
    if (op == kStart) {
      lane.activity = nullptr;
      StartStep(lane.worker);
      return;
    }
    Worker& worker = workers_[static_cast<size_t>(lane.worker)];
    ++result_.cost.operations;
    for (int32_t i = graph_.first_dependent[static_cast<size_t>(op)];
         i < graph_.first_dependent[static_cast<size_t>(op) + 1]; ++i) {
      const int32_t dependent = graph_.dependents[static_cast<size_t>(i)];
      if (--worker.waiting[static_cast<size_t>(dependent)] == 0) Add(lane.worker, dependent);
    }
    lane.activity = nullptr;
    if (lane.next < lane.queue.size()) RunNext(lane);
    if (--worker.operations_left == 0) EndStep(lane.worker);
  }

  void EndStep(int32_t w) {
    Worker& worker = workers_[static_cast<size_t>(w)];
    result_.step_ends[static_cast<size_t>(w)].push_back(s4u::Engine::get_clock());
    if (++worker.completed_steps == options_.steps_per_worker) ++workers_done_;
    if (workers_done_ < workers_.size()) StartStep(w);
  }

  void StartStep(int32_t w) {
    Worker& worker = workers_[static_cast<size_t>(w)];
    worker.alone = &graph_.alone[static_cast<size_t>(samples_.Next(w)) * graph_.size()];
    worker.waiting = graph_.dependency_count;
    worker.operations_left = graph_.size();
    for (int32_t lane = 0; lane < graph_.lanes; ++lane) {
      LaneOf(w, lane).queue.clear();
      LaneOf(w, lane).next = 0;
    }
    for (const int32_t root : graph_.roots) Add(w, root);
  }

  void Add(int32_t w, int32_t op) {
    Lane& lane = LaneOf(w, graph_.lane[static_cast<size_t>(op)]);
    lane.queue.push_back(op);
    if (lane.activity == nullptr) RunNext(lane);
  }

  void RunNext(Lane& lane) {
    lane.running = lane.queue[lane.next++];
    const auto op = static_cast<size_t>(lane.running);
    if (lane.lane >= map_.Downlink(0)) {
      Transfer(lane, bytes_[op]);
    } else {
      Compute(lane,
              static_cast<double>(workers_[static_cast<size_t>(lane.worker)].alone[op].ticks) /
                  kTicksPerNanosecond);
    }
  }

  const FlatGraph& graph_;
  const std::vector<int64_t>& bytes_;
  const ServerLanes map_;
  const double bytes_per_second_;
  const RunOptions& options_;
  SampledSteps samples_;
  std::vector<Worker> workers_;
  std::vector<Lane> lanes_;  // by worker
  size_t workers_done_ = 0;
  PeerResult result_;
};

// A job whose workers meet in collectives: a host a worker, and one whose work is the collective
// under way, one at a time.
class CollectiveSimulation {
 public:
  CollectiveSimulation(const FlatGraph& graph, const JointWork& joint, const RunOptions& options)
      : graph_(graph),
        joint_(joint),
        options_(options),
        samples_(graph.steps, options),
        workers_(options.start_offsets.size()),
        position_(graph.size(), kComputation),
        arrived_(joint.ops.size(), 0) {
    result_.step_ends.resize(workers_.size());
    for (size_t i = 0; i < joint.ops.size(); ++i)
      position_[static_cast<size_t>(joint.ops[i])] = static_cast<int32_t>(i);
  }

  PeerResult Run() {
    result_.cost.cpu_ns = RunSimGrid(
        [this] { BuildPlatform(); },
        [this](const s4u::Activity& activity) { OnCompletion(activity.get_data<Worker>()); },
        [this] {
          for (size_t w = 0; w < workers_.size(); ++w)
            Compute(workers_[w].host, &workers_[w], options_.start_offsets[w]);
        });
    return std::move(result_);
  }

 private:
  static constexpr int32_t kComputation = -1;

  struct Worker {
    s4u::Host* host = nullptr;
    int32_t index = 0;
    std::vector<int32_t> waiting;  // by operation: for how many others
    std::vector<int32_t> queue;    // of a step; taken from the front
    size_t next = 0;
    int32_t running = kStart;
    bool idle = false;
    const Span* alone = nullptr;
    size_t operations_left = 0;
    int32_t completed_steps = 0;
  };

  void BuildPlatform() {
    s4u::NetZone* zone = s4u::create_full_zone("cluster");
    for (size_t w = 0; w < workers_.size(); ++w) {
      workers_[w].index = static_cast<int32_t>(w);
      workers_[w].host = zone->create_host("worker" + std::to_string(w), kHostSpeed);
    }
    network_ = zone->create_host("network", kHostSpeed);
    zone->seal();
  }

  void Compute(s4u::Host* host, Worker* worker, Span length) {
    const s4u::ExecPtr exec = s4u::Exec::init();
    exec->set_host(host);
    exec->set_flops_amount(static_cast<double>(length.ticks) / kTicksPerNanosecond);
    exec->set_data(worker);
    exec->start();
    under_way_.insert_or_assign(worker, exec);
  }

  // Of a worker, or, null, of the collective.
  void OnCompletion(Worker* worker) {
    if (workers_done_ == workers_.size()) return;
    if (worker == nullptr) {
      const int32_t op = joint_.ops[std::exchange(at_, at_ + 1 == arrived_.size() ? 0 : at_ + 1)];
      is_meeting_ = false;
      for (Worker& each : workers_) {
        Release(each, op);
        if (--each.operations_left == 0) EndStep(each);
      }
      Meet();
      return;
    }
    const int32_t op = std::exchange(worker->running, kStart);
    worker->idle = true;
    if (op == kStart) {
      StartStep(*worker);
      return;
    }
    Release(*worker, op);
    if (worker->idle) RunNext(*worker);
    if (--worker->operations_left == 0) EndStep(*worker);
  }

  void Release(Worker& worker, int32_t op) {
    ++result_.cost.operations;
    for (int32_t i = graph_.first_dependent[static_cast<size_t>(op)];
         i < graph_.first_dependent[static_cast<size_t>(op) + 1]; ++i) {
      const int32_t dependent = graph_.dependents[static_cast<size_t>(i)];
      if (--worker.waiting[static_cast<size_t>(dependent)] == 0) Add(worker, dependent);
    }
  }

  void EndStep(Worker& worker) {
    result_.step_ends[static_cast<size_t>(worker.index)].push_back(s4u::Engine::get_clock());
    if (++worker.completed_steps == options_.steps_per_worker) ++workers_done_;
    if (workers_done_ < workers_.size()) StartStep(worker);
  }

  void StartStep(Worker& worker) {
    worker.alone = &graph_.alone[static_cast<size_t>(samples_.Next(worker.index)) * graph_.size()];
    worker.waiting = graph_.dependency_count;
    worker.operations_left = graph_.size();
    worker.queue.clear();
    worker.next = 0;
    for (const int32_t root : graph_.roots) Add(worker, root);
  }

  void Add(Worker& worker, int32_t op) {
    const int32_t position = position_[static_cast<size_t>(op)];
    if (position == kComputation) {
      worker.queue.push_back(op);
      if (worker.idle) RunNext(worker);
      return;
    }
    ++arrived_[static_cast<size_t>(position)];
    Meet();
  }

  void Meet() {
    if (is_meeting_ || arrived_[at_] < workers_.size()) return;
    is_meeting_ = true;
    arrived_[at_] = 0;
    Compute(network_, nullptr, joint_.lengths[at_]);
  }

  void RunNext(Worker& worker) {
    if (worker.next == worker.queue.size()) return;
    worker.idle = false;
    worker.running = worker.queue[worker.next++];
    Compute(worker.host, &worker, worker.alone[static_cast<size_t>(worker.running)]);
  }

  const FlatGraph& graph_;
  const JointWork& joint_;
  const RunOptions& options_;
  SampledSteps samples_;
  std::vector<Worker> workers_;
  s4u::Host* network_ = nullptr;
  std::vector<int32_t> position_;  // by operation: in joint_, or kComputation
  std::vector<size_t> arrived_;    // workers, by position
  size_t at_ = 0;                  // the next collective, or the one under way
  bool is_meeting_ = false;
  size_t workers_done_ = 0;
  std::unordered_map<Worker*, s4u::ActivityPtr> under_way_;
  PeerResult result_;
};

}  // namespace

PeerResult RunSimGridCollectives(const JobGraph& job, const RunOptions& options) {
  return FromBytes(InChildProcess([&] {
    const FlatGraph graph(job.program(0));
    return ToBytes(CollectiveSimulation(graph, job.joint, options).Run());
  }));
}

SimGridPeer::SimGridPeer(const Job& job)
    : servers_(ServerLanes::Of(*job.program).servers),
      bytes_per_second_(job.bandwidth_bytes_per_second),
      graph_(*job.program) {
  for (OpIndex op = 0; op < job.program->size(); ++op)
    bytes_.push_back(job.program->size_bytes(op));
}

PeerResult SimGridPeer::Run(const RunOptions& options) const {
  return FromBytes(InChildProcess([&] {
    return ToBytes(Simulation(graph_, bytes_, servers_, bytes_per_second_, options).Run());
  }));
}

}  // namespace stepcast::bench
