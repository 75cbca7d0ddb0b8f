#include "core/advise/strategy_search.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <limits>
#include <random>

#include "core/base/time.h"
#include "core/communication/collective_time.h"
#include "tests/core/advise/chain_job.h"

namespace stepcast::strategy_search_test {
namespace {

constexpr double kOptimizerNs = 1000;
constexpr int32_t kWorkers = 4;
const InOrder kExecutor;

double StepNs(double steps_per_second) { return 1e9 * kWorkers / steps_per_second; }

struct Found {
  FoundStrategy best;
  SearchStatistics statistics;
};

StrategyDraft DraftOf(double latency, double share) {
  return {.scenario = RingOf(kWorkers, latency),
          .options = {.steps_per_worker = 12, .warmup_steps = 2, .replications = 1},
          .fused_share = share};
}

Found Search(const Profile& profile, const StrategyDraft& draft) {
  const absl::StatusOr<StrategyQuery> query = ResolveStrategies(profile, draft);
  EXPECT_TRUE(query.ok()) << query.status();
  const FusionCosts costs(profile, query->fused_costs, query->fused_share);
  Replays replays(profile, *query, costs, NeverStop, kExecutor, nullptr);
  const absl::StatusOr<FoundStrategy> found =
      SearchStrategies(profile, *query, costs, {}, replays, NeverStop);
  EXPECT_TRUE(found.ok()) << found.status();
  return {.best = *found, .statistics = replays.statistics()};
}

struct Case {
  ChainJob job;
  double latency = 0;
  double share = 1;
};

Case RandomCase(std::mt19937_64& random, size_t most) {
  return {.job = RandomChain(random, most),
          .latency = std::uniform_real_distribution<double>(0, 2e-6)(random),
          .share = std::uniform_real_distribution<double>(0.5, 1)(random)};
}

double SyncNs(const Profile& profile, const StrategyDraft& draft, int64_t bytes) {
  const Scenario scenario = ResolveStrategies(profile, draft).value().scenario;
  return 1e9 * ToSeconds(CollectiveTimes(scenario).TimeOf(Collective::kAllReduce, bytes));
}

// Every grouping of computations and of gradients, by the obvious chain; the step's end is that of
// the job, in which nothing is random.
double LeastStepNs(const Case& one, const Profile& profile, const StrategyDraft& draft) {
  double least = std::numeric_limits<double>::infinity();
  std::map<int64_t, double> known;
  const Scenario scenario = ResolveStrategies(profile, draft).value().scenario;
  const CollectiveTimes times(scenario);
  const auto sync = [&](int64_t bytes) {
    const auto [at, is_new] = known.try_emplace(bytes, 0);
    if (is_new) at->second = 1e9 * ToSeconds(times.TimeOf(Collective::kAllReduce, bytes));
    return at->second;
  };
  for (uint32_t c = 0; c < (1U << (one.job.lengths_ns.size() - 1)); ++c) {
    for (uint32_t g = 0; g < (1U << (one.job.gradients() - 1)); ++g)
      least = std::min(least, NaiveEnd(one.job, GroupsOfBits(one.job, c, g), one.share, sync));
  }
  return least + kOptimizerNs;
}

TEST(StrategySearchTest, ReplaysAreTheObviousChain) {
  std::mt19937_64 random(11);
  for (int seed = 0; seed < 40; ++seed) {
    const Case one = RandomCase(random, 8);
    const Profile profile = ProfileOf(one.job);
    const StrategyDraft draft = DraftOf(one.latency, one.share);
    const StrategyQuery query = ResolveStrategies(profile, draft).value();
    const FusionCosts costs(profile, {}, one.share);
    Replays replays(profile, query, costs, NeverStop, kExecutor, nullptr);
    const ChainGroups groups =
        GroupsOfBits(one.job, static_cast<uint32_t>(random()), static_cast<uint32_t>(random()));
    Strategy strategy;
    std::vector<int32_t> fused;
    int32_t operation = 0;
    std::vector<int32_t> tensors;
    size_t gradient = 0;
    for (size_t i = 0; i < one.job.lengths_ns.size(); ++i) {
      fused.push_back(operation++);
      if (groups.computations[i] != 0) {
        if (fused.size() > 1) strategy.fused.push_back(fused);
        fused.clear();
      }
      for (size_t g = 0; g < one.job.gradient_bytes[i].size(); ++g) {
        tensors.push_back(operation++);
        if (groups.gradients[gradient++] == 0) continue;
        strategy.tensors.push_back({.gradients = tensors});
        tensors.clear();
      }
    }
    const absl::StatusOr<Replay> replay = replays.Of(strategy);
    ASSERT_TRUE(replay.ok()) << replay.status();
    const double naive = NaiveEnd(one.job, groups, one.share,
                                  [&](int64_t bytes) { return SyncNs(profile, draft, bytes); }) +
                         kOptimizerNs;
    EXPECT_NEAR(StepNs(replay->steps_per_second), naive, 1e-6 * naive) << "seed " << seed;
  }
}

TEST(StrategySearchTest, FindsTheBestOfAllStrategiesOfUpToEightOperations) {
  std::mt19937_64 random(12);
  int best = 0;
  double worst = 1;
  constexpr int kSeeds = 60;
  for (int seed = 0; seed < kSeeds; ++seed) {
    const Case one = RandomCase(random, 8);
    const Profile profile = ProfileOf(one.job);
    const StrategyDraft draft = DraftOf(one.latency, one.share);
    const Found found = Search(profile, draft);
    const double step = StepNs(found.best.steps_per_second);
    const double least = LeastStepNs(one, profile, draft);
    EXPECT_GE(step, least * (1 - 1e-6)) << "seed " << seed;
    best += step <= least * (1 + 1e-6) ? 1 : 0;
    worst = std::max(worst, step / least);
  }
  std::printf("search: %d of %d the best of all strategies, at worst %.6f of it\n", best, kSeeds,
              worst);
  EXPECT_EQ(best, kSeeds);
}

// Without the chain's best to begin with, the loop of decisions alone.
TEST(StrategySearchTest, TheLoopAloneComesNearTheBestOfAllStrategies) {
  std::mt19937_64 random(13);
  int best = 0;
  double worst = 1;
  constexpr int kSeeds = 40;
  for (int seed = 0; seed < kSeeds; ++seed) {
    const Case one = RandomCase(random, 6);
    const Profile profile = ProfileOf(one.job);
    StrategyDraft draft = DraftOf(one.latency, one.share);
    draft.shortcuts.partial_replay = false;
    const double step = StepNs(Search(profile, draft).best.steps_per_second);
    const double least = LeastStepNs(one, profile, draft);
    best += step <= least * (1 + 1e-6) ? 1 : 0;
    worst = std::max(worst, step / least);
  }
  std::printf("loop alone: %d of %d the best of all strategies, at worst %.6f of it\n", best,
              kSeeds, worst);
  EXPECT_GE(best, kSeeds * 3 / 4);
  EXPECT_LE(worst, 1.1);
}

TEST(StrategySearchTest, EachShortcutFindsTheSameOrNearlyAndSavesWork) {
  std::mt19937_64 random(14);
  double worst = 1;
  int64_t with = 0;
  int64_t without_partial = 0;
  for (int seed = 0; seed < 15; ++seed) {
    const Case one = RandomCase(random, 8);
    const Profile profile = ProfileOf(one.job, {1, 1.1, 0.95});
    const StrategyDraft all = DraftOf(one.latency, one.share);
    const Found found = Search(profile, all);
    with += found.statistics.replayed_operations;
    for (const SearchShortcuts shortcuts :
         {SearchShortcuts{.coarsened_view = false}, SearchShortcuts{.partial_replay = false},
          SearchShortcuts{.symmetry = false}}) {
      StrategyDraft draft = all;
      draft.shortcuts = shortcuts;
      const Found other = Search(profile, draft);
      worst = std::max(worst, other.best.steps_per_second / found.best.steps_per_second);
      if (!shortcuts.partial_replay) without_partial += other.statistics.replayed_operations;
    }
  }
  std::printf(
      "shortcuts: at worst %.6f of what is found without one; without partial replay %.1f "
      "times the operations\n",
      1 / worst, static_cast<double>(without_partial) / static_cast<double>(with));
  EXPECT_LE(worst, 1.005);
  EXPECT_GT(without_partial, with);
}

TEST(StrategySearchTest, AMeasuredCostIsUsedAndABadOneIsNot) {
  const ChainJob job{.lengths_ns = {9000, 9000, 9000, 9000}, .gradient_bytes = {{}, {}, {}, {100}}};
  const Profile profile = ProfileOf(job);
  StrategyDraft draft = DraftOf(1e-7, 1);
  draft.fused_share.reset();
  draft.fused_costs = {{.operations = {"compute/1", "compute/2"}, .seconds = 5e-6},
                       {.operations = {"compute/2", "compute/3"}, .seconds = 19e-6}};
  const Found found = Search(profile, draft);
  EXPECT_EQ(found.best.strategy.fused, (std::vector<std::vector<int32_t>>{{1, 2}}));
}

TEST(StrategySearchTest, StopsAndReturnsWhatItWasToldOrTheBestSoFar) {
  std::mt19937_64 random(15);
  const Case one = RandomCase(random, 8);
  const Profile profile = ProfileOf(one.job, {1, 1.1});
  const StrategyQuery query = ResolveStrategies(profile, DraftOf(1e-6, 0.8)).value();
  const FusionCosts costs(profile, {}, 0.8);
  for (const bool is_budget : {false, true}) {
    int asked = 0;
    const auto stop = [&] {
      if (++asked < 40) return absl::OkStatus();
      return is_budget ? TimeBudgetSpent() : absl::CancelledError("enough");
    };
    Replays replays(profile, query, costs, stop, kExecutor, nullptr);
    const auto found = SearchStrategies(profile, query, costs, {}, replays, stop);
    if (is_budget) {
      ASSERT_TRUE(found.ok()) << found.status();
      EXPECT_GT(found->steps_per_second, 0);
    } else {
      EXPECT_EQ(found.status(), absl::CancelledError("enough"));
    }
  }
}

}  // namespace
}  // namespace stepcast::strategy_search_test
