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
