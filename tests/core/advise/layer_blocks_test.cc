#include "core/advise/layer_blocks.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>

#include "core/base/index.h"
#include "core/base/random.h"

namespace stepcast::layer_blocks_test {
namespace {

TEST(LayerBlocksTest, GroupsWithoutParametersGoWithTheNext) {
  const std::vector<BackwardLayer> layers = {{1, 0}, {2, 5}, {3, 0}, {4, 0},
                                             {5, 6}, {6, 0}, {7, 0}};
  const std::vector<LayerBlock> blocks = BlocksOf(layers, std::vector<int32_t>{1, 2, 1, 2, 1});
  ASSERT_EQ(blocks.size(), 2U);
  EXPECT_EQ(blocks[0].first, 0);
  EXPECT_EQ(blocks[0].count, 3);
  EXPECT_EQ(blocks[0].ready, 3) << "the end of its last layer with parameters";
  EXPECT_EQ(blocks[0].bytes, 5);
  EXPECT_EQ(blocks[1].first, 3);
  EXPECT_EQ(blocks[1].count, 4);
  EXPECT_EQ(blocks[1].ready, 15);
  EXPECT_EQ(blocks[1].bytes, 6);
  EXPECT_TRUE(BlocksOf(std::vector<BackwardLayer>{{1, 0}}, std::vector<int32_t>{1}).empty());
}

TEST(LayerBlocksTest, TheLightestNeighboursAreMergedOneAfterTheOther) {
  for (uint64_t seed = 0; seed < 100; ++seed) {
    Random random({seed});
    std::vector<BackwardLayer> layers;
    for (uint64_t i = 0; i < 2 + random.Below(30); ++i)
      layers.push_back({random.Unit(), static_cast<int64_t>(1 + random.Below(100))});
    const std::vector<LayerBlock> singles =
        BlocksOf(layers, std::vector<int32_t>(layers.size(), 1));
    const size_t most = 1 + random.Below(layers.size());
    double bytes = 0;
    double seconds = 0;
    for (const LayerBlock& block : singles) {
      bytes += block.bytes;
      seconds += block.seconds;
    }
    std::vector<LayerBlock> obvious = singles;
    while (obvious.size() > most) {
      size_t lightest = 0;
      double least = std::numeric_limits<double>::infinity();
      for (size_t i = 0; i + 1 < obvious.size(); ++i) {
        const double weight = (obvious[i].bytes + obvious[i + 1].bytes) / bytes +
                              (obvious[i].seconds + obvious[i + 1].seconds) / seconds;
        if (weight >= least) continue;
        least = weight;
        lightest = i;
      }
      LayerBlock& kept = obvious[lightest];
      const LayerBlock& other = obvious[lightest + 1];
      kept.count += other.count;
      kept.bytes += other.bytes;
      kept.seconds += other.seconds;
      kept.ready = other.ready;
      obvious.erase(obvious.begin() + static_cast<std::ptrdiff_t>(lightest) + 1);
    }
    const std::vector<LayerBlock> merged = MergedLightest(singles, most);
    ASSERT_EQ(merged.size(), obvious.size()) << "seed " << seed;
    for (size_t i = 0; i < merged.size(); ++i) {
      ASSERT_EQ(merged[i].first, obvious[i].first) << "seed " << seed;
      ASSERT_EQ(merged[i].count, obvious[i].count) << "seed " << seed;
      ASSERT_EQ(merged[i].ready, obvious[i].ready) << "seed " << seed;
      ASSERT_EQ(merged[i].bytes, obvious[i].bytes) << "seed " << seed;
    }
  }
}

}  // namespace
}  // namespace stepcast::layer_blocks_test
