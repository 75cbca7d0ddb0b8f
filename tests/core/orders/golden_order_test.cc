// All golden cases of orders, on the algorithms alone; through the engine:
// tests/core/predict/order_test.cc.
#include <vector>

#include "gtest/gtest.h"

#include "core/orders/least_step.h"
#include "core/orders/outstanding_downloads.h"
#include "core/orders/tic_tac.h"
#include "tests/core/orders/golden_case.h"
#include "tests/core/orders/serial_schedule.h"

namespace stepcast::golden_order_test {
namespace {

class GoldenOrderTest : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    cases_ = new std::vector<testing::GoldenOrderCase>(testing::ReadGoldenOrderCases());
  }
  static void TearDownTestSuite() { delete cases_; }
  inline static const std::vector<testing::GoldenOrderCase>* cases_ = nullptr;
};

TEST_F(GoldenOrderTest, ThereAreFortyOfThem) { EXPECT_EQ(cases_->size(), 40u); }

TEST_F(GoldenOrderTest, ImpendingLoads) {
  for (size_t i = 0; i < cases_->size(); ++i) {
    SCOPED_TRACE(i);
    const testing::GoldenOrderCase& golden = (*cases_)[i];
    const auto groups = DependencyGroups::Build(GraphOf(golden), NeverStop);
    const std::vector<int32_t> counts = ImpendingTransferCounts(*groups);
    ASSERT_EQ(counts.size(), golden.tic_impending_loads.size());
    for (size_t d = 0; d < counts.size(); ++d) {
      EXPECT_EQ(counts[d], golden.tic_impending_loads[d].value_or(INT32_MAX));
    }
  }
}

TEST_F(GoldenOrderTest, TacOrdersAndTheirMakespans) {
  for (size_t i = 0; i < cases_->size(); ++i) {
    SCOPED_TRACE(i);
    const testing::GoldenOrderCase& golden = (*cases_)[i];
    const TransferGraph graph = GraphOf(golden);
    std::vector<int32_t> expected;
    for (const int32_t d : golden.tac_order)
      expected.push_back(graph.downloads()[static_cast<size_t>(d)]);
    const auto order = TacOrder(graph, NeverStop);
    ASSERT_TRUE(order.ok());
    EXPECT_EQ(*order, expected);
    EXPECT_EQ(testing::SerialMakespan(graph, *order), Nanoseconds(golden.tac_makespan_ns));
    EXPECT_EQ(testing::BestSerialMakespan(graph), Nanoseconds(golden.best_makespan_ns));
  }
}

TEST_F(GoldenOrderTest, BoundsAndEfficiencies) {
  for (size_t i = 0; i < cases_->size(); ++i) {
    SCOPED_TRACE(i);
    const testing::GoldenOrderCase& golden = (*cases_)[i];
    std::vector<Span> busy(2);
    for (const testing::GoldenOperation& operation : golden.operations) {
      busy[operation.resource == Resource::kDownlink ? 0 : 1] += Nanoseconds(operation.time_ns);
    }
    const ScheduleBounds bounds = BoundsOf(busy);
    EXPECT_EQ(bounds.upper, Nanoseconds(golden.upper_makespan_ns));
    EXPECT_EQ(bounds.lower, Nanoseconds(golden.lower_makespan_ns));
    EXPECT_NEAR(bounds.Efficiency(Nanoseconds(golden.tac_makespan_ns)),
                golden.tac_scheduling_efficiency, 1e-12);
  }
}

}  // namespace
}  // namespace stepcast::golden_order_test
