#include "core/zoo/vgg.h"

#include <array>
#include <string>
#include <utility>

#include "core/zoo/architecture_builder.h"

namespace stepcast {

namespace {

constexpr std::array<int64_t, 5> kChannels{64, 128, 256, 512, 512};

Architecture Vgg(const std::array<int, 5>& convolutions) {
  ArchitectureBuilder net({.height = 224, .width = 224, .channels = 3});
  auto layer = ArchitectureBuilder::kImage;
  for (size_t block = 0; block < kChannels.size(); ++block) {
    const std::string number = std::to_string(block + 1);
    for (int i = 1; i <= convolutions[block]; ++i) {
      layer = net.BiasedConvolution("conv" + number + "_" + std::to_string(i), layer,
                                    kChannels[block], {.height = 3, .width = 3});
    }
    layer = net.Pool("pool" + number, layer,
                     {.height = 2, .width = 2, .stride = 2, .padding = Padding::kValid});
  }
  layer = net.Relu("fc6/relu", net.Dense("fc6", layer, 4096));
  layer = net.Relu("fc7/relu", net.Dense("fc7", layer, 4096));
  layer = net.Dense("fc8", layer, 1000);
  return std::move(net).Finish({layer});
}

}  // namespace

Architecture Vgg11() { return Vgg({1, 1, 2, 2, 2}); }

Architecture Vgg16() { return Vgg({2, 2, 3, 3, 3}); }

}  // namespace stepcast
