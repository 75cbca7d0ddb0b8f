#include "core/pipeline/stage_cut.h"

#include <algorithm>
#include <limits>

namespace stepcast {
namespace {

// The best of the prefixes so far: the cost of the slowest stage, or bytes at the cuts.
using Row = std::vector<int64_t>;
constexpr int64_t kImpossible = std::numeric_limits<int64_t>::max() / 2;

Row PrefixCosts(const std::vector<ChainLink>& chain) {
  Row costs(chain.size() + 1);
  for (size_t i = 0; i < chain.size(); ++i) costs[i + 1] = costs[i] + chain[i].cost_ns;
  return costs;
}

// The least that the slowest of so many stages can take.
int64_t SlowestStage(const Row& costs, size_t stages) {
  Row best = costs;
  for (size_t stage = 1; stage < stages; ++stage) {
    Row next(costs.size(), kImpossible);
    for (size_t end = stage + 1; end < costs.size(); ++end)
      for (size_t begin = end - 1; begin >= stage; --begin) {
        // With an earlier cut this stage alone takes more.
        if (costs[end] - costs[begin] >= next[end]) break;
        next[end] = std::min(next[end], std::max(best[begin], costs[end] - costs[begin]));
      }
    best = std::move(next);
  }
  return best.back();
}

}  // namespace

std::vector<size_t> CutIntoStages(const std::vector<ChainLink>& chain, size_t stages) {
  const Row costs = PrefixCosts(chain);
  const int64_t slowest = SlowestStage(costs, stages);
  // By stages and links before: the fewest bytes where no stage takes more than that.
  std::vector<Row> bytes(stages + 1, Row(costs.size(), kImpossible));
  std::vector<std::vector<size_t>> cut_of(stages + 1, std::vector<size_t>(costs.size()));
  bytes[0][0] = 0;
  for (size_t stage = 1; stage <= stages; ++stage)
    for (size_t end = stage; end < costs.size(); ++end)
      for (size_t begin = end; begin-- > stage - 1;) {
        if (costs[end] - costs[begin] > slowest) break;
        const int64_t sent = begin == 0 ? 0 : chain[begin - 1].output_bytes;
        if (bytes[stage - 1][begin] == kImpossible) continue;
        if (bytes[stage - 1][begin] + sent > bytes[stage][end]) continue;
        bytes[stage][end] = bytes[stage - 1][begin] + sent;
        cut_of[stage][end] = begin;
      }
  std::vector<size_t> firsts(stages);
  size_t end = chain.size();
  for (size_t stage = stages; stage > 0; --stage) end = firsts[stage - 1] = cut_of[stage][end];
  return firsts;
}

}  // namespace stepcast
