// The reference filling itself, on rates known by hand.
#include "tests/core/network/exact_max_min.h"

#include <gtest/gtest.h>

#include <vector>

namespace stepcast::testing::exact_max_min_test {
namespace {

TEST(ExactMaxMinTest, FlowsOfOneLinkShareItEqually) {
  EXPECT_EQ(MaxMinRates({Exact(1)}, {{0}, {0}, {0}}),
            (std::vector<Exact>{Exact(1, 3), Exact(1, 3), Exact(1, 3)}));
}

TEST(ExactMaxMinTest, AFlowHeldBackElsewhereLeavesItsShare) {
  // Links: a hub of 1; workers of 1/4 and 1.
  EXPECT_EQ(MaxMinRates({Exact(1), Exact(1, 4), Exact(1)}, {{0, 1}, {0, 2}}),
            (std::vector<Exact>{Exact(1, 4), Exact(3, 4)}));
}

TEST(ExactMaxMinTest, NoFlowsNoRates) { EXPECT_TRUE(MaxMinRates({Exact(1)}, {}).empty()); }

}  // namespace
}  // namespace stepcast::testing::exact_max_min_test
