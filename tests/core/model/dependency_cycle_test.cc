#include "core/model/dependency_cycle.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "core/base/random.h"

namespace stepcast::dependency_cycle_test {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

std::vector<Operation> Graph(const std::vector<std::vector<int32_t>>& waiting_for) {
  std::vector<Operation> operations;
  operations.reserve(waiting_for.size());
  for (const std::vector<int32_t>& before : waiting_for)
    operations.push_back({.resource = Resource::kWorker, .waiting_for = before});
  return operations;
}

TEST(DependencyCycleTest, AGraphWithoutOneHasNone) {
  EXPECT_THAT(FindDependencyCycle({}), IsEmpty());
  EXPECT_THAT(FindDependencyCycle(Graph({{2, 1}, {2}, {}})), IsEmpty());
}

TEST(DependencyCycleTest, IsListedFromItsLowestIndexInTheOrderOfWaiting) {
  EXPECT_THAT(FindDependencyCycle(Graph({{3}, {2}, {3}, {1}})), ElementsAre(1, 2, 3));
}

TEST(DependencyCycleTest, WhatIsAFaultOfItsOwnIsPassedOver) {
  EXPECT_THAT(FindDependencyCycle(Graph({{0, -1}, {2, 99, 0}, {0}})), IsEmpty());
}

// True if `to` can be reached from `from`, the slow and obvious way: the transitive closure.
bool AnyCycle(const std::vector<Operation>& operations) {
  const size_t n = operations.size();
  std::vector<std::vector<bool>> waits(n, std::vector<bool>(n, false));
  for (size_t i = 0; i < n; ++i) {
    for (const int32_t before : operations[i].waiting_for)
      waits[i][static_cast<size_t>(before)] = true;
  }
  for (size_t k = 0; k < n; ++k) {
    for (size_t i = 0; i < n; ++i) {
      for (size_t j = 0; j < n; ++j) waits[i][j] = waits[i][j] || (waits[i][k] && waits[k][j]);
    }
  }
  for (size_t i = 0; i < n; ++i) {
    if (waits[i][i]) return true;
  }
  return false;
}

TEST(DependencyCycleTest, AgreesWithTheTransitiveClosureOnRandomGraphs) {
  int cyclic = 0;
  for (uint64_t seed = 0; seed < 3000; ++seed) {
    SCOPED_TRACE(seed);
    Random random({seed});
    const size_t n = 1 + random.Below(12);
    std::vector<Operation> operations(n);
    for (size_t edges = random.Below(2 * n); edges > 0; --edges) {
      const size_t after = random.Below(n);
      const auto before = static_cast<int32_t>(random.Below(n));
      if (static_cast<size_t>(before) != after) operations[after].waiting_for.push_back(before);
    }
    const std::vector<int32_t> cycle = FindDependencyCycle(operations);
    ASSERT_EQ(!cycle.empty(), AnyCycle(operations));
    if (cycle.empty()) continue;
    ++cyclic;
    ASSERT_GE(cycle.size(), 2u);
    ASSERT_EQ(cycle[0], *std::min_element(cycle.begin(), cycle.end()));
    for (size_t i = 0; i < cycle.size(); ++i) {
      const std::vector<int32_t>& before = operations[static_cast<size_t>(cycle[i])].waiting_for;
      ASSERT_EQ(std::count(cycle.begin(), cycle.end(), cycle[i]), 1);
      ASSERT_NE(std::find(before.begin(), before.end(), cycle[(i + 1) % cycle.size()]),
                before.end());
    }
  }
  EXPECT_GT(cyclic, 300);
  EXPECT_LT(cyclic, 2700);
}

}  // namespace
}  // namespace stepcast::dependency_cycle_test
