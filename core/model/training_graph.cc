#include "core/model/training_graph.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <utility>

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

}  // namespace stepcast
