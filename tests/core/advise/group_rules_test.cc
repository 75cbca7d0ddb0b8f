#include "core/advise/group_rules.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <limits>

#include "core/base/index.h"
#include "core/base/random.h"
#include "tests/core/advise/naive_backward.h"

namespace stepcast::group_rules_test {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

std::vector<ReadyGradient> DrawGradients(Random& random, int32_t max_count) {
  std::vector<ReadyGradient> gradients;
  const uint64_t count = 1 + random.Below(static_cast<uint64_t>(max_count));
  double now = 0;
  for (uint64_t i = 0; i < count; ++i) {
    now += random.Unit();
    gradients.push_back(
        {.ready_seconds = now, .bytes = static_cast<int64_t>(1 + random.Below(1000))});
  }
  return gradients;
}

double BestEnd(const std::vector<ReadyGradient>& gradients, SecondsOfBytes seconds_of) {
  double best = std::numeric_limits<double>::infinity();
  for (const auto& counts : AllPartings(static_cast<int32_t>(gradients.size())))
    best = std::min(best, SerialEnd(gradients, counts, seconds_of));
  return best;
}

std::vector<int32_t> Exact(const std::vector<ReadyGradient>& gradients, SecondsOfBytes seconds_of) {
  return EarliestEndGroups(gradients, seconds_of, NeverStop).value();
}

TEST(EarliestEndGroupsTest, EndAsTheBestOfAllMergesWhateverAnAllReduceTakes) {
  for (uint64_t seed = 0; seed < 500; ++seed) {
    Random random({seed});
    const std::vector<ReadyGradient> gradients = DrawGradients(random, 10);
    const double startup = 2 * random.Unit();
    const double per_byte = 2e-3 * random.Unit();
    const auto affine = [&](double bytes) { return startup + per_byte * bytes; };
    ASSERT_DOUBLE_EQ(SerialEnd(gradients, Exact(gradients, affine), affine),
                     BestEnd(gradients, affine))
        << "seed " << seed;
    // A protocol that changes with the size.
    const auto steps = [&](double bytes) {
      return bytes < 700 ? startup / 4 + 3 * per_byte * bytes : startup + per_byte * bytes;
    };
    ASSERT_DOUBLE_EQ(SerialEnd(gradients, Exact(gradients, steps), steps),
                     BestEnd(gradients, steps))
        << "seed " << seed;
  }
}

TEST(EarliestEndGroupsTest, OfEquallyGoodOnesTheFewestGroupsAreMade) {
  const std::vector<ReadyGradient> together = {{1, 10}, {1, 10}, {1, 10}};
  EXPECT_THAT(Exact(together, [](double bytes) { return bytes; }), ElementsAre(3));
  EXPECT_THAT(Exact({}, [](double bytes) { return bytes; }), IsEmpty());
}

TEST(EarliestEndGroupsTest, AStopEndsIt) {
  const std::vector<ReadyGradient> many(1000, {.ready_seconds = 1, .bytes = 1});
  const auto stopped = EarliestEndGroups(
      many, [](double bytes) { return bytes; }, [] { return absl::CancelledError(); });
  EXPECT_EQ(stopped.status().code(), absl::StatusCode::kCancelled);
}

TEST(NcclThreadsTest, SmallAllReducesGetFewerChannelsThenFewerThreads) {
  constexpr int32_t kChannels = 4;
  EXPECT_EQ(NcclThreads(1e9, kChannels), 4 * 544);
  EXPECT_EQ(NcclThreads(4 * 512 * 64, kChannels), 4 * 544);
  EXPECT_EQ(NcclThreads(4 * 512 * 64 - 1, kChannels), 3 * 544);
  EXPECT_EQ(NcclThreads(512 * 64, kChannels), 544);
  EXPECT_EQ(NcclThreads(512 * 64 - 1, kChannels), 256 + 32);
  EXPECT_EQ(NcclThreads(1, kChannels), 64 + 32);
}

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
}  // namespace stepcast::group_rules_test
