#include "core/orders/order_search.h"

#include <algorithm>
#include <numeric>
#include <span>
#include <vector>

#include "gtest/gtest.h"

#include "core/orders/least_step.h"
#include "core/orders/outstanding_downloads.h"
#include "tests/core/orders/golden_case.h"
#include "tests/core/orders/random_graph.h"
#include "tests/core/orders/serial_schedule.h"

namespace stepcast::order_search_test {
namespace {

std::vector<int32_t> InGraphOrder(const TransferGraph& graph) {
  std::vector<int32_t> order(graph.downloads().size());
  std::iota(order.begin(), order.end(), 0);
  return order;
}

// Judges by the tests' own schedule.
Span Serial(const TransferGraph& graph, std::span<const int32_t> order) {
  std::vector<int32_t> operations;
  for (const int32_t download : order)
    operations.push_back(graph.downloads()[static_cast<size_t>(download)]);
  return testing::SerialMakespan(graph, operations);
}

TEST(OrderSearchTest, TriesEveryOrderOfFewDownloads) {
  for (const testing::GoldenOrderCase& golden : testing::ReadGoldenOrderCases()) {
    const TransferGraph graph = GraphOf(golden);
    const auto judge = [&](std::span<const int32_t> order, Span) { return Serial(graph, order); };
    const FoundOrder found =
        SearchOrder({InGraphOrder(graph)}, judge, {.evaluations_max = 1'000'000}, NeverStop)
            .value();
    EXPECT_EQ(found.makespan, Nanoseconds(golden.best_makespan_ns));
    EXPECT_TRUE(found.is_best);
    EXPECT_EQ(Serial(graph, found.order), found.makespan);
  }
}

TEST(OrderSearchTest, WalksToTheBestOrderWhereItMayNotTryAll) {
  int32_t reached = 0;
  for (const testing::GoldenOrderCase& golden : testing::ReadGoldenOrderCases()) {
    const TransferGraph graph = GraphOf(golden);
    const auto judge = [&](std::span<const int32_t> order, Span) { return Serial(graph, order); };
    // Fewer than the orders of six downloads, so that of those not all are tried.
    const FoundOrder found =
        SearchOrder({InGraphOrder(graph)}, judge, {.evaluations_max = 700}, NeverStop).value();
    if (found.makespan == Nanoseconds(golden.best_makespan_ns)) ++reached;
  }
  EXPECT_EQ(reached, 40);
}

// A judge that counts how far each download is from its place.
TEST(OrderSearchTest, FindsOneOrderAmongManyBySmallSteps) {
  const int32_t downloads = 40;
  const auto judge = [&](std::span<const int32_t> order, Span) {
    int64_t sum = 1;
    for (size_t place = 0; place < order.size(); ++place) {
      const int64_t off = static_cast<int64_t>(place) - order[place];
      sum += off * off;
    }
    return Span{sum};
  };
  std::vector<int32_t> reversed(static_cast<size_t>(downloads));
  std::iota(reversed.rbegin(), reversed.rend(), 0);
  const OrderSearchOptions options{.evaluations_max = 200'000, .lower_bound = Span{1}, .seed = 3};
  const FoundOrder found = SearchOrder({reversed}, judge, options, NeverStop).value();
  EXPECT_EQ(found.makespan, Span{1});
  EXPECT_TRUE(found.is_best);
  EXPECT_LT(found.evaluations, 200'000);
  EXPECT_EQ(SearchOrder({reversed}, judge, options, NeverStop)->evaluations, found.evaluations);
}

TEST(OrderSearchTest, IsNeverWorseThanAnyStartAndStopsInTime) {
  const std::vector<int32_t> good{2, 0, 1};
  const auto judge = [&](std::span<const int32_t> order, Span) {
    return Span{std::equal(order.begin(), order.end(), good.begin()) ? 5 : 9};
  };
  EXPECT_EQ(SearchOrder({{0, 1, 2}, good}, judge, {}, NeverStop)->order, good);
  const auto cancelled = [] { return absl::CancelledError("enough"); };
  const OrderSearchOptions options{.evaluations_max = 1000,
                                   .cost_of_evaluation = kStopCheckInterval};
  EXPECT_EQ(SearchOrder({{0, 1, 2}}, judge, options, cancelled).status(),
            absl::CancelledError("enough"));
  const FoundOrder spent =
      SearchOrder({{0, 1, 2}}, judge, options, [] { return TimeBudgetSpent(); }).value();
  EXPECT_EQ(spent.makespan, Span{9});
  EXPECT_FALSE(spent.is_best);
}

TEST(OrderBoundTest, NoOrderBeatsIt) {
  int32_t reached = 0;
  for (const testing::GoldenOrderCase& golden : testing::ReadGoldenOrderCases()) {
    const TransferGraph graph = GraphOf(golden);
    const Span bound = LeastMakespan(graph, NeverStop).value();
    EXPECT_LE(bound, Nanoseconds(golden.best_makespan_ns));
    if (bound == Nanoseconds(golden.best_makespan_ns)) ++reached;
  }
  EXPECT_GT(reached, 10);  // and it is not idle
}

}  // namespace
}  // namespace stepcast::order_search_test
