#include "core/zoo/resnet.h"

#include <array>
#include <string>
#include <utility>

#include "core/zoo/architecture_builder.h"

namespace stepcast {

namespace {

using LayerId = ArchitectureBuilder::LayerId;

// The block's last convolution has so many times the channels of its others.
constexpr int64_t kExpansion = 4;

LayerId Bottleneck(ArchitectureBuilder& net, const std::string& name, LayerId from,
                   int64_t channels, int64_t stride) {
  const int64_t outputs = kExpansion * channels;
  LayerId shortcut = from;
  if (net.ShapeOf(from).channels != outputs)
    shortcut = net.LinearConvolution(name + "/shortcut", from, outputs, {.stride = stride});
  LayerId layer = net.NormalizedConvolution(name + "/conv1", from, channels, {.stride = stride});
  layer = net.NormalizedConvolution(name + "/conv2", layer, channels, {.height = 3, .width = 3});
  layer = net.LinearConvolution(name + "/conv3", layer, outputs, {});
  return net.Relu(name + "/relu", net.Addition(name + "/add", shortcut, layer));
}

Architecture ResNet(const std::array<int, 4>& units) {
  ArchitectureBuilder net({.height = 224, .width = 224, .channels = 3});
  LayerId layer = net.NormalizedConvolution("conv1", ArchitectureBuilder::kImage, 64,
                                            {.height = 7, .width = 7, .stride = 2});
  layer = net.Pool("pool1", layer, {.height = 3, .width = 3, .stride = 2});
  int64_t channels = 64;
  for (size_t block = 0; block < units.size(); ++block, channels *= 2) {
    for (int unit = 1; unit <= units[block]; ++unit) {
      const int64_t stride = block > 0 && unit == 1 ? 2 : 1;
      layer = Bottleneck(net, "block" + std::to_string(block + 1) + "/unit" + std::to_string(unit),
                         layer, channels, stride);
    }
  }
  layer = net.Dense("logits", net.GlobalPool("pool5", layer), 1000);
  return std::move(net).Finish({layer});
}

}  // namespace

Architecture ResNet50() { return ResNet({3, 4, 6, 3}); }

Architecture ResNet101() { return ResNet({3, 4, 23, 3}); }

}  // namespace stepcast
