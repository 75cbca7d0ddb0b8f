#include "core/zoo/architecture_builder.h"

#include <utility>

namespace stepcast {

namespace {

using LayerId = ArchitectureBuilder::LayerId;

constexpr double kNormalizationFlops = 7;
constexpr double kResponseNormalizationFlops = 10;
constexpr double kGeluFlops = 9;
constexpr double kSoftmaxFlops = 6;
constexpr double kLossFlopsPerClass = 5;

int64_t OutputSize(int64_t input, int64_t window, const Window& how) {
  return how.padding == Padding::kSame ? (input + how.stride - 1) / how.stride
                                       : (input - window) / how.stride + 1;
}

Shape OutputOf(const Shape& input, const Window& window, int64_t channels) {
  return {.height = OutputSize(input.height, window.height, window),
          .width = OutputSize(input.width, window.width, window),
          .channels = channels};
}

double Count(int64_t elements) { return static_cast<double>(elements); }

}  // namespace

LayerId ArchitectureBuilder::Add(Layer layer, const std::vector<LayerId>& from, int factors) {
  const double gradients =
      (layer.variables.empty() ? 0 : 1) + (from == std::vector{kImage} ? 0 : factors);
  layer.backward_flops = gradients * layer.forward_flops;
  for (const LayerId input : from) {
    if (input != kImage) layer.inputs.push_back(input);
  }
  architecture_.layers.push_back(std::move(layer));
  return static_cast<LayerId>(architecture_.layers.size() - 1);
}

Variable ArchitectureBuilder::Weights(const std::string& name, int64_t elements) const {
  return {.name = name + (library_ == Library::kTorch ? ".weight" : "/weights"),
          .elements = elements};
}

Variable ArchitectureBuilder::Biases(const std::string& name, int64_t elements) const {
  return {.name = name + (library_ == Library::kTorch ? ".bias" : "/biases"), .elements = elements};
}

LayerId ArchitectureBuilder::Convolution(const std::string& name, LayerId from, int64_t channels,
                                         const Window& window, bool biases) {
  const Shape& input = ShapeOf(from);
  const Shape output = OutputOf(input, window, channels);
  const int64_t weights = window.height * window.width * input.channels;  // of one output channel
  Layer layer{.name = name, .variables = {Weights(name, weights * channels)}, .output = output};
  layer.forward_flops = 2 * Count(weights) * Count(output.elements());
  if (biases) {
    layer.variables.push_back(Biases(name, channels));
    layer.forward_flops += Count(output.elements());
  }
  return Add(std::move(layer), {from});
}

LayerId ArchitectureBuilder::DepthwiseConvolution(const std::string& name, LayerId from,
                                                  int64_t multiplier, const Window& window) {
  const Shape& input = ShapeOf(from);
  const int64_t weights = window.height * window.width;  // of one output channel
  const Shape output = OutputOf(input, window, multiplier * input.channels);
  return Add({.name = name,
              .variables = {Weights(name, weights * output.channels)},
              .output = output,
              .forward_flops = 2 * Count(weights) * Count(output.elements())},
             {from});
}

LayerId ArchitectureBuilder::BiasedConvolution(const std::string& name, LayerId from,
                                               int64_t channels, const Window& window) {
  return Relu(name + "/relu", Convolution(name, from, channels, window, /*biases=*/true));
}

LayerId ArchitectureBuilder::LinearConvolution(const std::string& name, LayerId from,
                                               int64_t channels, const Window& window) {
  return BatchNormalization(name + "/batch_norm",
                            Convolution(name, from, channels, window, /*biases=*/false));
}

LayerId ArchitectureBuilder::BatchNormalization(const std::string& name, LayerId from) {
  const Shape output = ShapeOf(from);
  Layer layer{.name = name,
              .output = output,
              .forward_flops = kNormalizationFlops * Count(output.elements())};
  if (library_ == Library::kTorch) {
    layer.variables = {Weights(name, output.channels), Biases(name, output.channels)};
  } else {
    layer.variables = {{.name = name + "/beta", .elements = output.channels}};
  }
  return Add(std::move(layer), {from});
}

LayerId ArchitectureBuilder::NormalizedConvolution(const std::string& name, LayerId from,
                                                   int64_t channels, const Window& window) {
  return Relu(name + "/relu", LinearConvolution(name, from, channels, window));
}

LayerId ArchitectureBuilder::Dense(const std::string& name, LayerId from, int64_t channels) {
  const int64_t inputs = ShapeOf(from).elements();
  return Add({.name = name,
              .variables = {Weights(name, inputs * channels), Biases(name, channels)},
              .output = {.channels = channels},
              .forward_flops = 2 * Count(inputs) * Count(channels) + Count(channels)},
             {from});
}

LayerId ArchitectureBuilder::Relu(const std::string& name, LayerId from) {
  const Shape output = ShapeOf(from);
  return Add({.name = name, .output = output, .forward_flops = Count(output.elements())}, {from});
}

LayerId ArchitectureBuilder::Pool(const std::string& name, LayerId from, const Window& window) {
  const Shape output = OutputOf(ShapeOf(from), window, ShapeOf(from).channels);
  return Add({.name = name,
              .output = output,
              .forward_flops = Count(window.height * window.width) * Count(output.elements())},
             {from});
}

LayerId ArchitectureBuilder::GlobalPool(const std::string& name, LayerId from) {
  const Shape input = ShapeOf(from);
  return Pool(name, from,
              {.height = input.height, .width = input.width, .padding = Padding::kValid});
}

LayerId ArchitectureBuilder::ResponseNormalization(const std::string& name, LayerId from) {
  const Shape output = ShapeOf(from);
  return Add({.name = name,
              .output = output,
              .forward_flops = kResponseNormalizationFlops * Count(output.elements())},
             {from});
}

LayerId ArchitectureBuilder::Concatenation(const std::string& name,
                                           const std::vector<LayerId>& from) {
  Shape output = ShapeOf(from.front());
  output.channels = 0;
  for (const LayerId layer : from) output.channels += ShapeOf(layer).channels;
  return Add({.name = name, .output = output}, from);
}

LayerId ArchitectureBuilder::Addition(const std::string& name, LayerId a, LayerId b) {
  const Shape output = ShapeOf(a);
  return Add({.name = name, .output = output, .forward_flops = Count(output.elements())}, {a, b});
}

LayerId ArchitectureBuilder::Embeddings(const std::string& name, const std::vector<Table>& tables,
                                        int64_t channels) {
  Layer layer{.name = name, .output = {.height = image_.height, .channels = channels}};
  for (const Table& table : tables)
    layer.variables.push_back(Weights(table.name, table.rows * channels));
  layer.forward_flops =
      Count(static_cast<int64_t>(tables.size()) - 1) * Count(layer.output.elements());
  return Add(std::move(layer), {kImage});
}

LayerId ArchitectureBuilder::Linear(const std::string& name, LayerId from, int64_t channels) {
  return Convolution(name, from, channels, kOne, /*biases=*/true);
}

LayerId ArchitectureBuilder::TiedLinear(const std::string& name, LayerId from, int64_t channels) {
  const Shape& input = ShapeOf(from);
  const Shape output = OutputOf(input, kOne, channels);
  const double flops = 2 * Count(input.channels) * Count(output.elements());
  return Add({.name = name, .output = output, .forward_flops = flops}, {from}, /*factors=*/2);
}

LayerId ArchitectureBuilder::LayerNormalization(const std::string& name, LayerId from) {
  const Shape output = ShapeOf(from);
  return Add({.name = name,
              .variables = {Weights(name, output.channels), Biases(name, output.channels)},
              .output = output,
              .forward_flops = kNormalizationFlops * Count(output.elements())},
             {from});
}

LayerId ArchitectureBuilder::Gelu(const std::string& name, LayerId from) {
  const Shape output = ShapeOf(from);
  return Add(
      {.name = name, .output = output, .forward_flops = kGeluFlops * Count(output.elements())},
      {from});
}

LayerId ArchitectureBuilder::Attention(const std::string& name, const std::vector<LayerId>& from,
                                       int64_t channels, int64_t heads) {
  const int64_t tokens = ShapeOf(from.front()).height;
  const Shape weights{.height = tokens, .width = tokens, .channels = heads};
  // Flops of each score over a head's channels, and of each output over the positions: the same.
  const double product = 2 * Count(tokens) * Count(tokens) * Count(channels);
  const LayerId scores =
      Add({.name = name + ".scores", .output = weights, .forward_flops = product}, from,
          /*factors=*/2);
  const LayerId softmax = Add({.name = name + ".softmax",
                               .output = weights,
                               .forward_flops = kSoftmaxFlops * Count(weights.elements())},
                              {scores});
  return Add({.name = name + ".context",
              .output = {.height = tokens, .channels = channels},
              .forward_flops = product},
             {softmax, from.back()}, /*factors=*/2);
}

Architecture ArchitectureBuilder::Finish(const std::vector<LayerId>& outputs) && {
  int64_t classes = 0;
  for (const LayerId output : outputs) classes += ShapeOf(output).elements();
  Add({.name = "loss", .forward_flops = kLossFlopsPerClass * Count(classes)}, outputs);
  return std::move(architecture_);
}

}  // namespace stepcast
