#include "core/orders/transfer_graph.h"

#include <algorithm>
#include <cstddef>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "tests/core/orders/random_graph.h"

namespace stepcast::transfer_graph_test {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

TEST(TransferGraphTest, KnowsItsDownloadsInGraphOrderAndWhatWaitsForEachOperation) {
  const TransferGraph graph(
      {{.kind = OperationKind::kComputation, .time = Nanoseconds(5)},
       {.kind = OperationKind::kDownload, .time = Nanoseconds(7)},
       {.kind = OperationKind::kOther},
       {.kind = OperationKind::kDownload}},
      {{.before = 1, .after = 2}, {.before = 3, .after = 0}, {.before = 1, .after = 0}});
  EXPECT_THAT(graph.downloads(), ElementsAre(1, 3));
  EXPECT_THAT(graph.dependents(1), ElementsAre(2, 0));
  EXPECT_THAT(graph.dependents(3), ElementsAre(0));
  EXPECT_THAT(graph.dependents(0), IsEmpty());
  EXPECT_EQ(graph.operation(1).time, Nanoseconds(7));
}

TEST(TransferGraphTest, TopologicalOrderHoldsEveryOperationAfterWhatItWaitsFor) {
  for (uint64_t seed = 0; seed < 100; ++seed) {
    SCOPED_TRACE(seed);
    const TransferGraph graph = testing::RandomGraph(seed, 60);
    std::vector<int32_t> place(static_cast<size_t>(graph.size()), -1);
    ASSERT_EQ(graph.topological().size(), place.size());
    for (size_t i = 0; i < graph.topological().size(); ++i)
      place[static_cast<size_t>(graph.topological()[i])] = static_cast<int32_t>(i);
    for (int32_t op = 0; op < graph.size(); ++op) {
      ASSERT_GE(place[static_cast<size_t>(op)], 0);
      for (const int32_t after : graph.dependents(op))
        EXPECT_LT(place[static_cast<size_t>(op)], place[static_cast<size_t>(after)]);
    }
  }
}

// reaches[a][b]: b waits for a, directly or through others, or is a.
std::vector<std::vector<bool>> Reaches(const TransferGraph& graph) {
  const auto size = static_cast<size_t>(graph.size());
  std::vector<std::vector<bool>> reaches(size, std::vector<bool>(size));
  for (auto at = graph.topological().rbegin(); at != graph.topological().rend(); ++at) {
    std::vector<bool>& own = reaches[static_cast<size_t>(*at)];
    own[static_cast<size_t>(*at)] = true;
    for (const int32_t after : graph.dependents(*at)) {
      for (size_t op = 0; op < size; ++op)
        own[op] = own[op] || reaches[static_cast<size_t>(after)][op];
    }
  }
  return reaches;
}

TEST(GraphCutTest, IsTheFirstThatStandsInLineWithAllOthersBehindEveryDownload) {
  int32_t found = 0;
  for (uint64_t seed = 0; seed < 2000; ++seed) {
    SCOPED_TRACE(seed);
    const TransferGraph graph = testing::RandomGraph(seed, 14);
    const std::vector<std::vector<bool>> reaches = Reaches(graph);
    GraphCut expected;
    for (int32_t op = 0; op < graph.size(); ++op) {
      std::vector<int32_t> up_to_it;
      bool in_line = graph.operation(op).kind == OperationKind::kComputation;
      for (int32_t other = 0; other < graph.size(); ++other) {
        const bool before = reaches[static_cast<size_t>(other)][static_cast<size_t>(op)];
        if (before) up_to_it.push_back(other);
        if (!before && !reaches[static_cast<size_t>(op)][static_cast<size_t>(other)])
          in_line = false;
        if (!before && graph.operation(other).kind == OperationKind::kDownload) in_line = false;
      }
      if (in_line && (expected.operation < 0 || up_to_it.size() < expected.up_to_it.size()))
        expected = {.operation = op, .up_to_it = up_to_it};
    }
    EXPECT_EQ(FirstCutBehindDownloads(graph), expected);
    if (expected.operation >= 0) ++found;
  }
  EXPECT_GT(found, 100);
}

// The gradient of a layer needs what it computed forward: such a dependency passes over the loss,
// and the loss is a cut all the same.
TEST(GraphCutTest, ADependencyMayPassOverIt) {
  // Two downloads, a layer for each, the loss, a gradient for each layer.
  const TransferGraph graph({{.kind = OperationKind::kDownload},
                             {.kind = OperationKind::kDownload},
                             {.kind = OperationKind::kComputation},
                             {.kind = OperationKind::kComputation},
                             {.kind = OperationKind::kComputation},
                             {.kind = OperationKind::kComputation}},
                            {{.before = 0, .after = 2},
                             {.before = 1, .after = 3},
                             {.before = 2, .after = 3},
                             {.before = 3, .after = 4},
                             {.before = 2, .after = 5},
                             {.before = 4, .after = 5}});
  EXPECT_EQ(FirstCutBehindDownloads(graph), (GraphCut{.operation = 3, .up_to_it = {0, 1, 2, 3}}));
}

}  // namespace
}  // namespace stepcast::transfer_graph_test
