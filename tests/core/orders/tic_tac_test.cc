#include "core/orders/tic_tac.h"

#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "tests/core/orders/naive_order.h"
#include "tests/core/orders/random_graph.h"
#include "tests/core/orders/serial_schedule.h"

namespace stepcast::tic_tac_test {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr OperationKind kDownload = OperationKind::kDownload;
constexpr OperationKind kComputation = OperationKind::kComputation;

// Layer i waits for its download and for layer i - 1. Downloads come in graph order, or against it.
TransferGraph Chain(uint64_t seed, int32_t layers, bool reversed) {
  const TransferGraph source = testing::LayeredGraph(seed, layers, 4);  // for its times
  std::vector<TransferGraph::Operation> operations;
  std::vector<TransferGraph::Dependency> dependencies;
  operations.reserve(2 * static_cast<size_t>(layers));
  for (int32_t i = 0; i < 2 * layers; ++i) {
    operations.push_back(
        {.kind = i < layers ? kDownload : kComputation, .time = source.operation(i).time});
  }
  for (int32_t i = 0; i < layers; ++i) {
    dependencies.push_back({.before = reversed ? layers - 1 - i : i, .after = layers + i});
    if (i > 0) dependencies.push_back({.before = layers + i - 1, .after = layers + i});
  }
  return {std::move(operations), dependencies};
}

// Figure 4a: an operation for each of two downloads, a last one for both.
TransferGraph CaseOne(Span m_a, Span p_a, Span m_b, Span p_b) {
  return {{{.kind = kDownload, .time = m_a},
           {.kind = kDownload, .time = m_b},
           {.kind = kComputation, .time = p_a},
           {.kind = kComputation, .time = p_b},
           {.kind = kComputation, .time = Nanoseconds(1)}},
          {{.before = 0, .after = 2},
           {.before = 1, .after = 3},
           {.before = 2, .after = 4},
           {.before = 3, .after = 4}}};
}

std::vector<int32_t> Tac(const TransferGraph& graph) { return TacOrder(graph, NeverStop).value(); }
std::vector<int32_t> Tic(const TransferGraph& graph) { return TicRanks(graph, NeverStop).value(); }

TEST(TacTest, TwoIndependentDownloadsGoInTheOrderWithTheShorterMakespan) {
  for (uint64_t seed = 0; seed < 300; ++seed) {
    SCOPED_TRACE(seed);
    const TransferGraph times = testing::LayeredGraph(seed, 2, 4);
    const TransferGraph graph = CaseOne(times.operation(0).time, times.operation(1).time,
                                        times.operation(2).time, times.operation(3).time);
    EXPECT_EQ(testing::SerialMakespan(graph, Tac(graph)), testing::BestSerialMakespan(graph));
  }
}

// Eq. 6, not the printed Algorithm 3: the download that frees much goes first.
TEST(TacTest, TheDownloadThatFreesMoreComputationGoesFirst) {
  EXPECT_THAT(Tac(CaseOne(Nanoseconds(10), Nanoseconds(1), Nanoseconds(10), Nanoseconds(9))),
              ElementsAre(1, 0));
  EXPECT_THAT(Tac(CaseOne(Nanoseconds(10), Nanoseconds(9), Nanoseconds(10), Nanoseconds(1))),
              ElementsAre(0, 1));
}

// Figure 4b: nothing is freed by one download alone, so M+ decides.
TEST(TacTest, WhereNothingIsFreedTheLeastImpendingLoadGoesFirst) {
  const TransferGraph graph({{.kind = kDownload, .time = Nanoseconds(4)},
                             {.kind = kDownload, .time = Nanoseconds(1)},
                             {.kind = kDownload, .time = Nanoseconds(2)},
                             {.kind = kDownload, .time = Nanoseconds(1)},
                             {.kind = kComputation, .time = Nanoseconds(1)},
                             {.kind = kComputation, .time = Nanoseconds(1)},
                             {.kind = kComputation, .time = Nanoseconds(1)}},
                            {{.before = 1, .after = 4},
                             {.before = 3, .after = 4},
                             {.before = 4, .after = 5},
                             {.before = 2, .after = 5},
                             {.before = 5, .after = 6},
                             {.before = 0, .after = 6}});
  EXPECT_THAT(Tac(graph), ElementsAre(1, 3, 2, 0));
  EXPECT_THAT(Tic(graph), ElementsAre(2, 0, 1, 0));
}

TEST(TacTest, AChainGoesForwardWhateverItsTimesAndGraphOrder) {
  for (uint64_t seed = 0; seed < 50; ++seed) {
    SCOPED_TRACE(seed);
    const auto layers = static_cast<int32_t>(1 + seed % 20);
    std::vector<int32_t> forward = Tac(Chain(seed, layers, false));
    std::vector<int32_t> backward = Tac(Chain(seed, layers, true));
    for (int32_t i = 0; i < layers; ++i) {
      EXPECT_EQ(forward[static_cast<size_t>(i)], i);
      EXPECT_EQ(backward[static_cast<size_t>(i)], layers - 1 - i);
    }
  }
}

TEST(TacTest, OnAChainTheOrderIsTheBestThereIs) {
  for (uint64_t seed = 0; seed < 20; ++seed) {
    SCOPED_TRACE(seed);
    const TransferGraph graph = Chain(seed, 6, true);
    EXPECT_EQ(testing::SerialMakespan(graph, Tac(graph)), testing::BestSerialMakespan(graph));
  }
}

TEST(TacTest, AgreesWithTheDefinitionsOnRandomGraphs) {
  for (uint64_t seed = 0; seed < 600; ++seed) {
    SCOPED_TRACE(seed);
    const TransferGraph graph = testing::RandomGraph(seed, 70);
    ASSERT_EQ(Tac(graph), testing::NaiveTacOrder(graph));
  }
}

TEST(TacTest, AgreesWithTheDefinitionsOnLayeredNetworks) {
  for (uint64_t seed = 0; seed < 20; ++seed) {
    SCOPED_TRACE(seed);
    const TransferGraph graph = testing::LayeredGraph(seed, 12, 8);
    ASSERT_EQ(Tac(graph), testing::NaiveTacOrder(graph));
  }
}

TEST(TicTest, EqualLoadsAreEqualRanksAndInfiniteOnesTheLast) {
  // 2 and 0 are waited for together, 1 by an operation that needs nothing else, 3 by nobody.
  const TransferGraph graph(
      {{.kind = kDownload},
       {.kind = kDownload},
       {.kind = kDownload},
       {.kind = kDownload},
       {.kind = kComputation},
       {.kind = kComputation}},
      {{.before = 0, .after = 4}, {.before = 2, .after = 4}, {.before = 1, .after = 5}});
  EXPECT_THAT(Tic(graph), ElementsAre(0, 1, 0, 1));
}

TEST(TicTest, LooksAtNoTimes) {
  for (uint64_t seed = 0; seed < 50; ++seed) {
    SCOPED_TRACE(seed);
    const TransferGraph graph = testing::RandomGraph(seed, 60);
    std::vector<TransferGraph::Operation> operations;
    std::vector<TransferGraph::Dependency> dependencies;
    for (int32_t op = 0; op < graph.size(); ++op) {
      operations.push_back({.kind = graph.operation(op).kind, .time = Nanoseconds(op * 37 % 101)});
      for (const int32_t after : graph.dependents(op))
        dependencies.push_back({.before = op, .after = after});
    }
    EXPECT_EQ(Tic(graph), Tic(TransferGraph(std::move(operations), dependencies)));
  }
}

TEST(TicTacTest, AGraphWithoutDownloadsHasAnEmptyOrder) {
  const TransferGraph graph({{.kind = kComputation, .time = Nanoseconds(1)}}, {});
  EXPECT_THAT(Tac(graph), IsEmpty());
  EXPECT_THAT(Tic(graph), IsEmpty());
}

TEST(TicTacTest, StopWhenTold) {
  const TransferGraph graph = testing::LayeredGraph(1, 300, 6);
  int asked = 0;
  const auto third_time = [&asked] {
    return ++asked == 3 ? absl::CancelledError("enough") : absl::OkStatus();
  };
  EXPECT_EQ(TacOrder(graph, third_time).status(), absl::CancelledError("enough"));
  EXPECT_EQ(
      TicRanks(testing::LayeredGraph(1, 500, 20), [] { return absl::CancelledError("enough"); })
          .status(),
      absl::CancelledError("enough"));
}

}  // namespace
}  // namespace stepcast::tic_tac_test
