#include "client/cli/plot_axis.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <random>

namespace stepcast::client::plot_axis_test {
namespace {

using testing::ElementsAre;

std::vector<std::string> Texts(const PlotAxis& axis) {
  std::vector<std::string> texts;
  for (const double tick : axis.ticks) texts.push_back(axis.TickText(tick));
  return texts;
}

TEST(PlotAxisTest, FromZeroEndsAtTheFirstTickThatIsEnough) {
  EXPECT_THAT(Texts(AxisFromZero(903.2, 6)), ElementsAre("0", "200", "400", "600", "800", "1000"));
  EXPECT_THAT(Texts(AxisFromZero(1000, 6)), ElementsAre("0", "200", "400", "600", "800", "1000"));
  EXPECT_THAT(Texts(AxisFromZero(1.3, 6)), ElementsAre("0.0", "0.5", "1.0", "1.5"));
  EXPECT_THAT(Texts(AxisFromZero(0, 3)), ElementsAre("0.0", "0.5", "1.0"));
  EXPECT_THAT(Texts(AxisFromZero(kAxisMax, 3)), ElementsAre("0", "500000000000", "1000000000000"));
}

TEST(PlotAxisTest, CountsHaveTicksAtWholeNumbers) {
  EXPECT_THAT(Texts(AxisOfCounts(1, 4, 16)), ElementsAre("1", "2", "3", "4"));
  EXPECT_THAT(Texts(AxisOfCounts(1, 16, 5)), ElementsAre("5", "10", "15"));
  EXPECT_THAT(Texts(AxisOfCounts(7, 7, 16)), ElementsAre("6", "7", "8"));
  EXPECT_EQ(AxisOfCounts(7, 7, 16).Fraction(7), 0.5);
}

TEST(PlotAxisTest, TicksAreFewAscendingAndInside) {
  for (uint32_t seed = 0; seed < 2000; ++seed) {
    SCOPED_TRACE(seed);
    std::mt19937 random(seed);
    const int ticks_max = static_cast<int>(random() % 20) + 3;
    const double largest = std::pow(10, random() / 4294967296.0 * 20 - 8);
    const int first = static_cast<int>(random() % 1000) + 1;
    const int last = first + static_cast<int>(random() % 1000);
    const PlotAxis values = AxisFromZero(largest, ticks_max);
    EXPECT_GE(values.to, largest);
    EXPECT_EQ(values.ticks.front(), 0);
    for (const PlotAxis& axis : {values, AxisOfCounts(first, last, ticks_max)}) {
      ASSERT_FALSE(axis.ticks.empty());
      EXPECT_LE(axis.ticks.size(), ticks_max);
      EXPECT_GE(axis.ticks.front(), axis.from);
      EXPECT_LE(axis.ticks.back(), axis.to);
      for (size_t i = 1; i < axis.ticks.size(); ++i) EXPECT_LT(axis.ticks[i - 1], axis.ticks[i]);
      for (const double tick : axis.ticks) {
        EXPECT_NEAR(std::stod(axis.TickText(tick)), tick, (axis.to - axis.from) * 1e-6);
        EXPECT_LE(axis.TickText(tick).size(), 13);
      }
    }
  }
}

}  // namespace
}  // namespace stepcast::client::plot_axis_test
