#include "core/model/made_steps.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <deque>
#include <queue>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

#include "core/base/bandwidth.h"
#include "core/base/random.h"

namespace stepcast {

namespace {

class Builder {
 public:
  explicit Builder(const std::vector<TrainingLayer>& layers)
      : layers_(layers), fed_(layers.size()), forward_(layers.size()), backward_(layers.size()) {}

  TrainingGraph Build() && {
    for (size_t i = 0; i < layers_.size(); ++i) {
      AddForward(i);
      for (const int32_t input : layers_[i].inputs) fed_[static_cast<size_t>(input)].push_back(i);
    }
    AddLoss();
    for (size_t i = layers_.size(); i > 0; --i) AddBackward(i - 1);
    return std::move(graph_);
  }

 private:
  void AddForward(size_t index) {
    const TrainingLayer& layer = layers_[index];
    std::vector<int32_t> waiting_for;
    for (const ParameterTensor& tensor : layer.parameters) {
      waiting_for.push_back(Add({.name = "recv/" + tensor.name,
                                 .resource = Resource::kDownlink,
                                 .size_bytes = tensor.size_bytes,
                                 .parameter = tensor.name},
                                0));
    }
    for (const int32_t input : layer.inputs)
      waiting_for.push_back(forward_[static_cast<size_t>(input)]);
    forward_[index] = Add({.name = "forward/" + layer.name,
                           .resource = Resource::kWorker,
                           .waiting_for = std::move(waiting_for),
                           .kept_bytes = layer.kept_bytes},
                          layer.forward_ns);
  }

  // Adds the operation that the gradients begin with: the only output's forward operation, or one
  // more that joins them.
  void AddLoss() {
    std::vector<int32_t> outputs;
    for (size_t i = 0; i < layers_.size(); ++i) {
      if (fed_[i].empty()) outputs.push_back(forward_[i]);
    }
    if (outputs.size() == 1) {
      loss_ = outputs.front();
    } else if (!outputs.empty()) {
      loss_ = Add(
          {.name = "loss", .resource = Resource::kWorker, .waiting_for = std::move(outputs)}, 0);
    }
  }

  void AddBackward(size_t index) {
    const TrainingLayer& layer = layers_[index];
    std::vector<int32_t> waiting_for;
    for (const size_t after : fed_[index]) waiting_for.push_back(backward_[after]);
    if (waiting_for.empty()) waiting_for = {loss_};
    const int32_t backward = Add({.name = "backward/" + layer.name,
                                  .resource = Resource::kWorker,
                                  .waiting_for = std::move(waiting_for)},
                                 layer.backward_ns);
    backward_[index] = backward;
    for (const ParameterTensor& tensor : layer.parameters) {
      const int32_t send = Add({.name = "send/" + tensor.name,
                                .resource = Resource::kUplink,
                                .size_bytes = tensor.size_bytes,
                                .waiting_for = {backward},
                                .parameter = tensor.name},
                               0);
      Add({.name = "update/" + tensor.name,
           .resource = Resource::kParameterServer,
           .waiting_for = {send},
           .parameter = tensor.name},
          UpdateNs(tensor.size_bytes));
    }
  }

  int32_t Add(Operation operation, int64_t duration_ns) {
    graph_.operations.push_back(std::move(operation));
    graph_.durations_ns.push_back(duration_ns);
    return static_cast<int32_t>(graph_.operations.size() - 1);
  }

  const std::vector<TrainingLayer>& layers_;
  std::vector<std::vector<size_t>> fed_;  // the layers that a layer feeds
  std::vector<int32_t> forward_;          // operations of the layers
  std::vector<int32_t> backward_;
  int32_t loss_ = 0;
  TrainingGraph graph_;
};

}  // namespace

int64_t UpdateNs(int64_t size_bytes) {
  return std::llround(static_cast<double>(size_bytes) * kUpdateAccessesPerByte /
                      kServerMemoryBytesPerSecond * 1e9);
}

TrainingGraph BuildTrainingGraph(const std::vector<TrainingLayer>& layers) {
  return Builder(layers).Build();
}

TrainingGraph BuildAllReduceGraph(const std::vector<TrainingLayer>& layers, int64_t optimizer_ns) {
  TrainingGraph graph;
  const auto add = [&](Operation operation, int64_t duration_ns) {
    graph.operations.push_back(std::move(operation));
    graph.durations_ns.push_back(duration_ns);
    return static_cast<int32_t>(graph.operations.size() - 1);
  };
  std::vector<int32_t> launched;  // the computation before
  const auto compute = [&](Operation operation, int64_t duration_ns) {
    operation.resource = Resource::kWorker;
    operation.waiting_for = std::move(launched);
    launched = {add(std::move(operation), duration_ns)};
  };
  for (const TrainingLayer& layer : layers) {
    compute({.name = "forward/" + layer.name,
             .kept_bytes = layer.kept_bytes,
             .pass = Pass::kForward,
             .output_bytes = layer.output_bytes},
            layer.forward_ns);
  }
  const bool is_split = std::any_of(layers.begin(), layers.end(), [](const TrainingLayer& layer) {
    return layer.backward_weight_ns.has_value();
  });
  std::vector<int32_t> reduced;
  std::vector<std::vector<int32_t>> needed(layers.size());  // by its layer's update
  for (auto layer = layers.rbegin(); layer != layers.rend(); ++layer) {
    if (is_split) {
      compute({.name = "backward_input/" + layer->name, .pass = Pass::kBackwardInput},
              layer->backward_ns);
      compute({.name = "backward_weight/" + layer->name, .pass = Pass::kBackwardWeight},
              layer->backward_weight_ns.value_or(0));
    } else {
      compute({.name = "backward/" + layer->name, .pass = Pass::kBackward}, layer->backward_ns);
    }
    for (auto tensor = layer->parameters.rbegin(); tensor != layer->parameters.rend(); ++tensor) {
      reduced.push_back(add({.name = "all_reduce/" + tensor->name,
                             .resource = Resource::kCollective,
                             .size_bytes = tensor->size_bytes,
                             .waiting_for = launched,
                             .parameter = tensor->name,
                             .collective = Collective::kAllReduce},
                            0));
    }
    const auto sums = static_cast<std::ptrdiff_t>(layer->parameters.size());
    std::vector<int32_t>& own = needed[static_cast<size_t>(layers.rend() - layer) - 1];
    own = sums > 0 ? std::vector<int32_t>(reduced.end() - sums, reduced.end()) : launched;
  }
  const bool has_own = std::any_of(layers.begin(), layers.end(),
                                   [](const auto& layer) { return layer.optimizer_ns > 0; });
  for (size_t i = 0; has_own && i < layers.size(); ++i) {
    if (launched != needed[i]) launched.insert(launched.end(), needed[i].begin(), needed[i].end());
    compute({.name = "optimizer/" + layers[i].name, .pass = Pass::kOptimizer},
            layers[i].optimizer_ns);
  }
  if (has_own) return graph;
  reduced.push_back(launched.front());
  launched = std::move(reduced);
  compute({.name = "optimizer", .pass = Pass::kOptimizer}, optimizer_ns);
  return graph;
}

namespace {

constexpr double kMinFactor = 0.05;  // no computation becomes shorter than this share of itself
constexpr uint64_t kCommonStream = 1;

int64_t RoundNs(double ns) { return std::llround(std::min(ns, static_cast<double>(kFarNs))); }

// A task of a resource, one at a time: a computation, a service of a stream, or the parsing of a
// received one.
struct Task {
  enum class Kind : uint8_t { kFirst, kRest, kParse };
  size_t operation = 0;
  Kind kind = Kind::kFirst;

  // Graph order; parsing comes directly after its transfer.
  friend bool operator<(const Task& a, const Task& b) {
    return std::pair(a.operation, a.kind) < std::pair(b.operation, b.kind);
  }
};

struct Completion {
  int64_t at_ns = 0;
  Task task;

  friend bool operator>(const Completion& a, const Completion& b) {
    return a.at_ns != b.at_ns ? a.at_ns > b.at_ns : b.task < a.task;
  }
};

class Scheduler {
 public:
  Scheduler(const std::vector<Operation>& operations, const std::vector<int64_t>& durations_ns,
            const Platform& platform)
      : operations_(operations),
        durations_ns_(durations_ns),
        platform_(platform),
        bandwidth_(platform.bandwidth_bytes_per_second),
        unmet_(operations.size()),
        followers_(operations.size()) {
    step_.start_ns.resize(operations.size());
    step_.end_ns.resize(operations.size());
    resources_.resize(kFirstStream);
    for (size_t i = 0; i < operations.size(); ++i) {
      const size_t resource = ResourceIndex(operations[i]);
      if (resource >= resources_.size()) resources_.resize(resource + 1);
      unmet_[i] = operations[i].waiting_for.size();
      for (const int32_t before : operations[i].waiting_for)
        followers_[static_cast<size_t>(before)].push_back(i);
    }
  }

  RecordedStep Run() && {
    std::vector<Task> ready;
    for (size_t i = 0; i < operations_.size(); ++i) {
      if (unmet_[i] == 0) ready.push_back({.operation = i});
    }
    Enqueue(0, ready, {});
    // Each round: all completions of one instant that are under way, then the queues, then the idle
    // resources.
    while (!under_way_.empty()) {
      const int64_t now = under_way_.top().at_ns;
      ready.clear();
      std::vector<Task> rejoining;
      while (!under_way_.empty() && under_way_.top().at_ns == now) {
        const Task done = under_way_.top().task;
        under_way_.pop();
        Complete(now, done, ready, rejoining);
      }
      Enqueue(now, ready, rejoining);
    }
    return std::move(step_);
  }

 private:
  struct Server {
    std::deque<Task> queue;
    bool busy = false;
  };

  // By Resource; from kFirstStream on the worker's further streams.
  static constexpr size_t kFirstStream = static_cast<size_t>(Resource::kCollective) + 1;
  static size_t ResourceIndex(const Operation& operation) {
    if (operation.resource == Resource::kWorker && operation.stream > 0)
      return kFirstStream + static_cast<size_t>(operation.stream) - 1;
    return static_cast<size_t>(operation.resource);
  }

  // Parsing is a computation of the receiver.
  Server& ResourceOf(const Task& task) {
    const Operation& operation = operations_[task.operation];
    if (task.kind != Task::Kind::kParse) return resources_[ResourceIndex(operation)];
    const bool is_workers = operation.resource == Resource::kDownlink;
    return resources_[static_cast<size_t>(is_workers ? Resource::kWorker
                                                     : Resource::kParameterServer)];
  }

  int64_t FirstBytes(const Operation& transfer) const {
    return platform_.window_bytes > 0 ? std::min(platform_.window_bytes, transfer.size_bytes)
                                      : transfer.size_bytes;
  }

  int64_t DurationOf(const Task& task) const {
    const Operation& operation = operations_[task.operation];
    if (task.kind == Task::Kind::kParse) {
      const ParsingOverhead& overhead = platform_.parsing_overhead;
      return RoundNs((overhead.seconds_per_byte * static_cast<double>(operation.size_bytes) +
                      overhead.seconds) *
                     1e9);
    }
    if (operation.resource == Resource::kCollective) return 0;
    if (!IsTransfer(operation.resource)) return std::min(durations_ns_[task.operation], kFarNs);
    const int64_t first_bytes = FirstBytes(operation);
    const Span whole = bandwidth_.TimeFor(operation.size_bytes);
    if (first_bytes == operation.size_bytes) return ToNanoseconds(whole);
    const int64_t first_ns = ToNanoseconds(bandwidth_.TimeFor(first_bytes));
    return task.kind == Task::Kind::kFirst ? first_ns : ToNanoseconds(whole) - first_ns;
  }

  void Complete(int64_t now, const Task& done, std::vector<Task>& ready,
                std::vector<Task>& rejoining) {
    ResourceOf(done).busy = false;
    const Operation& operation = operations_[done.operation];
    if (IsTransfer(operation.resource) && done.kind != Task::Kind::kParse) {
      if (done.kind == Task::Kind::kFirst && FirstBytes(operation) < operation.size_bytes) {
        rejoining.push_back({.operation = done.operation, .kind = Task::Kind::kRest});
        return;
      }
      step_.end_ns[done.operation] = now;
      if (platform_.parsing_overhead != ParsingOverhead{}) {
        ready.push_back({.operation = done.operation, .kind = Task::Kind::kParse});
        return;
      }
    } else if (done.kind == Task::Kind::kFirst) {
      step_.end_ns[done.operation] = now;
    }
    for (const size_t follower : followers_[done.operation]) {
      if (--unmet_[follower] == 0) ready.push_back({.operation = follower});
    }
  }

  void Enqueue(int64_t now, std::vector<Task>& ready, const std::vector<Task>& rejoining) {
    std::sort(ready.begin(), ready.end());
    for (const Task& task : ready) {
      // A transfer's start is when it was requested.
      if (task.kind == Task::Kind::kFirst) step_.start_ns[task.operation] = now;
      ResourceOf(task).queue.push_back(task);
    }
    for (const Task& task : rejoining) ResourceOf(task).queue.push_back(task);
    for (Server& server : resources_) {
      if (server.busy || server.queue.empty()) continue;
      const Task next = server.queue.front();
      server.queue.pop_front();
      server.busy = true;
      if (!IsTransfer(operations_[next.operation].resource)) step_.start_ns[next.operation] = now;
      under_way_.push({.at_ns = std::min(now + DurationOf(next), kFarNs), .task = next});
    }
  }

  const std::vector<Operation>& operations_;
  const std::vector<int64_t>& durations_ns_;
  const Platform& platform_;
  const Bandwidth bandwidth_;
  std::vector<size_t> unmet_;
  std::vector<std::vector<size_t>> followers_;
  std::vector<Server> resources_;  // by ResourceIndex
  std::priority_queue<Completion, std::vector<Completion>, std::greater<>> under_way_;
  RecordedStep step_;
};

}  // namespace

StepVariation ResolveStepVariation(const StepVariationDraft& draft, size_t operations,
                                   const ProfileLimits& limits, FaultList& faults) {
  StepVariation variation{
      .own = draft.own.value_or(0), .common = draft.common.value_or(0), .seed = draft.seed};
  for (const auto& [path, share] : {std::pair("step_time_variation", variation.own),
                                    std::pair("common_time_variation", variation.common)}) {
    if (!(share >= 0 && share <= kMaxVariationShare))
      faults.Add(path, absl::StrCat(share, " is not from 0 to ", kMaxVariationShare));
  }
  const int64_t most = operations == 0
                           ? kMaxMadeSteps
                           : limits.max_recorded_times / static_cast<int64_t>(operations);
  const int64_t allowed = std::min(most, limits.max_steps);
  variation.steps =
      draft.steps.value_or(static_cast<int32_t>(std::clamp<int64_t>(allowed, 1, variation.steps)));
  if (variation.steps < 1 || variation.steps > kMaxMadeSteps) {
    faults.Add("steps", absl::StrCat(variation.steps, " is not from 1 to ", kMaxMadeSteps));
  } else if (variation.varies() && variation.steps > most) {
    faults.Add("steps", absl::StrCat(operations, " operations in ", variation.steps,
                                     " steps are above the limit max_recorded_times = ",
                                     limits.max_recorded_times));
  }
  return variation;
}

std::string NoteOn(const StepVariation& variation) {
  if (!variation.varies())
    return "Made: one step. Nothing shows how steps vary, so predictions let them vary as those of "
           "other jobs do; repeated exactly, workers that start together may stay in lockstep.";
  return absl::StrFormat(
      "Made: %d steps in which the time of each computation varies by %g %% by itself and that of "
      "all of a worker's by %g %% together (standard deviations, as asked for).",
      variation.steps, 100 * variation.own, 100 * variation.common);
}

RecordedStep ScheduleStep(const std::vector<Operation>& operations,
                          const std::vector<int64_t>& durations_ns, const Platform& platform) {
  return Scheduler(operations, durations_ns, platform).Run();
}

std::vector<RecordedStep> MakeSteps(const std::vector<Operation>& operations,
                                    const std::vector<int64_t>& durations_ns,
                                    const Platform& platform, const StepVariation& variation) {
  if (!variation.varies()) return {ScheduleStep(operations, durations_ns, platform)};
  const auto common_factor = [&](int32_t step) {
    if (step % 2 == 0 && step + 1 == variation.steps) return 1.0;
    Random random({variation.seed, static_cast<uint64_t>(step / 2), kCommonStream});
    return std::max(kMinFactor, 1 + (step % 2 == 0 ? 1 : -1) * variation.common * random.Normal());
  };
  std::vector<RecordedStep> steps;
  for (int32_t step = 0; step < variation.steps; ++step) {
    Random random({variation.seed, static_cast<uint64_t>(step)});
    const double common = common_factor(step);
    std::vector<int64_t> varied = durations_ns;
    for (size_t i = 0; i < operations.size(); ++i) {
      if (IsTransfer(operations[i].resource) || operations[i].resource == Resource::kCollective)
        continue;
      const double own = std::max(kMinFactor, 1 + variation.own * random.Normal());
      const double all = operations[i].resource == Resource::kWorker ? common : 1;
      varied[i] = RoundNs(static_cast<double>(varied[i]) * own * all);
    }
    steps.push_back(ScheduleStep(operations, varied, platform));
  }
  return steps;
}

}  // namespace stepcast
