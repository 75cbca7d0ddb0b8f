#include "client/cli/load_steps.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

namespace stepcast::client::load_steps_test {
namespace {

using testing::ElementsAre;

TEST(LoadStepsTest, TakesNumbersInTheirOrder) {
  EXPECT_THAT(*ParseConcurrencies("1,64,8"), ElementsAre(1, 64, 8));
  EXPECT_THAT(*ParseConcurrencies("10000"), ElementsAre(10000));
  EXPECT_THAT(*ParseRates("1000,0.5,1e6"), ElementsAre(1000, 0.5, 1e6));
}

TEST(LoadStepsTest, RefusesTheRest) {
  for (const char* text :
       {"", ",", "1,", "0", "-1", "1.5", "a", "1 2", "10001", "99999999999", "1-8"})
    EXPECT_FALSE(ParseConcurrencies(text).ok()) << text;
  for (const char* text :
       {"", ",", "1,", "0", "-1", "nan", "inf", "1e-300", "1e7", "1000/s", "0x10"})
    EXPECT_FALSE(ParseRates(text).ok()) << text;
}

TEST(LoadStepsTest, TakesAtMost64) {
  std::string text = "1";
  for (int i = 1; i < 64; ++i) text += ",1";
  EXPECT_EQ(ParseConcurrencies(text)->size(), 64);
  EXPECT_FALSE(ParseConcurrencies(text + ",1").ok());
}

}  // namespace
}  // namespace stepcast::client::load_steps_test
