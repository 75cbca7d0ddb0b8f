#include "core/orders/transfer_graph.h"

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

}  // namespace
}  // namespace stepcast::transfer_graph_test
