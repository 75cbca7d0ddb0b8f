#include "core/zoo/architecture_builder.h"

#include <utility>

namespace stepcast {

namespace {

using LayerId = ArchitectureBuilder::LayerId;

constexpr double kBatchNormalizationFlops = 7;
constexpr double kResponseNormalizationFlops = 10;
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

LayerId ArchitectureBuilder::Add(Layer layer, const std::vector<LayerId>& from) {
  const double gradients =
      (layer.variables.empty() ? 0 : 1) + (from == std::vector{kImage} ? 0 : 1);
  layer.backward_flops = gradients * layer.forward_flops;
  for (const LayerId input : from) {
    if (input != kImage) layer.inputs.push_back(input);
  }
  architecture_.layers.push_back(std::move(layer));
  return static_cast<LayerId>(architecture_.layers.size() - 1);
}

LayerId ArchitectureBuilder::Convolution(const std::string& name, LayerId from, int64_t channels,
                                         const Window& window, bool biases) {
  const Shape& input = ShapeOf(from);
  const Shape output = OutputOf(input, window, channels);
  const int64_t weights = window.height * window.width * input.channels;  // of one output channel
  Layer layer{.name = name,
              .variables = {{.name = name + "/weights", .elements = weights * channels}},
              .output = output};
  layer.forward_flops = 2 * Count(weights) * Count(output.elements());
  if (biases) {
    layer.variables.push_back({.name = name + "/biases", .elements = channels});
    layer.forward_flops += Count(output.elements());
  }
  return Add(std::move(layer), {from});
}

LayerId ArchitectureBuilder::BiasedConvolution(const std::string& name, LayerId from,
                                               int64_t channels, const Window& window) {
  return Relu(name + "/relu", Convolution(name, from, channels, window, /*biases=*/true));
}

LayerId ArchitectureBuilder::LinearConvolution(const std::string& name, LayerId from,
                                               int64_t channels, const Window& window) {
  const LayerId convolution = Convolution(name, from, channels, window, /*biases=*/false);
  const Shape output = ShapeOf(convolution);
  return Add({.name = name + "/batch_norm",
              .variables = {{.name = name + "/batch_norm/beta", .elements = channels}},
              .output = output,
              .forward_flops = kBatchNormalizationFlops * Count(output.elements())},
             {convolution});
}

LayerId ArchitectureBuilder::NormalizedConvolution(const std::string& name, LayerId from,
                                                   int64_t channels, const Window& window) {
  return Relu(name + "/relu", LinearConvolution(name, from, channels, window));
}

LayerId ArchitectureBuilder::Dense(const std::string& name, LayerId from, int64_t channels) {
  const int64_t inputs = ShapeOf(from).elements();
  return Add({.name = name,
              .variables = {{.name = name + "/weights", .elements = inputs * channels},
                            {.name = name + "/biases", .elements = channels}},
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

Architecture ArchitectureBuilder::Finish(const std::vector<LayerId>& outputs) && {
  int64_t classes = 0;
  for (const LayerId output : outputs) classes += ShapeOf(output).elements();
  Add({.name = "loss", .forward_flops = kLossFlopsPerClass * Count(classes)}, outputs);
  return std::move(architecture_);
}

}  // namespace stepcast
