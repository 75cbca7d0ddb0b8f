#include "core/zoo/inception_v3.h"

#include <string>
#include <utility>

#include "core/zoo/architecture_builder.h"

namespace stepcast {

namespace {

using LayerId = ArchitectureBuilder::LayerId;

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

}  // namespace stepcast
