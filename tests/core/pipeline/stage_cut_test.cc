#include "core/pipeline/stage_cut.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <vector>

#include "core/base/random.h"

namespace stepcast::stage_cut_test {
namespace {

// The slowest stage of the best of all cuts, each tried.
int64_t BestOfAll(const std::vector<ChainLink>& chain, size_t stages, size_t begin) {
  int64_t best = std::numeric_limits<int64_t>::max();
  int64_t cost = 0;
  for (size_t end = begin + 1; end + stages - 1 <= chain.size(); ++end) {
    cost += chain[end - 1].cost_ns;
    if (stages == 1 && end < chain.size()) continue;
    if (stages == 1) return cost;
    best = std::min(best, std::max(cost, BestOfAll(chain, stages - 1, end)));
  }
  return best;
}

int64_t Slowest(const std::vector<ChainLink>& chain, const std::vector<size_t>& firsts) {
  int64_t slowest = 0;
  for (size_t stage = 0; stage < firsts.size(); ++stage) {
    const size_t end = stage + 1 < firsts.size() ? firsts[stage + 1] : chain.size();
    int64_t cost = 0;
    for (size_t i = firsts[stage]; i < end; ++i) cost += chain[i].cost_ns;
    slowest = std::max(slowest, cost);
  }
  return slowest;
}

TEST(StageCutTest, NoCutHasAFasterSlowestStage) {
  for (uint64_t seed = 0; seed < 300; ++seed) {
    SCOPED_TRACE(seed);
    Random random({seed});
    std::vector<ChainLink> chain(1 + random.Below(9));
    for (ChainLink& link : chain)
      link = {.cost_ns = static_cast<int64_t>(random.Below(6)), .output_bytes = 1};
    const size_t stages = 1 + random.Below(chain.size());
    const std::vector<size_t> firsts = CutIntoStages(chain, stages);
    ASSERT_EQ(firsts.size(), stages);
    EXPECT_EQ(firsts[0], 0U);
    EXPECT_TRUE(std::is_sorted(firsts.begin(), firsts.end()));
    EXPECT_EQ(std::adjacent_find(firsts.begin(), firsts.end()), firsts.end());
    EXPECT_LT(firsts.back(), chain.size());
    EXPECT_EQ(Slowest(chain, firsts), BestOfAll(chain, stages, 0));
  }
}

TEST(StageCutTest, OfEquallyFastCutsTheOneThatSendsLess) {
  EXPECT_EQ(CutIntoStages({{5, 900}, {0, 100}, {0, 500}, {5, 0}}, 2), (std::vector<size_t>{0, 2}));
}

}  // namespace
}  // namespace stepcast::stage_cut_test
