#include "core/zoo/architecture_builder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <utility>

namespace stepcast::architecture_builder_test {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr auto kImage = ArchitectureBuilder::kImage;

TEST(ArchitectureBuilderTest,
     ABiasedConvolutionHasAMultiplicationAndAnAdditionForEachWeightAndPosition) {
  ArchitectureBuilder net({.height = 8, .width = 6, .channels = 3});
  const auto relu = net.BiasedConvolution("conv", kImage, 4, {.height = 3, .width = 5});
  EXPECT_EQ(net.ShapeOf(relu), (Shape{.height = 8, .width = 6, .channels = 4}));
  const Architecture made = std::move(net).Finish({relu});
  ASSERT_EQ(made.layers.size(), 3u);
  const Layer& conv = made.layers[0];
  EXPECT_THAT(conv.inputs, IsEmpty());
  ASSERT_EQ(conv.variables.size(), 2u);
  EXPECT_EQ(conv.variables[0].name, "conv/weights");
  EXPECT_EQ(conv.variables[0].elements, 3 * 5 * 3 * 4);
  EXPECT_EQ(conv.variables[1].name, "conv/biases");
  EXPECT_EQ(conv.variables[1].elements, 4);
  EXPECT_EQ(conv.forward_flops, 8 * 6 * 4 * (2 * 3 * 5 * 3 + 1));
  EXPECT_EQ(made.layers[1].forward_flops, 8 * 6 * 4);
}

TEST(ArchitectureBuilderTest, TheFirstLayerNeedsNoGradientOfTheImage) {
  ArchitectureBuilder net({.height = 4, .width = 4, .channels = 1});
  const auto first = net.Dense("first", kImage, 5);
  const auto relu = net.Relu("relu", first);
  const auto second = net.Dense("second", relu, 5);
  const Architecture made = std::move(net).Finish({second});
  EXPECT_EQ(made.layers[0].backward_flops, made.layers[0].forward_flops);
  EXPECT_EQ(made.layers[1].backward_flops, made.layers[1].forward_flops);
  EXPECT_EQ(made.layers[2].backward_flops, 2 * made.layers[2].forward_flops);
}

TEST(ArchitectureBuilderTest, SameRoundsUpAndValidTakesWholeWindowsOnly) {
  ArchitectureBuilder net({.height = 224, .width = 35, .channels = 2});
  const auto same = net.Pool("same", kImage, {.height = 3, .width = 3, .stride = 2});
  EXPECT_EQ(net.ShapeOf(same), (Shape{.height = 112, .width = 18, .channels = 2}));
  const auto valid = net.Pool("valid", kImage,
                              {.height = 11, .width = 3, .stride = 4, .padding = Padding::kValid});
  EXPECT_EQ(net.ShapeOf(valid), (Shape{.height = 54, .width = 9, .channels = 2}));
  const auto global = net.GlobalPool("global", valid);
  EXPECT_EQ(net.ShapeOf(global), (Shape{.height = 1, .width = 1, .channels = 2}));
  EXPECT_EQ(std::move(net).Finish({global}).layers[2].forward_flops, 54 * 9 * 2);
}

TEST(ArchitectureBuilderTest, ADepthwiseFilterSeesOneChannelAlone) {
  ArchitectureBuilder net({.height = 8, .width = 6, .channels = 3});
  const auto first =
      net.DepthwiseConvolution("a", kImage, 2, {.height = 3, .width = 5, .stride = 2});
  EXPECT_EQ(net.ShapeOf(first), (Shape{.height = 4, .width = 3, .channels = 6}));
  const auto second = net.DepthwiseConvolution("b", first, 1, kThree);
  const Architecture made = std::move(net).Finish({second});
  EXPECT_EQ(made.layers[0].variables[0].elements, 3 * 5 * 6);
  EXPECT_EQ(made.layers[0].forward_flops, 2 * 3 * 5 * 4 * 3 * 6);
  EXPECT_EQ(made.layers[0].backward_flops, made.layers[0].forward_flops);
  EXPECT_EQ(made.layers[1].backward_flops, 2 * made.layers[1].forward_flops);
}

TEST(ArchitectureBuilderTest, BranchesJoinByChannels) {
  ArchitectureBuilder net({.height = 4, .width = 4, .channels = 3});
  const auto a = net.NormalizedConvolution("a", kImage, 5, {});
  const auto b = net.LinearConvolution("b", kImage, 7, {});
  const auto joined = net.Concatenation("joined", {a, b});
  EXPECT_EQ(net.ShapeOf(joined), (Shape{.height = 4, .width = 4, .channels = 12}));
  const auto sum = net.Addition("sum", a, a);
  const Architecture made = std::move(net).Finish({joined, sum});
  EXPECT_THAT(made.layers[static_cast<size_t>(joined)].inputs, ElementsAre(a, b));
  EXPECT_EQ(made.layers[static_cast<size_t>(joined)].forward_flops, 0);
  EXPECT_EQ(made.layers.back().name, "loss");
  EXPECT_THAT(made.layers.back().inputs, ElementsAre(joined, sum));
  EXPECT_EQ(made.layers.back().forward_flops, 5 * (4 * 4 * 12 + 4 * 4 * 5));
}

TEST(ArchitectureBuilderTest, ANormalizedConvolutionHasAnOffsetInsteadOfBiases) {
  ArchitectureBuilder net({.height = 4, .width = 4, .channels = 3});
  const auto layer = net.NormalizedConvolution("a", kImage, 5, {.stride = 2});
  const Architecture made = std::move(net).Finish({layer});
  ASSERT_EQ(made.layers.size(), 4u);
  ASSERT_EQ(made.layers[0].variables.size(), 1u);
  ASSERT_EQ(made.layers[1].variables.size(), 1u);
  EXPECT_EQ(made.layers[1].variables[0].name, "a/batch_norm/beta");
  EXPECT_EQ(made.layers[1].variables[0].elements, 5);
  EXPECT_EQ(made.layers[1].forward_flops, 7 * 2 * 2 * 5);
}

}  // namespace
}  // namespace stepcast::architecture_builder_test
