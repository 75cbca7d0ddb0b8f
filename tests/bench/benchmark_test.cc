#include "tests/bench/benchmark.h"

#include <string>

#include "gtest/gtest.h"

#include "tests/bench/registry.h"

namespace stepcast::bench::benchmark_test {
namespace {

TEST(GoalTest, AMinimumHoldsInItsDirectionAndAtItself) {
  EXPECT_TRUE(AtLeast(3, 6).Holds(3));
  EXPECT_FALSE(AtLeast(3, 6).Holds(2.9));
  EXPECT_TRUE(AtMost(3, 1).Holds(3));
  EXPECT_FALSE(AtMost(3, 1).Holds(3.1));
}

TEST(RowTest, ARowHoldsByTheMedianOfItsRounds) {
  const Benchmark benchmark{.name = "a", .goal = AtLeast(10, 20)};
  const Row row = RowOf(benchmark, {.rounds = {{1, 30, 30}, {2, 18, 9}, {3, 36, 12}}, .note = "n"});
  EXPECT_DOUBLE_EQ(row.ratio.median, 12);
  EXPECT_DOUBLE_EQ(row.ratio.low, 9);
  EXPECT_DOUBLE_EQ(row.ratio.high, 30);
  EXPECT_DOUBLE_EQ(row.ours, 2);
  EXPECT_DOUBLE_EQ(row.theirs, 30);
  EXPECT_TRUE(row.holds);
  EXPECT_EQ(row.note, "n");
}

TEST(RegistryTest, AFilterPicksByPartOfTheNameAndKeepsTheOrder) {
  Registry registry;
  for (const char* name : {"b.one", "a.two", "b.three"}) registry.Add({.name = name});
  EXPECT_EQ(registry.Matching("").size(), 3U);
  const std::vector<Benchmark> matching = registry.Matching("b.");
  ASSERT_EQ(matching.size(), 2U);
  EXPECT_EQ(matching[0].name, "b.one");
  EXPECT_EQ(matching[1].name, "b.three");
}

}  // namespace
}  // namespace stepcast::bench::benchmark_test
