#include <array>
#include <string>
#include <utility>
#include <vector>

#include "core/zoo/networks.h"

namespace stepcast::torch {

namespace {

using LayerId = ArchitectureBuilder::LayerId;

constexpr int64_t kClasses = 1000;
constexpr Window kPoolThree{.height = 3, .width = 3, .stride = 2, .padding = Padding::kValid};
constexpr Window kWhole{.height = 3, .width = 3, .padding = Padding::kValid};

// A module's name for one of its submodules.
std::string Sub(const std::string& name, const std::string& part) { return name + "." + part; }

// The ResNet family. Paddings of torchvision are half of an odd window, which is kSame.
class ResNetBuilder {
 public:
  explicit ResNetBuilder(bool bottlenecks, bool cifar = false)
      : bottlenecks_(bottlenecks),
        cifar_(cifar),
        net_({.height = cifar ? 32 : 224, .width = cifar ? 32 : 224, .channels = 3},
             Library::kTorch) {}

  Architecture Build(const std::array<int, 4>& units) && {
    const Window first = cifar_ ? kThree : Window{.height = 7, .width = 7, .stride = 2};
    LayerId layer = Normalized({"conv1", "bn1"}, ArchitectureBuilder::kImage, 64, first);
    layer = net_.Relu("relu", layer);
    if (!cifar_) layer = net_.Pool("maxpool", layer, {.height = 3, .width = 3, .stride = 2});
    int64_t channels = 64;
    for (size_t block = 0; block < units.size(); ++block, channels *= 2) {
      for (int unit = 0; unit < units[block]; ++unit) {
        const std::string name = "layer" + std::to_string(block + 1) + "." + std::to_string(unit);
        layer = Block(name, layer, channels, block > 0 && unit == 0 ? 2 : 1);
      }
    }
    layer = net_.Dense("fc", net_.GlobalPool("avgpool", layer), cifar_ ? 10 : kClasses);
    return std::move(net_).Finish({layer});
  }

 private:
  // The names of a convolution and of the normalisation after it.
  struct Pair {
    std::string convolution;
    std::string normalization;
  };

  LayerId Normalized(const Pair& names, LayerId from, int64_t channels, const Window& window) {
    return net_.BatchNormalization(
        names.normalization,
        net_.Convolution(names.convolution, from, channels, window, /*biases=*/false));
  }

  LayerId Numbered(const std::string& block, int number, LayerId from, int64_t channels,
                   const Window& window) {
    const std::string digit = std::to_string(number);
    return Normalized({Sub(block, "conv" + digit), Sub(block, "bn" + digit)}, from, channels,
                      window);
  }

  // The shortcut's projection runs, and is registered, after the block's convolutions.
  LayerId Block(const std::string& name, LayerId from, int64_t channels, int64_t stride) {
    const Window strided{.height = 3, .width = 3, .stride = stride};
    const int64_t outputs = bottlenecks_ ? 4 * channels : channels;
    LayerId layer = from;
    if (bottlenecks_) {
      layer = net_.Relu(Sub(name, "relu1"), Numbered(name, 1, layer, channels, kOne));
      layer = net_.Relu(Sub(name, "relu2"), Numbered(name, 2, layer, channels, strided));
      layer = Numbered(name, 3, layer, outputs, kOne);
    } else {
      layer = net_.Relu(Sub(name, "relu1"), Numbered(name, 1, layer, channels, strided));
      layer = Numbered(name, 2, layer, outputs, kThree);
    }
    LayerId shortcut = from;
    if (stride != 1 || net_.ShapeOf(from).channels != outputs) {
      shortcut = Normalized({Sub(name, "downsample.0"), Sub(name, "downsample.1")}, from, outputs,
                            {.stride = stride});
    }
    return net_.Relu(Sub(name, "relu"), net_.Addition(Sub(name, "add"), layer, shortcut));
  }

  const bool bottlenecks_;
  const bool cifar_;
  ArchitectureBuilder net_;
};

}  // namespace

Architecture ResNet18() { return ResNetBuilder(/*bottlenecks=*/false).Build({2, 2, 2, 2}); }

Architecture ResNet18Cifar() {
  return ResNetBuilder(/*bottlenecks=*/false, /*cifar=*/true).Build({2, 2, 2, 2});
}

Architecture ResNet50() { return ResNetBuilder(/*bottlenecks=*/true).Build({3, 4, 6, 3}); }

Architecture ResNet101() { return ResNetBuilder(/*bottlenecks=*/true).Build({3, 4, 23, 3}); }

Architecture ResNet152() { return ResNetBuilder(/*bottlenecks=*/true).Build({3, 8, 36, 3}); }

namespace {

// The VGG family; `convolutions` of each block.
Architecture Vgg(const std::array<int, 5>& convolutions) {
  ArchitectureBuilder net({.height = 224, .width = 224, .channels = 3}, Library::kTorch);
  LayerId layer = ArchitectureBuilder::kImage;
  int module = 0;  // of a Sequential, where a ReLU and a pool count, too
  const auto next = [&module] { return "features." + std::to_string(module++); };
  constexpr std::array<int64_t, 5> kChannels{64, 128, 256, 512, 512};
  for (size_t block = 0; block < convolutions.size(); ++block) {
    for (int i = 0; i < convolutions[block]; ++i) {
      layer = net.Convolution(next(), layer, kChannels[block], kThree, /*biases=*/true);
      layer = net.Relu(next(), layer);
    }
    layer =
        net.Pool(next(), layer, {.height = 2, .width = 2, .stride = 2, .padding = Padding::kValid});
  }
  layer = net.Relu("classifier.1", net.Dense("classifier.0", layer, 4096));
  layer = net.Relu("classifier.4", net.Dense("classifier.3", layer, 4096));
  layer = net.Dense("classifier.6", layer, kClasses);
  return std::move(net).Finish({layer});
}

}  // namespace

Architecture Vgg16() { return Vgg({2, 2, 3, 3, 3}); }

Architecture Vgg19() { return Vgg({2, 2, 4, 4, 4}); }

namespace {

class XceptionBuilder {
 public:
  Architecture Build() && {
    LayerId layer = net_.Convolution("conv1", ArchitectureBuilder::kImage, 32, kPoolThree,
                                     /*biases=*/false);
    layer = net_.Relu("act1", net_.BatchNormalization("bn1", layer));
    layer = net_.Convolution("conv2", layer, 64, kWhole, /*biases=*/false);
    layer = net_.Relu("act2", net_.BatchNormalization("bn2", layer));
    layer = Block("block1", layer, {128, 128}, /*stride=*/2, /*active=*/true);
    layer = Block("block2", layer, {256, 256}, /*stride=*/2);
    layer = Block("block3", layer, {728, 728}, /*stride=*/2);
    for (int block = 4; block <= 11; ++block)
      layer = Block("block" + std::to_string(block), layer, {728, 728, 728}, /*stride=*/1);
    layer = Block("block12", layer, {728, 1024}, /*stride=*/2);
    layer = net_.Relu("act3", net_.BatchNormalization("bn3", Separable("conv3", layer, 1536)));
    layer = net_.Relu("act4", net_.BatchNormalization("bn4", Separable("conv4", layer, 2048)));
    layer = net_.Dense("fc", net_.GlobalPool("global_pool", layer), kClasses);
    return std::move(net_).Finish({layer});
  }

 private:
  // Depth by depth, then across it.
  LayerId Separable(const std::string& name, LayerId from, int64_t channels) {
    const LayerId layer = net_.DepthwiseConvolution(Sub(name, "conv1"), from, 1, kThree);
    return net_.Convolution(Sub(name, "pointwise"), layer, channels, kOne, /*biases=*/false);
  }

  // `active`: what it reads has passed a ReLU, so the block begins without one.
  LayerId Block(const std::string& name, LayerId from, const std::vector<int64_t>& channels,
                int64_t stride, bool active = false) {
    int module = 0;  // of a Sequential
    const auto next = [&] { return Sub(name, "rep." + std::to_string(module++)); };
    LayerId layer = from;
    for (const int64_t outputs : channels) {
      if (!active) layer = net_.Relu(next(), layer);
      active = false;
      layer = Separable(next(), layer, outputs);
      layer = net_.BatchNormalization(next(), layer);
    }
    if (stride == 1) return net_.Addition(Sub(name, "add"), layer, from);
    layer = net_.Pool(next(), layer, {.height = 3, .width = 3, .stride = stride});
    LayerId skip = net_.Convolution(Sub(name, "skip"), from, channels.back(), {.stride = stride},
                                    /*biases=*/false);
    skip = net_.BatchNormalization(Sub(name, "skipbn"), skip);
    return net_.Addition(Sub(name, "add"), layer, skip);
  }

  ArchitectureBuilder net_{{.height = 299, .width = 299, .channels = 3}, Library::kTorch};
};

}  // namespace

Architecture Xception() { return XceptionBuilder().Build(); }

namespace {

class InceptionBuilder {
 public:
  Architecture Build() && {
    LayerId layer = Convolve("Conv2d_1a_3x3", ArchitectureBuilder::kImage, 32, kPoolThree);
    layer = Convolve("Conv2d_2a_3x3", layer, 32, kWhole);
    layer = Convolve("Conv2d_2b_3x3", layer, 64, kThree);
    layer = net_.Pool("maxpool1", layer, kPoolThree);
    layer = Convolve("Conv2d_3b_1x1", layer, 80, kOne);
    layer = Convolve("Conv2d_4a_3x3", layer, 192, kWhole);
    layer = net_.Pool("maxpool2", layer, kPoolThree);
    layer = ModuleA("Mixed_5b", layer, 32);
    layer = ModuleA("Mixed_5c", layer, 64);
    layer = ModuleA("Mixed_5d", layer, 64);
    layer = ModuleB("Mixed_6a", layer);
    layer = ModuleC("Mixed_6b", layer, 128);
    layer = ModuleC("Mixed_6c", layer, 160);
    layer = ModuleC("Mixed_6d", layer, 160);
    layer = ModuleC("Mixed_6e", layer, 192);
    const LayerId auxiliary = Auxiliary(layer);
    layer = ModuleD("Mixed_7a", layer);
    layer = ModuleE("Mixed_7b", layer);
    layer = ModuleE("Mixed_7c", layer);
    layer = net_.Dense("fc", net_.GlobalPool("avgpool", layer), kClasses);
    return std::move(net_).Finish({layer, auxiliary});
  }

 private:
  LayerId Auxiliary(LayerId from) {
    LayerId head = net_.Pool("AuxLogits.pool", from,
                             {.height = 5, .width = 5, .stride = 3, .padding = Padding::kValid});
    head = Convolve("AuxLogits.conv0", head, 128, kOne);
    head = Convolve("AuxLogits.conv1", head, 768,
                    {.height = 5, .width = 5, .padding = Padding::kValid});
    return net_.Dense("AuxLogits.fc", net_.GlobalPool("AuxLogits.avgpool", head), kClasses);
  }

  // 35 x 35.
  LayerId ModuleA(const std::string& name, LayerId from, int64_t pooled) {
    const LayerId one = Convolve(Sub(name, "branch1x1"), from, 64, kOne);
    LayerId five = Convolve(Sub(name, "branch5x5_1"), from, 48, kOne);
    five = Convolve(Sub(name, "branch5x5_2"), five, 64, kFive);
    LayerId three = Convolve(Sub(name, "branch3x3dbl_1"), from, 64, kOne);
    three = Convolve(Sub(name, "branch3x3dbl_2"), three, 96, kThree);
    three = Convolve(Sub(name, "branch3x3dbl_3"), three, 96, kThree);
    return Join(name, {one, five, three, Pooled(name, from, pooled)});
  }

  // From 35 x 35 to 17 x 17.
  LayerId ModuleB(const std::string& name, LayerId from) {
    const LayerId once = Convolve(Sub(name, "branch3x3"), from, 384, kPoolThree);
    LayerId twice = Convolve(Sub(name, "branch3x3dbl_1"), from, 64, kOne);
    twice = Convolve(Sub(name, "branch3x3dbl_2"), twice, 96, kThree);
    twice = Convolve(Sub(name, "branch3x3dbl_3"), twice, 96, kPoolThree);
    return Join(name, {once, twice, net_.Pool(Sub(name, "branch_pool"), from, kPoolThree)});
  }

  // 17 x 17.
  LayerId ModuleC(const std::string& name, LayerId from, int64_t narrow) {
    const LayerId one = Convolve(Sub(name, "branch1x1"), from, 192, kOne);
    LayerId once = Convolve(Sub(name, "branch7x7_1"), from, narrow, kOne);
    once = Convolve(Sub(name, "branch7x7_2"), once, narrow, kWide);
    once = Convolve(Sub(name, "branch7x7_3"), once, 192, kTall);
    LayerId twice = Convolve(Sub(name, "branch7x7dbl_1"), from, narrow, kOne);
    twice = Convolve(Sub(name, "branch7x7dbl_2"), twice, narrow, kTall);
    twice = Convolve(Sub(name, "branch7x7dbl_3"), twice, narrow, kWide);
    twice = Convolve(Sub(name, "branch7x7dbl_4"), twice, narrow, kTall);
    twice = Convolve(Sub(name, "branch7x7dbl_5"), twice, 192, kWide);
    return Join(name, {one, once, twice, Pooled(name, from, 192)});
  }

  // From 17 x 17 to 8 x 8.
  LayerId ModuleD(const std::string& name, LayerId from) {
    LayerId three = Convolve(Sub(name, "branch3x3_1"), from, 192, kOne);
    three = Convolve(Sub(name, "branch3x3_2"), three, 320, kPoolThree);
    LayerId seven = Convolve(Sub(name, "branch7x7x3_1"), from, 192, kOne);
    seven = Convolve(Sub(name, "branch7x7x3_2"), seven, 192, kWide);
    seven = Convolve(Sub(name, "branch7x7x3_3"), seven, 192, kTall);
    seven = Convolve(Sub(name, "branch7x7x3_4"), seven, 192, kPoolThree);
    return Join(name, {three, seven, net_.Pool(Sub(name, "branch_pool"), from, kPoolThree)});
  }

  // 8 x 8.
  LayerId ModuleE(const std::string& name, LayerId from) {
    const LayerId one = Convolve(Sub(name, "branch1x1"), from, 320, kOne);
    const LayerId three = Convolve(Sub(name, "branch3x3_1"), from, 384, kOne);
    const LayerId wide = Convolve(Sub(name, "branch3x3_2a"), three, 384, {.width = 3});
    const LayerId tall = Convolve(Sub(name, "branch3x3_2b"), three, 384, {.height = 3});
    LayerId twice = Convolve(Sub(name, "branch3x3dbl_1"), from, 448, kOne);
    twice = Convolve(Sub(name, "branch3x3dbl_2"), twice, 384, kThree);
    const LayerId twice_wide = Convolve(Sub(name, "branch3x3dbl_3a"), twice, 384, {.width = 3});
    const LayerId twice_tall = Convolve(Sub(name, "branch3x3dbl_3b"), twice, 384, {.height = 3});
    return Join(name, {one, wide, tall, twice_wide, twice_tall, Pooled(name, from, 192)});
  }

  LayerId Join(const std::string& name, const std::vector<LayerId>& branches) {
    return net_.Concatenation(Sub(name, "cat"), branches);
  }
  LayerId Pooled(const std::string& name, LayerId from, int64_t channels) {
    return Convolve(Sub(name, "branch_pool"), net_.Pool(Sub(name, "avg_pool"), from, kThree),
                    channels, kOne);
  }
  // BasicConv2d.
  LayerId Convolve(const std::string& name, LayerId from, int64_t channels, const Window& window) {
    const LayerId layer =
        net_.Convolution(Sub(name, "conv"), from, channels, window, /*biases=*/false);
    return net_.Relu(Sub(name, "relu"), net_.BatchNormalization(Sub(name, "bn"), layer));
  }

  static constexpr Window kWide{.width = 7};
  static constexpr Window kTall{.height = 7};

  ArchitectureBuilder net_{{.height = 299, .width = 299, .channels = 3}, Library::kTorch};
};

}  // namespace

Architecture InceptionV3() { return InceptionBuilder().Build(); }

namespace {

// Sizes of both transformers.
constexpr int kLayers = 12;
constexpr int64_t kHidden = 768;
constexpr int64_t kFeedForward = 3072;
constexpr int64_t kHeads = 12;

// Normalisation after the addition.
LayerId BertLayer(ArchitectureBuilder& net, const std::string& name, LayerId from) {
  const std::string self = Sub(name, "attention.self");
  const LayerId query = net.Linear(Sub(self, "query"), from, kHidden);
  const LayerId key = net.Linear(Sub(self, "key"), from, kHidden);
  const LayerId value = net.Linear(Sub(self, "value"), from, kHidden);
  LayerId layer = net.Attention(self, {query, key, value}, kHidden, kHeads);
  const auto add_and_normalize = [&](const std::string& output, LayerId residual) {
    layer = net.Linear(Sub(output, "dense"), layer, kHidden);
    layer = net.LayerNormalization(Sub(output, "LayerNorm"),
                                   net.Addition(Sub(output, "add"), layer, residual));
    return layer;
  };
  const LayerId attended = add_and_normalize(Sub(name, "attention.output"), from);
  layer = net.Linear(Sub(name, "intermediate.dense"), attended, kFeedForward);
  layer = net.Gelu(Sub(name, "intermediate.gelu"), layer);
  return add_and_normalize(Sub(name, "output"), attended);
}

// Normalisation before what is added.
LayerId Gpt2Layer(ArchitectureBuilder& net, const std::string& name, LayerId from) {
  LayerId layer = net.LayerNormalization(Sub(name, "ln_1"), from);
  layer = net.Linear(Sub(name, "attn.c_attn"), layer, 3 * kHidden);
  layer = net.Attention(Sub(name, "attn"), {layer}, kHidden, kHeads);
  layer = net.Linear(Sub(name, "attn.c_proj"), layer, kHidden);
  const LayerId attended = net.Addition(Sub(name, "attn.add"), layer, from);
  layer = net.LayerNormalization(Sub(name, "ln_2"), attended);
  layer = net.Linear(Sub(name, "mlp.c_fc"), layer, kFeedForward);
  layer = net.Gelu(Sub(name, "mlp.act"), layer);
  layer = net.Linear(Sub(name, "mlp.c_proj"), layer, kHidden);
  return net.Addition(Sub(name, "mlp.add"), layer, attended);
}

}  // namespace

Architecture BertBase() {
  ArchitectureBuilder net({.height = 384}, Library::kTorch);
  const std::string embeddings = "bert.embeddings";
  LayerId layer = net.Embeddings(embeddings,
                                 {{Sub(embeddings, "word_embeddings"), 30'522},
                                  {Sub(embeddings, "position_embeddings"), 512},
                                  {Sub(embeddings, "token_type_embeddings"), 2}},
                                 kHidden);
  layer = net.LayerNormalization(Sub(embeddings, "LayerNorm"), layer);
  for (int i = 0; i < kLayers; ++i)
    layer = BertLayer(net, "bert.encoder.layer." + std::to_string(i), layer);
  layer = net.Linear("qa_outputs", layer, 2);  // an answer's start and its end
  return std::move(net).Finish({layer});
}

Architecture Gpt2Small() {
  constexpr int64_t kPositions = 1024;
  constexpr int64_t kVocabulary = 50'257;
  ArchitectureBuilder net({.height = kPositions}, Library::kTorch);
  LayerId layer =
      net.Embeddings("transformer.embeddings",
                     {{"transformer.wte", kVocabulary}, {"transformer.wpe", kPositions}}, kHidden);
  for (int i = 0; i < kLayers; ++i)
    layer = Gpt2Layer(net, "transformer.h." + std::to_string(i), layer);
  layer = net.LayerNormalization("transformer.ln_f", layer);
  layer = net.TiedLinear("lm_head", layer, kVocabulary);
  return std::move(net).Finish({layer});
}

}  // namespace stepcast::torch
