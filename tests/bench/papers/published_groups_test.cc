#include "tests/bench/papers/published_groups.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/base/random.h"
#include "core/base/stop_check.h"

namespace stepcast::bench {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

std::vector<ReadyGradient> DrawGradients(Random& random) {
  std::vector<ReadyGradient> gradients;
  const uint64_t count = 1 + random.Below(10);
  double now = 0;
  for (uint64_t i = 0; i < count; ++i) {
    now += random.Unit();
    gradients.push_back(
        {.ready_seconds = now, .bytes = static_cast<int64_t>(1 + random.Below(1000))});
  }
  return gradients;
}

std::vector<BackwardLayer> DrawLayers(Random& random) {
  std::vector<BackwardLayer> layers(1 + random.Below(12));
  for (BackwardLayer& layer : layers) {
    layer.seconds = 1e-3 * random.Unit();
    if (random.Below(4) != 0) layer.bytes = static_cast<int64_t>(1 + random.Below(8'000'000));
  }
  return layers;
}

std::vector<int32_t> Exact(const std::vector<ReadyGradient>& gradients, SecondsOfBytes seconds_of) {
  return EarliestEndGroups(gradients, seconds_of, NeverStop).value();
}

TEST(MgWfbpGroupsTest, AGradientJoinsIfItIsReadyWithinTheStartup) {
  const auto seconds_of = [](double bytes) { return 2 + bytes; };
  // The second is ready before 1 + 2, and so delays the begin to 2.5; the third is not ready before
  // 2.5 + 2; the fourth waits for the third, which begins at 14.5, and so joins it.
  const std::vector<ReadyGradient> gradients = {{1, 5}, {2.5, 5}, {5, 3}, {16, 3}, {40, 1}};
  EXPECT_THAT(MgWfbpGroups(gradients, 2, seconds_of), ElementsAre(2, 2, 1));
  EXPECT_THAT(MgWfbpGroups({}, 2, seconds_of), IsEmpty());
}

TEST(MgWfbpGroupsTest, ItIsNeverBetterThanTheExactOnesAndSometimesWorse) {
  int worse = 0;
  for (uint64_t seed = 0; seed < 500; ++seed) {
    Random random({seed});
    const std::vector<ReadyGradient> gradients = DrawGradients(random);
    const double startup = 2 * random.Unit();
    const auto seconds_of = [&](double bytes) { return startup + 1e-3 * bytes; };
    const double greedy =
        SerialEnd(gradients, MgWfbpGroups(gradients, startup, seconds_of), seconds_of);
    const double best = SerialEnd(gradients, Exact(gradients, seconds_of), seconds_of);
    ASSERT_GE(greedy * (1 + 1e-12), best) << "seed " << seed;
    worse += greedy > best * (1 + 1e-9) ? 1 : 0;
  }
  RecordProperty("worse", worse);
  EXPECT_GT(worse, 0);
  // The second joins the first and the third both, which ends at 1.1 + 1 + 2.2; alone the first
  // leaves the others together, which ends at 2 + 1 + 1.2.
  const std::vector<ReadyGradient> gradients = {{0, 10}, {0.9, 6}, {1.1, 6}};
  const auto seconds_of = [](double bytes) { return 1 + bytes / 10; };
  EXPECT_THAT(MgWfbpGroups(gradients, 1, seconds_of), ElementsAre(3));
  EXPECT_THAT(Exact(gradients, seconds_of), ElementsAre(1, 2));
  EXPECT_NEAR(SerialEnd(gradients, std::vector<int32_t>{3}, seconds_of), 4.3, 1e-12);
  EXPECT_NEAR(SerialEnd(gradients, std::vector<int32_t>{1, 2}, seconds_of), 4.2, 1e-12);
}

TEST(HorovodBuffersTest, CyclesTakeWhatIsReadyInBuffersOfUpToTheThreshold) {
  // Cycles begin at 0, 5 and 10: that of 10 finds something first, a full buffer until 16.4 and
  // another until 20. Then the next begins, and when that has ended, at 34, the last.
  const std::vector<ReadyGradient> gradients = {{6, 30},  {8, 34},  {10, 36},
                                                {12, 50}, {13, 90}, {31, 10}};
  const auto seconds_of = [](double bytes) { return bytes / 10; };
  EXPECT_THAT(HorovodBuffers(gradients, {.cycle_seconds = 5, .fusion_bytes = 64}, seconds_of),
              ElementsAre(HorovodBuffer{2, 10, 10, 16.4}, HorovodBuffer{1, 10, 16.4, 20},
                          HorovodBuffer{1, 20, 20, 25}, HorovodBuffer{1, 20, 25, 34},
                          HorovodBuffer{1, 34, 34, 35}));
}

TEST(HorovodBuffersTest, AnEmptyCycleIsFollowedByOneACycleLater) {
  const auto seconds_of = [](double) { return 0.5; };
  const std::vector<ReadyGradient> gradients = {{1e-9, 1}, {7.1, 1}};
  EXPECT_THAT(HorovodBuffers(gradients, {.first_seconds = -1, .cycle_seconds = 3}, seconds_of),
              ElementsAre(HorovodBuffer{1, 2, 2, 2.5}, HorovodBuffer{1, 8, 8, 8.5}));
  EXPECT_THAT(
      HorovodBuffers(gradients, {.cycle_seconds = 0}, seconds_of),
      ElementsAre(HorovodBuffer{1, 1e-9, 1e-9, 1e-9 + 0.5}, HorovodBuffer{1, 7.1, 7.1, 7.1 + 0.5}));
  EXPECT_THAT(HorovodBuffers({}, {}, seconds_of), IsEmpty());
}

TEST(HorovodBackwardTest, WithoutContentionItIsTheBuffersOfGradientsOnTime) {
  for (uint64_t seed = 0; seed < 300; ++seed) {
    Random random({seed});
    const std::vector<BackwardLayer> layers = DrawLayers(random);
    const OverlapSetting setting{.workers = static_cast<int32_t>(2 + random.Below(30)),
                                 .latency_seconds = 1e-5 * random.Unit(),
                                 .contention = WithoutContention(5e9)};
    const HorovodCycles cycles{.first_seconds = 1e-4 * random.Unit(),
                               .cycle_seconds = 1e-3 * random.Unit(),
                               .fusion_bytes = 4'000'000};
    const auto seconds_of = [&](double bytes) { return RatesOf(setting, 1).AloneSeconds(bytes); };
    const HorovodTime time = HorovodBackward(layers, setting, cycles, [](double) { return 1; });
    const std::vector<HorovodBuffer> buffers =
        HorovodBuffers(GradientsOf(layers), cycles, seconds_of);
    ASSERT_EQ(time.buffers.size(), buffers.size()) << "seed " << seed;
    for (size_t i = 0; i < buffers.size(); ++i) {
      ASSERT_EQ(time.buffers[i].gradients, buffers[i].gradients) << "seed " << seed;
      ASSERT_NEAR(time.buffers[i].end_seconds, buffers[i].end_seconds, 1e-12) << "seed " << seed;
    }
  }
}

TEST(HorovodBackwardTest, ABufferDelaysTheComputationBesideItAndTheGradientsAfter) {
  // Beside an all-reduce computation has half its speed; alone it sends a byte a second, twice as
  // long beside.
  const OverlapSetting setting{
      .workers = 2,
      .contention = {
          .alpha1 = 1, .alpha2 = 0.5, .overlapped = {.gamma1 = 0.5}, .alone = {.gamma1 = 1}}};
  const std::vector<BackwardLayer> layers = {{2, 1}, {3, 4}};
  // The cycle of 2 begins the first, which takes 2 s; in those 1 of the 3 s that are left is
  // computed. So the second is ready at 6 instead of 5, and takes 4 s alone.
  const HorovodTime time =
      HorovodBackward(layers, setting, {.first_seconds = 0, .cycle_seconds = 1, .fusion_bytes = 1},
                      [](double) { return 1; });
  EXPECT_THAT(time.buffers, ElementsAre(HorovodBuffer{1, 2, 2, 4}, HorovodBuffer{1, 6, 6, 10}));
  EXPECT_DOUBLE_EQ(time.seconds, 10);
  EXPECT_DOUBLE_EQ(time.exposed_seconds, 4);
}

TEST(LayersByGroupTest, LayersWithoutParametersGoWithTheNextGradient) {
  const std::vector<BackwardLayer> layers = {{1, 0}, {1, 5}, {1, 0}, {1, 0},
                                             {1, 6}, {1, 7}, {1, 0}};
  EXPECT_THAT(GradientsOf(layers),
              ElementsAre(ReadyGradient{2, 5}, ReadyGradient{5, 6}, ReadyGradient{6, 7}));
  EXPECT_THAT(LayersByGroup(layers, std::vector<int32_t>{1, 2}), ElementsAre(2, 5));
  EXPECT_THAT(LayersByGroup(layers, std::vector<int32_t>{2, 1}), ElementsAre(5, 2));
  EXPECT_THAT(LayersByGroup(std::vector<BackwardLayer>{{1, 0}}, {}), ElementsAre(1));
}

}  // namespace
}  // namespace stepcast::bench
