#include "core/zoo/googlenet.h"

#include <string>
#include <utility>

#include "core/zoo/architecture_builder.h"

namespace stepcast {

namespace {

using LayerId = ArchitectureBuilder::LayerId;

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

}  // namespace stepcast
