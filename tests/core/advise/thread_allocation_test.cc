#include "core/advise/thread_allocation.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <string>

#include "core/base/error.h"
#include "core/base/index.h"
#include "core/base/random.h"
#include "tests/core/advise/naive_backward.h"

namespace stepcast::thread_allocation_test {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr double kRounding = 1 + 1e-9;

// The least of all allocations of threads to groups of so many layers.
double LeastOfThreads(const RandomBackward& drawn, const std::vector<int32_t>& counts) {
  std::vector<TensorGroup> groups;
  for (const int32_t count : counts) {
    const int32_t first = groups.empty() ? 0 : groups.back().first + groups.back().count;
    groups.push_back({.first = first, .count = count});
  }
  double least = std::numeric_limits<double>::infinity();
  std::vector<size_t> choice(groups.size(), 0);
  while (true) {
    for (size_t i = 0; i < groups.size(); ++i) groups[i].threads = drawn.threads[choice[i]];
    least = std::min(least, NaiveBackwardSeconds(drawn.layers, groups, drawn.setting));
    size_t at = 0;
    while (at < choice.size() && ++choice[at] == drawn.threads.size()) choice[at++] = 0;
    if (at == choice.size()) return least;
  }
}

double LeastOfAll(const RandomBackward& drawn, size_t max_groups) {
  double least = std::numeric_limits<double>::infinity();
  for (const auto& counts : AllPartings(static_cast<int32_t>(drawn.layers.size()))) {
    // A group without parameters makes no all-reduce.
    if (counts.size() <= max_groups) least = std::min(least, LeastOfThreads(drawn, counts));
  }
  return least;
}

// The least time of these groups and threads where all-reduces begin at edges of chunks.
double LeastByChunks(const RandomBackward& drawn, const std::vector<TensorGroup>& groups,
                     int32_t chunks) {
  double total = 0;
  for (const BackwardLayer& layer : drawn.layers) total += layer.seconds;
  const double chunk = total / chunks;
  // By chunks computed.
  std::vector<double> times;
  for (int32_t z = 0; z <= chunks; ++z) times.push_back(z * chunk);
  for (const TensorGroup& group : groups) {
    double bytes = 0;
    double computed = 0;
    double ready = 0;
    for (int32_t i = 0; i < group.first + group.count; ++i) {
      const BackwardLayer& layer = drawn.layers[Index(i)];
      computed += layer.seconds;
      if (i < group.first || layer.bytes == 0) continue;
      bytes += static_cast<double>(layer.bytes);
      ready = computed;
    }
    if (bytes == 0) continue;
    std::vector<double> after(times.size(), std::numeric_limits<double>::infinity());
    for (int32_t begin = 0; begin <= chunks; ++begin) {
      if (begin * chunk < ready * (1 - 1e-9)) continue;
      for (int32_t end = begin; end <= chunks; ++end) {
        const OverlapStage stage =
            OverlapOf(RatesOf(drawn.setting, group.threads), bytes, (end - begin) * chunk);
        if (end < chunks && stage.communication > 0) continue;
        after[Index(end)] = std::min(after[Index(end)], times[Index(begin)] + stage.Seconds());
      }
    }
    times = after;
  }
  return times.back();
}

std::vector<std::string> FieldsOf(const absl::Status& status) {
  std::vector<std::string> fields;
  for (const Fault& fault : DetailsOf(status).faults) fields.push_back(fault.field);
  return fields;
}

void ExpectWithinBounds(const RandomBackward& drawn, const ThreadAllocation& answer, double least,
                        double published_guarantee, uint64_t seed) {
  ASSERT_TRUE(answer.guarantee_holds) << "seed " << seed << ": " << answer.why_void;
  EXPECT_LE(answer.guarantee, published_guarantee * kRounding) << "seed " << seed;
  EXPECT_LE(answer.backward_seconds, answer.guarantee * least * kRounding) << "seed " << seed;
  EXPECT_GE(answer.backward_seconds * kRounding, least) << "seed " << seed;
  EXPECT_GE(answer.chunked_seconds * kRounding, answer.backward_seconds) << "seed " << seed;
  EXPECT_LE(answer.chunked_seconds, answer.guarantee * least * kRounding) << "seed " << seed;
  const double naive = NaiveBackwardSeconds(drawn.layers, answer.groups, drawn.setting);
  EXPECT_NEAR(answer.backward_seconds, naive, 1e-9 * naive) << "seed " << seed;
}

TEST(ThreadAllocationTest, JointlyItIsWithinItsBoundOfTheBestOfAll) {
  double worst = 1;
  for (uint64_t seed = 0; seed < 500; ++seed) {
    Random random({seed});
    const RandomBackward drawn = DrawBackward(random, 6);
    const auto chunks = static_cast<int32_t>(3 + random.Below(60));
    const auto answer = AllocateThreads(drawn.layers, drawn.setting,
                                        {.chunks = chunks, .threads = drawn.threads}, NeverStop);
    ASSERT_TRUE(answer.ok()) << answer.status();
    const double least = LeastOfAll(drawn, drawn.layers.size());
    const double layers = static_cast<double>(drawn.layers.size());
    ExpectWithinBounds(drawn, *answer, least, 1 + (layers - 1) / chunks, seed);
    if (least > 0) worst = std::max(worst, answer->backward_seconds / least);
  }
  RecordProperty("worst", std::to_string(worst));
  EXPECT_GT(worst, 1.001) << "else this would not tell a bound from equality";
}

TEST(ThreadAllocationTest, WithFewGroupsItIsWithinTheBoundOfAsManyGroups) {
  for (uint64_t seed = 500; seed < 700; ++seed) {
    Random random({seed});
    RandomBackward drawn = DrawBackward(random, 6);
    // Every layer has parameters, so that a part of a partition is an all-reduce.
    for (BackwardLayer& layer : drawn.layers) layer.bytes = std::max<int64_t>(layer.bytes, 1000);
    const auto answer =
        AllocateThreads(drawn.layers, drawn.setting,
                        {.max_groups = 2, .chunks = 20, .threads = drawn.threads}, NeverStop);
    ASSERT_TRUE(answer.ok()) << answer.status();
    EXPECT_LE(answer->groups.size(), 2U);
    ExpectWithinBounds(drawn, *answer, LeastOfAll(drawn, 2), 1 + 1 / 20.0, seed);
  }
}

TEST(ThreadAllocationTest, ForGivenGroupsItIsWithinItsBoundOfTheBestThreads) {
  for (uint64_t seed = 0; seed < 500; ++seed) {
    Random random({seed});
    const RandomBackward drawn = DrawBackward(random, 6);
    const auto chunks = static_cast<int32_t>(3 + random.Below(60));
    const auto partings = AllPartings(static_cast<int32_t>(drawn.layers.size()));
    const std::vector<int32_t>& counts = partings[random.Below(partings.size())];
    const auto answer =
        AllocateThreadsToGroups(drawn.layers, counts, drawn.setting,
                                {.chunks = chunks, .threads = drawn.threads}, NeverStop);
    ASSERT_TRUE(answer.ok()) << answer.status();
    std::vector<int32_t> answered;
    for (const TensorGroup& group : answer->groups) answered.push_back(group.count);
    ASSERT_EQ(answered, counts) << "seed " << seed;
    const double groups = static_cast<double>(counts.size());
    // Where layers without parameters come last inside a group, its all-reduce begins before the
    // end of all computation, as it would if they were a group of their own.
    const double behind = drawn.layers.back().bytes > 0 ? 0 : 1;
    ExpectWithinBounds(drawn, *answer, LeastOfThreads(drawn, counts),
                       1 + (groups - 1 + behind) / chunks, seed);
    EXPECT_NEAR(answer->chunked_seconds, LeastByChunks(drawn, answer->groups, chunks), 1e-12)
        << "seed " << seed << ": the threads are those of the time";
  }
}

TEST(ThreadAllocationTest, TheThreadsBalanceComputationAndCommunication) {
  // Many threads halve computation beside them, few take as much longer to send.
  OverlapSetting setting{.workers = 2, .contention = {.alpha1 = 1, .alpha2 = 0.5 / 1024}};
  setting.contention.alone = {.gamma1 = 2e9, .gamma2 = 2e9, .gamma3 = 0.01};
  setting.contention.overlapped = setting.contention.alone;
  const AllocationOptions options{.max_groups = 1, .threads = {128, 1024}};
  const std::vector<BackwardLayer> computing = {{1e-3, 1'000'000}, {1, 0}};
  const auto few = AllocateThreads(computing, setting, options, NeverStop);
  ASSERT_TRUE(few.ok()) << few.status();
  EXPECT_THAT(few->groups, ElementsAre(TensorGroup{0, 2, 128}));
  const std::vector<BackwardLayer> sending = {{1e-3, 1'000'000'000}, {1e-3, 0}};
  const auto many = AllocateThreads(sending, setting, options, NeverStop);
  ASSERT_TRUE(many.ok()) << many.status();
  EXPECT_THAT(many->groups, ElementsAre(TensorGroup{0, 2, 1024}));
}

TEST(ThreadAllocationTest, LatencyFusesAndIdleLinksPart) {
  const std::vector<BackwardLayer> layers = {{1, 1'000'000}, {1, 1'000'000}, {1, 1'000'000}};
  OverlapSetting setting{.workers = 2, .contention = WithoutContention(1e6)};
  const AllocationOptions options{.chunks = 30, .threads = {1}};
  const auto parted = AllocateThreads(layers, setting, options, NeverStop);
  ASSERT_TRUE(parted.ok()) << parted.status();
  EXPECT_DOUBLE_EQ(parted->backward_seconds, 4);
  EXPECT_EQ(parted->groups.size(), 3U);
  setting.latency_seconds = 10;
  const auto fused = AllocateThreads(layers, setting, options, NeverStop);
  ASSERT_TRUE(fused.ok()) << fused.status();
  EXPECT_THAT(fused->groups, ElementsAre(TensorGroup{0, 3, 1}));
  EXPECT_DOUBLE_EQ(fused->backward_seconds, 3 + 20 + 3);
}

TEST(ThreadAllocationTest, OfManyLayersTheLightestAreMerged) {
  Random random({7});
  std::vector<BackwardLayer> layers;
  for (int i = 0; i < 1000; ++i) {
    layers.push_back({.seconds = 1e-5 * random.Unit(),
                      .bytes = static_cast<int64_t>(random.Below(3) == 0 ? 0 : 1000)});
  }
  layers[500] = {.seconds = 2e-3, .bytes = 1'000'000};
  const OverlapSetting setting{
      .workers = 4, .latency_seconds = 1e-6, .contention = WithoutContention(1e9)};
  const auto answer = AllocateThreads(layers, setting, {.threads = {64}}, NeverStop);
  ASSERT_TRUE(answer.ok()) << answer.status();
  EXPECT_EQ(answer->fused_layers, 60);
  EXPECT_EQ(answer->layers_with_parameters,
            std::count_if(layers.begin(), layers.end(), [](const auto& l) { return l.bytes > 0; }));
  FaultList faults;
  CheckGroups(answer->groups, layers.size(), faults);
  EXPECT_TRUE(faults.empty());
  EXPECT_NEAR(answer->backward_seconds, NaiveBackwardSeconds(layers, answer->groups, setting),
              1e-12);
  EXPECT_GE(answer->chunked_seconds * kRounding, answer->backward_seconds);
  // Blocks of 60 cost little against one for every layer.
  EXPECT_LE(answer->backward_seconds, 1.01 * answer->chunked_seconds);
}

TEST(ThreadAllocationTest, NothingToReduceOrToComputeIsAnswered) {
  const OverlapSetting setting{.workers = 4, .contention = WithoutContention(1e9)};
  const auto computation =
      AllocateThreads(std::vector<BackwardLayer>{{1, 0}, {2, 0}}, setting, {}, NeverStop);
  ASSERT_TRUE(computation.ok()) << computation.status();
  EXPECT_THAT(computation->groups, ElementsAre(TensorGroup{0, 2, 128}));
  EXPECT_EQ(computation->backward_seconds, 3);
  const auto given = AllocateThreadsToGroups(std::vector<BackwardLayer>{{1, 0}, {2, 0}},
                                             std::vector<int32_t>{1, 1}, setting, {}, NeverStop);
  ASSERT_TRUE(given.ok()) << given.status();
  EXPECT_EQ(given->groups.size(), 2U);
  EXPECT_EQ(given->backward_seconds, 3);
  const auto communication = AllocateThreads(
      std::vector<BackwardLayer>{{0, 1'000'000'000}, {0, 1'000'000'000}}, setting, {}, NeverStop);
  ASSERT_TRUE(communication.ok()) << communication.status();
  EXPECT_DOUBLE_EQ(communication->backward_seconds, 3);
}

TEST(ThreadAllocationTest, AVoidBoundIsSaid) {
  OverlapSetting setting{.workers = 4, .contention = WithoutContention(1e9)};
  setting.contention.overlapped.gamma1 = 2e9;
  const auto answer = AllocateThreads(std::vector<BackwardLayer>{{1, 100}}, setting, {}, NeverStop);
  ASSERT_TRUE(answer.ok()) << answer.status();
  EXPECT_FALSE(answer->guarantee_holds);
  EXPECT_THAT(answer->why_void, HasSubstr("faster beside computation than alone"));
}

TEST(ThreadAllocationTest, BadInputIsRefusedByName) {
  const std::vector<BackwardLayer> layers = {{1, 100}, {1, 100}};
  OverlapSetting setting{.workers = 4, .contention = WithoutContention(1e9)};
  const auto refused = [&](const AllocationOptions& options) {
    const auto answer = AllocateThreads(layers, setting, options, NeverStop);
    EXPECT_EQ(answer.status().code(), absl::StatusCode::kInvalidArgument);
    EXPECT_EQ(DetailsOf(answer.status()).reason, "ALLOCATION_INVALID");
    return FieldsOf(answer.status());
  };
  EXPECT_THAT(refused({.max_groups = 0, .chunks = 501, .max_layers = 101}),
              ElementsAre("max_groups", "chunks", "max_layers"));
  EXPECT_THAT(refused({.threads = {}}), ElementsAre("threads"));
  setting.contention.alpha2 = 1;
  setting.contention.alone.gamma1 = -1;
  EXPECT_THAT(refused({.threads = {128, 0}}),
              ElementsAre("threads[1]", "contention.alpha2", "contention.alone"));
  setting.contention = WithoutContention(1e9);
  EXPECT_THAT(FieldsOf(AllocateThreads({}, setting, {}, NeverStop).status()),
              ElementsAre("layers"));
  const auto of_groups = [&](const std::vector<int32_t>& counts) {
    return FieldsOf(AllocateThreadsToGroups(layers, counts, setting, {}, NeverStop).status());
  };
  EXPECT_THAT(of_groups({1, 1}), IsEmpty());
  EXPECT_THAT(of_groups({1}), ElementsAre("groups"));
  EXPECT_THAT(of_groups({}), ElementsAre("groups"));
  EXPECT_THAT(of_groups({3}), ElementsAre("groups[0].count"));
  EXPECT_THAT(of_groups({-1, 3}), ElementsAre("groups[0].count"));
  EXPECT_THAT(of_groups({2'147'483'647, 2'147'483'647}), ElementsAre("groups[0].count"));
  EXPECT_THAT(of_groups(std::vector<int32_t>(10'001, 1)), ElementsAre("groups"));
}

TEST(ThreadAllocationTest, AStopEndsIt) {
  const std::vector<BackwardLayer> layers(60, {.seconds = 1e-3, .bytes = 1'000'000});
  const OverlapSetting setting{.workers = 4, .contention = WithoutContention(1e9)};
  int asked = 0;
  const auto stop = [&] { return ++asked < 20 ? absl::OkStatus() : absl::CancelledError(); };
  EXPECT_EQ(AllocateThreads(layers, setting, {}, stop).status().code(),
            absl::StatusCode::kCancelled);
  EXPECT_EQ(asked, 20);
}

}  // namespace
}  // namespace stepcast::thread_allocation_test
