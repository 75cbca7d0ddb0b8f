#include "core/zoo/alexnet.h"

#include <utility>

#include "core/zoo/architecture_builder.h"

namespace stepcast {

Architecture AlexNetV2() {
  constexpr Window kPool{.height = 3, .width = 3, .stride = 2, .padding = Padding::kValid};
  ArchitectureBuilder net({.height = 224, .width = 224, .channels = 3});
  auto layer =
      net.BiasedConvolution("conv1", ArchitectureBuilder::kImage, 64,
                            {.height = 11, .width = 11, .stride = 4, .padding = Padding::kValid});
  layer = net.Pool("pool1", layer, kPool);
  layer = net.BiasedConvolution("conv2", layer, 192, {.height = 5, .width = 5});
  layer = net.Pool("pool2", layer, kPool);
  layer = net.BiasedConvolution("conv3", layer, 384, kThree);
  layer = net.BiasedConvolution("conv4", layer, 384, kThree);
  layer = net.BiasedConvolution("conv5", layer, 256, kThree);
  layer = net.Pool("pool5", layer, kPool);
  // Dense, written as a convolution over all that is left of the image (5 x 5).
  layer = net.BiasedConvolution("fc6", layer, 4096,
                                {.height = 5, .width = 5, .padding = Padding::kValid});
  layer = net.Relu("fc7/relu", net.Dense("fc7", layer, 4096));
  layer = net.Dense("fc8", layer, 1000);
  return std::move(net).Finish({layer});
}

}  // namespace stepcast
