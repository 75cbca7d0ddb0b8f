#include "tests/bench/rounds.h"

#include <string>
#include <vector>

#include "gtest/gtest.h"

namespace stepcast::bench::rounds_test {
namespace {

TEST(SpreadTest, FewValuesSpreadFromTheLeastToTheMost) {
  const Spread spread = SpreadOf({7, 1, 4, 2});
  EXPECT_DOUBLE_EQ(spread.median, 3);
  EXPECT_DOUBLE_EQ(spread.low, 1);
  EXPECT_DOUBLE_EQ(spread.high, 7);
}

TEST(SpreadTest, OneValueIsItsOwnSpread) {
  const Spread spread = SpreadOf({5});
  EXPECT_DOUBLE_EQ(spread.median, 5);
  EXPECT_DOUBLE_EQ(spread.low, 5);
  EXPECT_DOUBLE_EQ(spread.high, 5);
}

TEST(SpreadTest, ManyValuesSpreadFromTheTenthPercentileToTheNinetieth) {
  std::vector<double> values;
  for (int i = 20; i >= 0; --i) values.push_back(i);
  const Spread spread = SpreadOf(values);
  EXPECT_DOUBLE_EQ(spread.median, 10);
  EXPECT_DOUBLE_EQ(spread.low, 2);
  EXPECT_DOUBLE_EQ(spread.high, 18);
}

TEST(TakeTurnsTest, BothSidesAlternateAndTheFirstTurnDoesNotCount) {
  std::string turns;
  double ours = 0;
  const auto run_ours = [&] {
    turns += 'o';
    return Cost{.cpu_ns = ++ours * 10, .operations = 10};
  };
  const auto run_theirs = [&] {
    turns += 't';
    return Cost{.cpu_ns = 60, .operations = 2};
  };
  const std::vector<Round> rounds = TakeTurns(2, run_ours, run_theirs, TheirsOverOurs);
  EXPECT_EQ(turns, "ototot");
  ASSERT_EQ(rounds.size(), 2U);
  EXPECT_DOUBLE_EQ(rounds[0].ours, 2);
  EXPECT_DOUBLE_EQ(rounds[0].theirs, 30);
  EXPECT_DOUBLE_EQ(rounds[0].value, 15);
  EXPECT_DOUBLE_EQ(rounds[1].value, 10);
}

TEST(ValueTest, SidesGoWhereTheNameSays) {
  EXPECT_DOUBLE_EQ(TheirsOverOurs(2, 6), 3);
  EXPECT_DOUBLE_EQ(OursOverTheirs(2, 8), 0.25);
  EXPECT_DOUBLE_EQ(OursMinusTheirs(7, 5), 2);
}

}  // namespace
}  // namespace stepcast::bench::rounds_test
