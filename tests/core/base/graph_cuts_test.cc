#include "core/base/graph_cuts.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "core/base/index.h"
#include "core/base/random.h"

namespace stepcast::graph_cuts_test {
namespace {

using Targets = std::vector<std::vector<int32_t>>;

// Warshall's closure: reaches[a][b].
std::vector<std::vector<bool>> Reachability(const Targets& targets) {
  std::vector<std::vector<bool>> reaches(targets.size(), std::vector<bool>(targets.size()));
  for (size_t a = 0; a < targets.size(); ++a) {
    for (const int32_t b : targets[a]) reaches[a][Index(b)] = true;
  }
  for (size_t via = 0; via < targets.size(); ++via) {
    for (size_t a = 0; a < targets.size(); ++a) {
      for (size_t b = 0; b < targets.size(); ++b)
        reaches[a][b] = reaches[a][b] || (reaches[a][via] && reaches[via][b]);
    }
  }
  return reaches;
}

TEST(GraphCutsTest, AreTheNodesThatAreComparableToAllOthers) {
  int cuts = 0;
  int others = 0;
  for (uint64_t seed = 1; seed <= 2000; ++seed) {
    SCOPED_TRACE(::testing::Message() << "seed " << seed);
    Random random({seed, 41});
    const size_t size = 1 + random.Below(12);
    std::vector<int32_t> name(size);  // so that numbers are in no topological order
    for (size_t i = 0; i < size; ++i) name[i] = static_cast<int32_t>(i);
    for (size_t i = size; i > 1; --i) std::swap(name[i - 1], name[random.Below(i)]);
    Targets targets(size);
    const uint64_t percent = 10 + random.Below(80);
    for (size_t a = 0; a < size; ++a) {
      for (size_t b = a + 1; b < size; ++b) {
        if (random.Below(100) < percent) targets[Index(name[a])].push_back(name[b]);
      }
    }
    const std::vector<std::vector<bool>> reaches = Reachability(targets);
    TargetLists lists;
    for (const std::vector<int32_t>& own : targets) {
      lists.targets.insert(lists.targets.end(), own.begin(), own.end());
      lists.EndNode();
    }
    const std::vector<bool> found = CutsOf(lists);
    for (size_t node = 0; node < size; ++node) {
      bool expected = true;
      for (size_t other = 0; other < size; ++other)
        expected = expected && (other == node || reaches[node][other] || reaches[other][node]);
      EXPECT_EQ(found[node], expected) << "node " << node;
      (expected ? cuts : others) += 1;
    }
  }
  EXPECT_GT(cuts, 3000);
  EXPECT_GT(others, 3000);
}

}  // namespace
}  // namespace stepcast::graph_cuts_test
