#include "core/orders/outstanding_downloads.h"

#include <set>
#include <utility>
#include <vector>

#include "gtest/gtest.h"

#include "core/base/random.h"
#include "tests/core/orders/naive_order.h"
#include "tests/core/orders/random_graph.h"

namespace stepcast::outstanding_downloads_test {
namespace {

TEST(DependencyGroupsTest, ALayerAfterEachDownloadIsOneGroupAndSoIsAllThatFollowsTheLoss) {
  const TransferGraph graph = testing::LayeredGraph(1, 50, 20);
  const auto groups = DependencyGroups::Build(graph, NeverStop);
  ASSERT_TRUE(groups.ok());
  // The first layer waits for the first download alone; each of the other downloads is alone in its
  // group, its layer in another.
  EXPECT_EQ(groups->size(), 1 + 2 * 49);
  EXPECT_GT(graph.size(), 10 * groups->size());
}

TEST(DependencyGroupsTest, GroupsKeepEveryComputationAndEveryDownloadsReach) {
  for (uint64_t seed = 0; seed < 200; ++seed) {
    SCOPED_TRACE(seed);
    const TransferGraph graph = testing::RandomGraph(seed, 60);
    const auto groups = DependencyGroups::Build(graph, NeverStop);
    ASSERT_TRUE(groups.ok());
    Span in_groups;
    Span in_operations;
    for (const DependencyGroups::Group& group : groups->groups()) in_groups += group.computation;
    for (int32_t op = 0; op < graph.size(); ++op) {
      if (graph.operation(op).kind == OperationKind::kComputation)
        in_operations += graph.operation(op).time;
    }
    EXPECT_EQ(in_groups, in_operations);
    const std::vector<std::set<int32_t>> naive = testing::NaiveDependencies(graph);
    for (size_t d = 0; d < graph.downloads().size(); ++d) {
      const int32_t op = graph.downloads()[d];
      const auto group = static_cast<size_t>(groups->download_groups()[d]);
      EXPECT_EQ(groups->groups()[group].download_count,
                static_cast<int32_t>(naive[static_cast<size_t>(op)].size()));
    }
    for (int32_t g = 0; g < groups->size(); ++g) {
      for (const int32_t dependent : groups->dependents(g)) {
        EXPECT_GT(dependent, g);
        EXPECT_GT(groups->groups()[static_cast<size_t>(dependent)].download_count,
                  groups->groups()[static_cast<size_t>(g)].download_count);
      }
    }
  }
}

TEST(DependencyGroupsTest, CountsBeyondOneSweepOfDownloads) {
  const int32_t downloads = 700;
  std::vector<TransferGraph::Operation> operations(
      static_cast<size_t>(downloads), {.kind = OperationKind::kDownload, .time = Nanoseconds(1)});
  operations.push_back({.kind = OperationKind::kComputation, .time = Nanoseconds(1)});
  std::vector<TransferGraph::Dependency> dependencies;
  dependencies.reserve(static_cast<size_t>(downloads));
  for (int32_t d = 0; d < downloads; ++d) dependencies.push_back({.before = d, .after = downloads});
  const auto groups = DependencyGroups::Build(TransferGraph(operations, dependencies), NeverStop);
  ASSERT_TRUE(groups.ok());
  EXPECT_EQ(groups->groups().back().download_count, downloads);
}

TEST(DependencyGroupsTest, StopsWhenTold) {
  const TransferGraph graph = testing::LayeredGraph(1, 500, 20);
  EXPECT_EQ(DependencyGroups::Build(graph, [] { return absl::CancelledError("enough"); }).status(),
            absl::CancelledError("enough"));
}

std::vector<Span> DownloadTimes(const TransferGraph& graph) {
  std::vector<Span> times;
  for (const int32_t op : graph.downloads()) times.push_back(graph.operation(op).time);
  return times;
}

// The example of the paper's figure 1a: op1 waits for recv1, op2 for op1 and recv2.
TEST(OutstandingDownloadsTest, FigureOneOfThePaper) {
  const TransferGraph graph(
      {{.kind = OperationKind::kDownload, .time = Nanoseconds(3)},
       {.kind = OperationKind::kDownload, .time = Nanoseconds(5)},
       {.kind = OperationKind::kComputation, .time = Nanoseconds(7)},
       {.kind = OperationKind::kComputation, .time = Nanoseconds(11)}},
      {{.before = 0, .after = 2}, {.before = 2, .after = 3}, {.before = 1, .after = 3}});
  const auto groups = DependencyGroups::Build(graph, NeverStop);
  auto downloads = OutstandingDownloads::Create(*groups, DownloadTimes(graph), NeverStop);
  ASSERT_TRUE(downloads.ok());
  EXPECT_EQ(downloads->freed_computation(0), Nanoseconds(7));
  EXPECT_EQ(downloads->freed_computation(1), Nanoseconds(0));
  EXPECT_EQ(downloads->impending_load(0), Nanoseconds(8));
  EXPECT_EQ(downloads->impending_load(1), Nanoseconds(8));
  downloads->Remove(0);
  EXPECT_EQ(downloads->freed_computation(1), Nanoseconds(11));
  EXPECT_EQ(downloads->impending_load(1), kNever);
}

TEST(OutstandingDownloadsTest, AgreesWithTheDefinitionsWhateverTheOrderOfRemoval) {
  for (uint64_t seed = 0; seed < 200; ++seed) {
    SCOPED_TRACE(seed);
    const TransferGraph graph = testing::RandomGraph(seed, 50);
    const auto groups = DependencyGroups::Build(graph, NeverStop);
    auto downloads = OutstandingDownloads::Create(*groups, DownloadTimes(graph), NeverStop);
    ASSERT_TRUE(downloads.ok());
    Random random{seed, 5};
    std::set<size_t> left;
    for (size_t d = 0; d < graph.downloads().size(); ++d) left.insert(d);
    while (!left.empty()) {
      std::set<int32_t> outstanding;
      for (const size_t d : left) outstanding.insert(graph.downloads()[d]);
      const std::vector<testing::NaiveProperties> naive =
          testing::NaiveUpdate(graph, outstanding, false);
      for (const size_t d : left) {
        const testing::NaiveProperties& expected = naive[static_cast<size_t>(graph.downloads()[d])];
        ASSERT_EQ(downloads->transfer_time(d), expected.transfer_time);
        ASSERT_EQ(downloads->freed_computation(d), expected.freed_computation);
        ASSERT_EQ(downloads->impending_load(d), expected.impending_load);
      }
      const auto removed =
          std::next(left.begin(), static_cast<std::ptrdiff_t>(random.Below(left.size())));
      downloads->Remove(*removed);
      left.erase(removed);
    }
  }
}

TEST(OutstandingDownloadsTest, CountsTransfersUnderTheGeneralTimeOracle) {
  for (uint64_t seed = 0; seed < 200; ++seed) {
    SCOPED_TRACE(seed);
    const TransferGraph graph = testing::RandomGraph(seed, 50);
    const auto groups = DependencyGroups::Build(graph, NeverStop);
    const std::vector<int32_t> counts = ImpendingTransferCounts(*groups);
    const std::set<int32_t> all(graph.downloads().begin(), graph.downloads().end());
    const std::vector<testing::NaiveProperties> naive = testing::NaiveUpdate(graph, all, true);
    ASSERT_EQ(counts.size(), graph.downloads().size());
    for (size_t d = 0; d < counts.size(); ++d) {
      const Span expected = naive[static_cast<size_t>(graph.downloads()[d])].impending_load;
      EXPECT_EQ(counts[d], expected == kNever ? INT32_MAX : expected.ticks);
    }
  }
}

}  // namespace
}  // namespace stepcast::outstanding_downloads_test
