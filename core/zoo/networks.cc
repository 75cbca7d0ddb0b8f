#include "core/zoo/networks.h"

#include <array>
#include <string>
#include <utility>
#include <vector>

namespace stepcast {

namespace {

using LayerId = ArchitectureBuilder::LayerId;

}  // namespace

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

namespace {

constexpr Window kHalve{.height = 3, .width = 3, .stride = 2};

// Channels of a module's convolutions, as a row of the paper's table.
struct Row {
  int64_t one;
  int64_t three_reduced;
  int64_t three;
  int64_t five_reduced;
  int64_t five;
  int64_t pool;
};

LayerId Module(ArchitectureBuilder& net, const std::string& name, LayerId from, const Row& row) {
  const LayerId one = net.BiasedConvolution(name + "/1x1", from, row.one, kOne);
  const LayerId three = net.BiasedConvolution(
      name + "/3x3", net.BiasedConvolution(name + "/3x3_reduce", from, row.three_reduced, kOne),
      row.three, kThree);
  const LayerId five = net.BiasedConvolution(
      name + "/5x5", net.BiasedConvolution(name + "/5x5_reduce", from, row.five_reduced, kOne),
      row.five, kFive);
  const LayerId pool = net.BiasedConvolution(
      name + "/pool_proj", net.Pool(name + "/pool", from, kThree), row.pool, kOne);
  return net.Concatenation(name + "/concat", {one, three, five, pool});
}

}  // namespace

Architecture GoogLeNet() {
  ArchitectureBuilder net({.height = 224, .width = 224, .channels = 3});
  LayerId layer = net.BiasedConvolution("conv1", ArchitectureBuilder::kImage, 64,
                                        {.height = 7, .width = 7, .stride = 2});
  layer = net.ResponseNormalization("norm1", net.Pool("pool1", layer, kHalve));
  layer = net.BiasedConvolution("conv2_reduce", layer, 64, kOne);
  layer = net.BiasedConvolution("conv2", layer, 192, kThree);
  layer = net.Pool("pool2", net.ResponseNormalization("norm2", layer), kHalve);
  layer = Module(
      net, "inception_3a", layer,
      {.one = 64, .three_reduced = 96, .three = 128, .five_reduced = 16, .five = 32, .pool = 32});
  layer = Module(
      net, "inception_3b", layer,
      {.one = 128, .three_reduced = 128, .three = 192, .five_reduced = 32, .five = 96, .pool = 64});
  layer = net.Pool("pool3", layer, kHalve);
  layer = Module(
      net, "inception_4a", layer,
      {.one = 192, .three_reduced = 96, .three = 208, .five_reduced = 16, .five = 48, .pool = 64});
  layer = Module(
      net, "inception_4b", layer,
      {.one = 160, .three_reduced = 112, .three = 224, .five_reduced = 24, .five = 64, .pool = 64});
  layer = Module(
      net, "inception_4c", layer,
      {.one = 128, .three_reduced = 128, .three = 256, .five_reduced = 24, .five = 64, .pool = 64});
  layer = Module(
      net, "inception_4d", layer,
      {.one = 112, .three_reduced = 144, .three = 288, .five_reduced = 32, .five = 64, .pool = 64});
  layer = Module(net, "inception_4e", layer,
                 {.one = 256,
                  .three_reduced = 160,
                  .three = 320,
                  .five_reduced = 32,
                  .five = 128,
                  .pool = 128});
  layer = net.Pool("pool4", layer, kHalve);
  layer = Module(net, "inception_5a", layer,
                 {.one = 256,
                  .three_reduced = 160,
                  .three = 320,
                  .five_reduced = 32,
                  .five = 128,
                  .pool = 128});
  layer = Module(net, "inception_5b", layer,
                 {.one = 384,
                  .three_reduced = 192,
                  .three = 384,
                  .five_reduced = 48,
                  .five = 128,
                  .pool = 128});
  layer = net.Dense("classifier", net.GlobalPool("pool5", layer), 1000);
  return std::move(net).Finish({layer});
}

namespace {

// Channels of a module with two convolutions of 3 x 3 in place of one of 5 x 5. `one` and `pool` 0:
// a module that halves the image has neither.
struct NormalizedRow {
  int64_t one = 0;
  int64_t three_reduced = 0;
  int64_t three = 0;
  int64_t twice_reduced = 0;
  int64_t twice = 0;
  int64_t pool = 0;
};

LayerId NormalizedModule(ArchitectureBuilder& net, const std::string& name, LayerId from,
                         const NormalizedRow& row) {
  const Window last = row.one > 0 ? kThree : kHalve;
  const auto convolve = [&](const char* part, LayerId input, int64_t channels,
                            const Window& window) {
    return net.NormalizedConvolution(name + part, input, channels, window);
  };
  std::vector<LayerId> branches;
  if (row.one > 0) branches.push_back(convolve("/1x1", from, row.one, kOne));
  branches.push_back(
      convolve("/3x3", convolve("/3x3_reduce", from, row.three_reduced, kOne), row.three, last));
  const LayerId once = convolve(
      "/double_3x3a", convolve("/double_reduce", from, row.twice_reduced, kOne), row.twice, kThree);
  branches.push_back(convolve("/double_3x3b", once, row.twice, last));
  const LayerId pool = net.Pool(name + "/pool", from, last);
  branches.push_back(row.pool > 0 ? convolve("/pool_proj", pool, row.pool, kOne) : pool);
  return net.Concatenation(name + "/concat", branches);
}

}  // namespace

Architecture InceptionV2() {
  ArchitectureBuilder net({.height = 224, .width = 224, .channels = 3});
  LayerId layer = net.DepthwiseConvolution("conv1/depthwise", ArchitectureBuilder::kImage, 8,
                                           {.height = 7, .width = 7, .stride = 2});
  layer = net.NormalizedConvolution("conv1", layer, 64, kOne);
  layer = net.Pool("pool1", layer, kHalve);
  layer = net.NormalizedConvolution("conv2_reduce", layer, 64, kOne);
  layer = net.NormalizedConvolution("conv2", layer, 192, kThree);
  layer = net.Pool("pool2", layer, kHalve);
  // The paper's Fig. 5, from inception (3a) to (5b). A last pool's maximum or mean costs the same.
  constexpr std::array<std::pair<const char*, NormalizedRow>, 10> kModules{{
      {"inception_3a", {64, 64, 64, 64, 96, 32}},
      {"inception_3b", {64, 64, 96, 64, 96, 64}},
      {"inception_3c", {0, 128, 160, 64, 96, 0}},
      {"inception_4a", {224, 64, 96, 96, 128, 128}},
      {"inception_4b", {192, 96, 128, 96, 128, 128}},
      {"inception_4c", {160, 128, 160, 128, 160, 96}},
      {"inception_4d", {96, 128, 192, 160, 192, 96}},
      {"inception_4e", {0, 128, 192, 192, 256, 0}},
      {"inception_5a", {352, 192, 320, 160, 224, 128}},
      {"inception_5b", {352, 192, 320, 192, 224, 128}},
  }};
  for (const auto& [name, row] : kModules) layer = NormalizedModule(net, name, layer, row);
  layer = net.Dense("classifier", net.GlobalPool("pool5", layer), 1000);
  return std::move(net).Finish({layer});
}

namespace {

constexpr Window kWholeThree{.height = 3, .width = 3, .padding = Padding::kValid};
constexpr Window kHalveValid{.height = 3, .width = 3, .stride = 2, .padding = Padding::kValid};

class Network {
 public:
  Architecture Build() && {
    LayerId layer = Mixed7(Mixed6(Mixed5(Stem())));
    layer = net_.Dense("logits", net_.GlobalPool("pool", layer), 1000);
    return std::move(net_).Finish({layer, auxiliary_});
  }

 private:
  LayerId Stem() {
    LayerId layer = Convolve("conv_1a", ArchitectureBuilder::kImage, 32, kHalveValid);
    layer = Convolve("conv_2a", layer, 32, kWholeThree);
    layer = Convolve("conv_2b", layer, 64, kThree);
    layer = net_.Pool("pool_3a", layer, kHalveValid);
    layer = Convolve("conv_3b", layer, 80, kOne);
    layer = Convolve("conv_4a", layer, 192, kWholeThree);
    return net_.Pool("pool_5a", layer, kHalveValid);
  }

  // 35 x 35.
  LayerId Mixed5(LayerId layer) {
    layer = Module35("mixed_5b", layer, 32);
    layer = Module35("mixed_5c", layer, 64);
    return Module35("mixed_5d", layer, 64);
  }

  LayerId Module35(const std::string& name, LayerId from, int64_t pooled) {
    const LayerId one = Convolve(name + "/branch0", from, 64, kOne);
    const LayerId five =
        Convolve(name + "/branch1_5x5", Convolve(name + "/branch1_1x1", from, 48, kOne), 64, kFive);
    LayerId three = Convolve(name + "/branch2_3x3a",
                             Convolve(name + "/branch2_1x1", from, 64, kOne), 96, kThree);
    three = Convolve(name + "/branch2_3x3b", three, 96, kThree);
    return net_.Concatenation(name + "/concat", {one, five, three, Pooled(name, from, pooled)});
  }

  // 17 x 17. The auxiliary head reads its last module.
  LayerId Mixed6(LayerId layer) {
    layer = Reduce17("mixed_6a", layer);
    layer = Module17("mixed_6b", layer, 128);
    layer = Module17("mixed_6c", layer, 160);
    layer = Module17("mixed_6d", layer, 160);
    layer = Module17("mixed_6e", layer, 192);
    LayerId head = net_.Pool("auxiliary/pool", layer,
                             {.height = 5, .width = 5, .stride = 3, .padding = Padding::kValid});
    head = Convolve("auxiliary/1x1", head, 128, kOne);
    head =
        Convolve("auxiliary/5x5", head, 768, {.height = 5, .width = 5, .padding = Padding::kValid});
    auxiliary_ = net_.Dense("auxiliary/logits", head, 1000);
    return layer;
  }

  LayerId Reduce17(const std::string& name, LayerId from) {
    const LayerId one = Convolve(name + "/branch0", from, 384, kHalveValid);
    LayerId three = Convolve(name + "/branch1_3x3a",
                             Convolve(name + "/branch1_1x1", from, 64, kOne), 96, kThree);
    three = Convolve(name + "/branch1_3x3b", three, 96, kHalveValid);
    return net_.Concatenation(name + "/concat",
                              {one, three, net_.Pool(name + "/pool", from, kHalveValid)});
  }

  LayerId Module17(const std::string& name, LayerId from, int64_t narrow) {
    const LayerId one = Convolve(name + "/branch0", from, 192, kOne);
    LayerId once = Convolve(name + "/branch1_1x1", from, narrow, kOne);
    once = Tall(name + "/branch1_7x1", Wide(name + "/branch1_1x7", once, narrow, 7), 192, 7);
    LayerId twice = Convolve(name + "/branch2_1x1", from, narrow, kOne);
    twice = Wide(name + "/branch2_1x7a", Tall(name + "/branch2_7x1a", twice, narrow, 7), narrow, 7);
    twice = Wide(name + "/branch2_1x7b", Tall(name + "/branch2_7x1b", twice, narrow, 7), 192, 7);
    return net_.Concatenation(name + "/concat", {one, once, twice, Pooled(name, from, 192)});
  }

  // 8 x 8.
  LayerId Mixed7(LayerId layer) {
    layer = Reduce8("mixed_7a", layer);
    layer = Module8("mixed_7b", layer);
    return Module8("mixed_7c", layer);
  }

  LayerId Reduce8(const std::string& name, LayerId from) {
    const LayerId three = Convolve(
        name + "/branch0_3x3", Convolve(name + "/branch0_1x1", from, 192, kOne), 320, kHalveValid);
    LayerId seven = Convolve(name + "/branch1_1x1", from, 192, kOne);
    seven = Tall(name + "/branch1_7x1", Wide(name + "/branch1_1x7", seven, 192, 7), 192, 7);
    seven = Convolve(name + "/branch1_3x3", seven, 192, kHalveValid);
    return net_.Concatenation(name + "/concat",
                              {three, seven, net_.Pool(name + "/pool", from, kHalveValid)});
  }

  LayerId Module8(const std::string& name, LayerId from) {
    const LayerId one = Convolve(name + "/branch0", from, 320, kOne);
    const LayerId three = Convolve(name + "/branch1_1x1", from, 384, kOne);
    const LayerId six = Convolve(name + "/branch2_3x3",
                                 Convolve(name + "/branch2_1x1", from, 448, kOne), 384, kThree);
    return net_.Concatenation(
        name + "/concat",
        {one, Wide(name + "/branch1_1x3", three, 384, 3),
         Tall(name + "/branch1_3x1", three, 384, 3), Wide(name + "/branch2_1x3", six, 384, 3),
         Tall(name + "/branch2_3x1", six, 384, 3), Pooled(name, from, 192)});
  }

  LayerId Pooled(const std::string& name, LayerId from, int64_t channels) {
    return Convolve(name + "/branch_pool", net_.Pool(name + "/pool", from, kThree), channels, kOne);
  }
  LayerId Wide(const std::string& name, LayerId from, int64_t channels, int64_t width) {
    return Convolve(name, from, channels, {.width = width});
  }
  LayerId Tall(const std::string& name, LayerId from, int64_t channels, int64_t height) {
    return Convolve(name, from, channels, {.height = height});
  }
  LayerId Convolve(const std::string& name, LayerId from, int64_t channels, const Window& window) {
    return net_.NormalizedConvolution(name, from, channels, window);
  }

  ArchitectureBuilder net_{{.height = 299, .width = 299, .channels = 3}};
  LayerId auxiliary_ = 0;
};

}  // namespace

Architecture InceptionV3() { return Network().Build(); }

namespace {

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

LayerId NormalizedRelu(ArchitectureBuilder& net, const std::string& name, LayerId from) {
  return net.Relu(name + "/relu", net.BatchNormalization(name, from));
}

LayerId PreactivatedBottleneck(ArchitectureBuilder& net, const std::string& name, LayerId from,
                               int64_t channels, int64_t stride) {
  const int64_t outputs = kExpansion * channels;
  const LayerId active = NormalizedRelu(net, name + "/preact", from);
  LayerId shortcut = from;
  if (net.ShapeOf(from).channels != outputs) {
    shortcut = net.Convolution(name + "/shortcut", active, outputs, {.stride = stride},
                               /*biases=*/true);
  }
  LayerId layer = net.NormalizedConvolution(name + "/conv1", active, channels, {.stride = stride});
  layer = net.NormalizedConvolution(name + "/conv2", layer, channels, kThree);
  layer = net.Convolution(name + "/conv3", layer, outputs, kOne, /*biases=*/true);
  return net.Addition(name + "/add", shortcut, layer);
}

enum class ResNetVersion : uint8_t { kOne, kTwo };

Architecture ResNet(ResNetVersion version, const std::array<int, 4>& units) {
  const bool one = version == ResNetVersion::kOne;
  ArchitectureBuilder net({.height = 224, .width = 224, .channels = 3});
  constexpr Window kFirst{.height = 7, .width = 7, .stride = 2};
  constexpr auto kImage = ArchitectureBuilder::kImage;
  LayerId layer = one ? net.NormalizedConvolution("conv1", kImage, 64, kFirst)
                      : net.Convolution("conv1", kImage, 64, kFirst, /*biases=*/true);
  layer = net.Pool("pool1", layer, kHalve);
  int64_t channels = 64;
  for (size_t block = 0; block < units.size(); ++block, channels *= 2) {
    for (int unit = 1; unit <= units[block]; ++unit) {
      const std::string name = "block" + std::to_string(block + 1) + "/unit" + std::to_string(unit);
      const int64_t stride = block > 0 && unit == 1 ? 2 : 1;
      layer = (one ? Bottleneck : PreactivatedBottleneck)(net, name, layer, channels, stride);
    }
  }
  if (!one) layer = NormalizedRelu(net, "postnorm", layer);
  layer = net.Dense("logits", net.GlobalPool("pool5", layer), 1000);
  return std::move(net).Finish({layer});
}

}  // namespace

Architecture ResNet50() { return ResNet(ResNetVersion::kOne, {3, 4, 6, 3}); }

Architecture ResNet101() { return ResNet(ResNetVersion::kOne, {3, 4, 23, 3}); }

Architecture ResNet50V2() { return ResNet(ResNetVersion::kTwo, {3, 4, 6, 3}); }

Architecture ResNet101V2() { return ResNet(ResNetVersion::kTwo, {3, 4, 23, 3}); }

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

Architecture Vgg19() { return Vgg({2, 2, 4, 4, 4}); }

}  // namespace stepcast
