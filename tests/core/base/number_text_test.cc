#include "core/base/number_text.h"

#include <gtest/gtest.h>

#include <limits>

namespace stepcast::number_text_test {
namespace {

TEST(NumberTextTest, HasFourDigitsAndAllBeforeThePoint) {
  EXPECT_EQ(NumberText(0), "0");
  EXPECT_EQ(NumberText(0.071364), "0.07136");
  EXPECT_EQ(NumberText(680.54), "680.5");
  EXPECT_EQ(NumberText(180), "180");
  EXPECT_EQ(NumberText(9999.4), "9999");
  EXPECT_EQ(NumberText(9999.6), "10000");
  EXPECT_EQ(NumberText(13409.2), "13409");
  EXPECT_EQ(NumberText(-1234567.4), "-1234567");
  EXPECT_EQ(NumberText(1.5e-7), "1.5e-07");
  EXPECT_EQ(NumberText(1e300), "1e+300");
  EXPECT_EQ(NumberText(std::numeric_limits<double>::infinity()), "inf");
}

}  // namespace
}  // namespace stepcast::number_text_test
