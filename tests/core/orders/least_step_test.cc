#include "core/orders/least_step.h"

#include <vector>

#include "gtest/gtest.h"

namespace stepcast::least_step_test {
namespace {

TEST(ScheduleBoundsTest, EverythingInTurnAndTheBusiestResourceAlone) {
  const ScheduleBounds bounds =
      BoundsOf(std::vector<Span>{Nanoseconds(30), Nanoseconds(50), Nanoseconds(20)});
  EXPECT_EQ(bounds.upper, Nanoseconds(100));
  EXPECT_EQ(bounds.lower, Nanoseconds(50));
  EXPECT_DOUBLE_EQ(bounds.SpeedupBound(), 1);  // twice as fast
  EXPECT_DOUBLE_EQ(bounds.Efficiency(Nanoseconds(50)), 1);
  EXPECT_DOUBLE_EQ(bounds.Efficiency(Nanoseconds(100)), 0);
  EXPECT_DOUBLE_EQ(bounds.Efficiency(Nanoseconds(60)), 0.8);
}

TEST(ScheduleBoundsTest, OneResourceLeavesNothingToGain) {
  const ScheduleBounds bounds = BoundsOf(std::vector<Span>{Nanoseconds(30), Nanoseconds(0)});
  EXPECT_EQ(bounds.SpeedupBound(), 0);
  EXPECT_EQ(bounds.Efficiency(Nanoseconds(30)), 1);
}

TEST(ScheduleBoundsTest, NothingAtAllIsNoDivisionByZero) {
  const ScheduleBounds bounds = BoundsOf({});
  EXPECT_EQ(bounds.SpeedupBound(), 0);
  EXPECT_EQ(bounds.Efficiency(Span{}), 1);
}

}  // namespace
}  // namespace stepcast::least_step_test
