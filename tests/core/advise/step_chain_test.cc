#include "core/advise/step_chain.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <limits>
#include <random>

#include "core/base/index.h"
#include "tests/core/advise/chain_job.h"

namespace stepcast::step_chain_test {
namespace {

// Seconds a collective takes: a start, and its bytes.
struct Affine {
  double start = 0;
  double per_byte = 1e-9;

  double operator()(double bytes) const { return start + per_byte * bytes; }
};

Affine RandomAffine(std::mt19937_64& random) {
  return {.start = 1e-9 * std::uniform_real_distribution<double>(0, 20'000)(random)};
}

// What is before two neighbours of a chain, and they: seconds.
struct Neighbours {
  double sent = 0;     // the end of all tensors before
  double start = 0;    // of the earlier computation
  double earlier = 0;  // computations
  double later = 0;
  double fused = 0;
  double bytes_earlier = 0;
  double bytes_later = 0;
  Affine sync;

  double End(bool fuses_computations, bool fuses_tensors) const {
    const double first = start + (fuses_computations ? fused : earlier);
    const double second = start + (fuses_computations ? fused : earlier + later);
    if (fuses_tensors) return std::max(second, sent) + sync(bytes_earlier + bytes_later);
    return std::max(second, std::max(first, sent) + sync(bytes_earlier)) + sync(bytes_later);
  }
};

Neighbours RandomNeighbours(std::mt19937_64& random) {
  const auto some = [&](double most) {
    return 1e-9 * std::uniform_real_distribution<double>(0, most)(random);
  };
  Neighbours two{.start = some(50'000),
                 .earlier = some(20'000),
                 .later = some(20'000),
                 .bytes_earlier = 1e9 * some(20'000),
                 .bytes_later = 1e9 * some(20'000),
                 .sync = RandomAffine(random)};
  two.sent = some(90'000);
  two.fused = (two.earlier + two.later) * std::uniform_real_distribution<double>(0.2, 1)(random);
  return two;
}

constexpr double kHair = 1e-15;

TEST(TheoremTest, FirstHoldsWhereComputationIsWaitedFor) {
  std::mt19937_64 random(1);
  int held = 0;
  int failed_elsewhere = 0;
  for (int i = 0; i < 200'000; ++i) {
    const Neighbours two = RandomNeighbours(random);
    const double apart = two.End(false, false);
    const double fused = two.End(true, false);
    const bool pays =
        FusingOperationsPays(two.sync(two.bytes_earlier), two.earlier, two.later, two.fused);
    const double sent = std::max(two.start + two.earlier, two.sent) + two.sync(two.bytes_earlier);
    const bool is_computation_bound =
        sent <= two.start + two.earlier + two.later && two.sent <= two.start + two.fused;
    if (!is_computation_bound) {
      failed_elsewhere += pays != (fused <= apart + kHair) ? 1 : 0;
      continue;
    }
    ++held;
    EXPECT_EQ(pays, fused <= apart + kHair) << "case " << i;
  }
  EXPECT_GT(held, 2000);
  EXPECT_GT(failed_elsewhere, 0) << "what it rests on is needed";
}

TEST(TheoremTest, SecondHoldsWhereTheTensorBeforeIsSentWhenTheLaterOneIsReady) {
  std::mt19937_64 random(2);
  int held = 0;
  for (int i = 0; i < 200'000; ++i) {
    const Neighbours two = RandomNeighbours(random);
    const double ready = two.start + two.earlier + two.later;
    const double end_before =
        std::max(two.start + two.earlier, two.sent) + two.sync(two.bytes_earlier);
    const bool pays =
        FusingTensorsPays(end_before, ready, two.sync(two.bytes_earlier + two.bytes_later),
                          two.sync(two.bytes_later));
    const double apart = two.End(false, false);
    const double fused = two.End(false, true);
    if (two.sent > ready) {
      // Both are late anyway: a start is saved, and the theorem says so.
      EXPECT_LE(fused, apart + kHair) << "case " << i;
      EXPECT_TRUE(pays || two.sync.start < 1e-13) << "case " << i;
      continue;
    }
    ++held;
    if (std::abs(fused - apart) > kHair) {
      EXPECT_EQ(pays, fused < apart) << "case " << i;
    }
  }
  EXPECT_GT(held, 2000);
}

TEST(TheoremTest, ThirdHoldsWhereFusedIsNoSlowerAndStartsAreSaved) {
  std::mt19937_64 random(3);
  for (int i = 0; i < 200'000; ++i) {
    const Neighbours two = RandomNeighbours(random);
    EXPECT_LE(two.End(true, true), two.End(true, false) + kHair) << "case " << i;
    EXPECT_LE(two.End(true, true), two.End(false, true) + kHair) << "case " << i;
  }
  // A fused operation that is slower can make both worse than tensors alone.
  Neighbours slow{
      .earlier = 1e-6, .later = 1e-6, .fused = 3e-6, .bytes_earlier = 1e3, .bytes_later = 1e3};
  EXPECT_GT(slow.End(true, true), slow.End(false, true));
}

// A chain of a job with costs by a share, and tensors at `sync`.
class JobChain {
 public:
  JobChain(const ChainJob& job, double share, Affine sync)
      : profile_(ProfileOf(job)),
        costs_(profile_, {}, share),
        sync_(
            [sync](const SyncTimes::Range& range, int32_t partitions) -> absl::StatusOr<double> {
              return partitions * sync(static_cast<double>(range.bytes) / partitions);
            },
            /*max_partitions=*/16, /*by_bytes=*/true),
        chain_(profile_, ReadySeconds(job), costs_, sync_) {}

  const StepChain& chain() const { return chain_; }
  const Profile& profile() const { return profile_; }

  // With the optimizer's as a group of its own.
  static ChainGrouping GroupingOf(const ChainGroups& groups) {
    ChainGrouping grouping{.computation_ends = groups.computations,
                           .gradient_ends = groups.gradients};
    grouping.computation_ends.push_back(1);
    return grouping;
  }

 private:
  static std::vector<double> ReadySeconds(const ChainJob& job) {
    std::vector<double> ready;
    double now = 0;
    for (size_t i = 0; i < job.lengths_ns.size(); ++i) {
      now += 1e-9 * static_cast<double>(job.lengths_ns[i]);
      ready.insert(ready.end(), 1 + job.gradient_bytes[i].size(), now);
    }
    ready.push_back(now);
    return ready;
  }

  Profile profile_;
  FusionCosts costs_;
  SyncTimes sync_;
  StepChain chain_;
};

constexpr double kOptimizer = 1e-6;
constexpr double kTick = 2e-9;  // the naive chain rounds fused lengths to nanoseconds

TEST(StepChainTest, TimesAreThoseOfTheObviousChain) {
  std::mt19937_64 random(4);
  for (int seed = 0; seed < 500; ++seed) {
    const ChainJob job = RandomChain(random, 8);
    const Affine sync = RandomAffine(random);
    const double share = std::uniform_real_distribution<double>(0.3, 1)(random);
    const JobChain of_job(job, share, sync);
    const ChainGroups groups =
        GroupsOfBits(job, static_cast<uint32_t>(random()), static_cast<uint32_t>(random()));
    const double naive = NaiveEnd(
        job, groups, share, [&](int64_t bytes) { return 1e9 * sync(static_cast<double>(bytes)); });
    EXPECT_NEAR(of_job.chain().TimesOf(JobChain::GroupingOf(groups)).makespan,
                1e-9 * naive + kOptimizer, 10 * kTick)
        << "seed " << seed;
  }
}

// The least of all groups of computations and all groups of gradients, each independent.
double ExhaustiveLeast(const ChainJob& job, double share, const Affine& sync) {
  double least = std::numeric_limits<double>::infinity();
  for (uint32_t computations = 0; computations < (1U << (job.lengths_ns.size() - 1));
       ++computations) {
    for (uint32_t gradients = 0; gradients < (1U << (job.gradients() - 1)); ++gradients) {
      least = std::min(
          least, NaiveEnd(job, GroupsOfBits(job, computations, gradients), share,
                          [&](int64_t bytes) { return 1e9 * sync(static_cast<double>(bytes)); }));
    }
  }
  return 1e-9 * least + kOptimizer;
}

TEST(StepChainTest, TheBestIsTheLeastOfAllGroupings) {
  std::mt19937_64 random(5);
  double worst = 1;
  for (int seed = 0; seed < 150; ++seed) {
    const ChainJob job = RandomChain(random, 8);
    const Affine sync = RandomAffine(random);
    const double share = seed % 3 == 0 ? 1 : std::uniform_real_distribution<double>(0.5, 1)(random);
    const JobChain of_job(job, share, sync);
    const absl::StatusOr<ChainGrouping> best =
        of_job.chain().Best(of_job.chain().Alone(), NeverStop);
    ASSERT_TRUE(best.ok()) << best.status();
    const double found = of_job.chain().TimesOf(*best).makespan;
    EXPECT_NEAR(found, ExhaustiveLeast(job, share, sync), 10 * kTick) << "seed " << seed;
    // Coarser groups can be no better: what has no gradient might go with what is before it.
    const absl::StatusOr<ChainGrouping> coarse =
        of_job.chain().Best(of_job.chain().Coarsened(), NeverStop);
    ASSERT_TRUE(coarse.ok());
    const double of_coarse = of_job.chain().TimesOf(*coarse).makespan;
    EXPECT_GE(of_coarse, found - 10 * kTick) << "seed " << seed;
    worst = std::max(worst, of_coarse / found);
  }
  std::printf("coarsened view: at worst %.4f of the best there is\n", worst);
  EXPECT_LE(worst, 1.1);
}

TEST(StepChainTest, DecisionsAreNoWorseThanNoneAndOftenTheBest) {
  std::mt19937_64 random(6);
  int best = 0;
  int no_worse = 0;
  constexpr int kSeeds = 300;
  double worst = 1;
  for (int seed = 0; seed < kSeeds; ++seed) {
    const ChainJob job = RandomChain(random, 7);
    const Affine sync = RandomAffine(random);
    const double share = std::uniform_real_distribution<double>(0.5, 1)(random);
    const JobChain of_job(job, share, sync);
    ChainGrouping grouping = of_job.chain().Coarsened();
    const double before = of_job.chain().TimesOf(grouping).makespan;
    double least = before;
    for (int round = 0; round < 10; ++round) {
      const absl::StatusOr<ChainGrouping> decided = of_job.chain().Decide(grouping, NeverStop);
      ASSERT_TRUE(decided.ok());
      if (*decided == grouping) break;
      grouping = *decided;
      least = std::min(least, of_job.chain().TimesOf(grouping).makespan);
    }
    const double exhaustive = ExhaustiveLeast(job, share, sync);
    no_worse += of_job.chain().TimesOf(grouping).makespan <= before + kTick ? 1 : 0;
    best += least <= exhaustive + 10 * kTick ? 1 : 0;
    worst = std::max(worst, least / exhaustive);
    EXPECT_GE(least, exhaustive - 10 * kTick);
  }
  std::printf(
      "decisions alone: %d of %d the best there is, at worst %.4f of it; %d no worse than "
      "none\n",
      best, kSeeds, worst, no_worse);
  EXPECT_GE(best, kSeeds * 2 / 5);
  EXPECT_GE(no_worse, kSeeds * 9 / 10);
  EXPECT_LE(worst, 1.5);
}

TEST(StepChainTest, WhatComesAfterTheLastGradientIsNeverFusedWithWhatItWaitsFor) {
  const ChainJob job{.lengths_ns = {1000, 1000}, .gradient_bytes = {{100}, {100}}};
  const JobChain of_job(job, 0.5, {});
  EXPECT_FALSE(of_job.chain().SecondsOf(1, 3).has_value());
  EXPECT_NEAR(*of_job.chain().SecondsOf(0, 2), 1.5e-6, 1e-15);
  ChainGrouping all = of_job.chain().Alone();
  all.computation_ends = {0, 0, 1};
  EXPECT_EQ(of_job.chain().TimesOf(all).makespan, std::numeric_limits<double>::infinity());
}

TEST(StepChainTest, StrategiesAndGroupingsAreTheSame) {
  std::mt19937_64 random(7);
  for (int seed = 0; seed < 100; ++seed) {
    const ChainJob job = RandomChain(random, 8);
    const JobChain of_job(job, 0.8, RandomAffine(random));
    const ChainGrouping grouping = JobChain::GroupingOf(
        GroupsOfBits(job, static_cast<uint32_t>(random()), static_cast<uint32_t>(random())));
    const Strategy strategy = of_job.chain().StrategyOf(grouping);
    EXPECT_EQ(of_job.chain().GroupingOf(strategy), grouping) << "seed " << seed;
  }
}

TEST(SyncTimesTest, TheBestIsTheFewestPartsOfThoseAsGoodAndEachIsMeasuredOnce) {
  int64_t measured = 0;
  SyncTimes sync(
      [&](const SyncTimes::Range& range, int32_t partitions) -> absl::StatusOr<double> {
        ++measured;
        return static_cast<double>(range.bytes) / std::min(partitions, 4);
      },
      8, /*by_bytes=*/true);
  EXPECT_EQ(sync.BestOf({.first = 0, .count = 1, .bytes = 1000}).partitions, 4);
  const int64_t once = measured;
  EXPECT_EQ(sync.BestOf({.first = 5, .count = 2, .bytes = 1000}).partitions, 4);
  EXPECT_EQ(measured, once);
  EXPECT_EQ(sync.BestOf({.first = 0, .count = 1, .bytes = 2}).partitions, 2) << "no empty parts";
}

TEST(SyncTimesTest, AFailureIsKept) {
  SyncTimes sync([](const SyncTimes::Range&, int32_t) { return absl::CancelledError("enough"); }, 1,
                 true);
  EXPECT_EQ(sync.SecondsOf({.first = 0, .count = 1, .bytes = 9}), 0);
  EXPECT_EQ(sync.status(), absl::CancelledError("enough"));
}

TEST(StepChainTest, StopsWhenToldTo) {
  std::mt19937_64 random(8);
  ChainJob job;
  for (int i = 0; i < 300; ++i) {
    job.lengths_ns.push_back(1000);
    job.gradient_bytes.push_back({1000});
  }
  const JobChain of_job(job, 0.8, {});
  const auto stop = [] { return absl::CancelledError("stop"); };
  EXPECT_EQ(of_job.chain().Best(of_job.chain().Alone(), stop).status(),
            absl::CancelledError("stop"));
  EXPECT_EQ(of_job.chain().Decide(of_job.chain().Alone(), stop).status(),
            absl::CancelledError("stop"));
}

}  // namespace
}  // namespace stepcast::step_chain_test
