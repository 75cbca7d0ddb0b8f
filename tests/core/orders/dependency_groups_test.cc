#include "core/orders/dependency_groups.h"

#include <set>
#include <vector>

#include "gtest/gtest.h"

#include "tests/core/orders/naive_order.h"
#include "tests/core/orders/random_graph.h"

namespace stepcast::dependency_groups_test {
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

}  // namespace
}  // namespace stepcast::dependency_groups_test
