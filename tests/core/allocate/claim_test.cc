#include "core/allocate/claim.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <string>

#include "core/base/error.h"
#include "core/base/random.h"

namespace stepcast::claim_test {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Optional;

using Chosen = std::optional<std::vector<size_t>>;

// The worth of a choice, in the order in which it counts.
struct Worth {
  std::vector<double> merits;
  int32_t workers = 0;
  int32_t servers = 0;
};

Worth WorthOf(const std::vector<Claim>& claims, const std::vector<size_t>& chosen, MeritRule rule) {
  Worth worth;
  double total = 0;
  for (size_t i = 0; i < claims.size(); ++i) {
    const Share& share = claims[i][chosen[i]];
    worth.merits.push_back(share.merit);
    total += share.merit;
    worth.workers += share.workers;
    worth.servers += share.servers;
  }
  std::sort(worth.merits.begin(), worth.merits.end());
  if (rule == MeritRule::kTotal) worth.merits = {total};
  return worth;
}

bool Fits(const Worth& worth, const ClusterCapacity& capacity) {
  return worth.workers <= capacity.workers &&
         (!capacity.servers || worth.servers <= *capacity.servers);
}

// Tries all choices.
std::optional<Worth> BestByTrying(const std::vector<Claim>& claims, const ClusterCapacity& capacity,
                                  MeritRule rule) {
  std::optional<Worth> best;
  std::vector<size_t> chosen(claims.size(), 0);
  for (;;) {
    const Worth worth = WorthOf(claims, chosen, rule);
    if (Fits(worth, capacity) &&
        (!best || worth.merits > best->merits ||
         (worth.merits == best->merits && worth.workers < best->workers))) {
      best = worth;
    }
    size_t i = 0;
    while (i < claims.size() && ++chosen[i] == claims[i].size()) chosen[i++] = 0;
    if (i == claims.size()) return best;
  }
}

// Merits of any shape: steps, dips and accelerating curves, whole numbers in half of the cases, so
// that ties are common.
Claim RandomClaim(Random& random, int32_t max_workers, bool servers_vary, bool whole) {
  const auto gang = static_cast<int32_t>(1 + random.Below(3));
  const auto min = static_cast<int32_t>(random.Below(3));
  const uint64_t shape = random.Below(4);
  Claim claim;
  if (min == 0) claim.push_back({});
  for (int32_t workers = std::max(1, min) * gang; workers <= max_workers; workers += gang) {
    for (int32_t servers = 1; servers <= (servers_vary ? 2 : 1); ++servers) {
      double merit = random.Unit() * 4;
      if (shape == 1) merit += std::pow(workers, 1.5);                   // more than in proportion
      if (shape == 2) merit += workers >= max_workers / 2 ? 20.0 : 0.0;  // one step
      if (shape == 3) merit += 10.0 * workers / (workers + 3.0);  // concave but for the noise
      merit *= 0.7 + 0.3 * servers;
      claim.push_back(
          {.workers = workers, .servers = servers, .merit = whole ? std::floor(merit) : merit});
    }
    if (random.Below(6) == 0) break;
  }
  if (claim.empty()) claim.push_back({.workers = max_workers, .servers = 1, .merit = 1});
  return claim;
}

struct Instance {
  std::vector<Claim> claims;
  ClusterCapacity capacity;
};

Instance RandomInstance(uint64_t seed) {
  Random random({seed, 77});
  Instance instance;
  instance.capacity.workers = static_cast<int32_t>(1 + random.Below(24));
  const bool servers_vary = random.Below(2) == 0;
  const bool whole = random.Below(2) == 0;
  if (servers_vary) instance.capacity.servers = static_cast<int32_t>(2 + random.Below(7));
  const uint64_t jobs = 1 + random.Below(5);
  const auto most = static_cast<int32_t>(servers_vary || jobs == 5 ? 8 : 14);
  for (uint64_t i = 0; i < jobs; ++i) {
    instance.claims.push_back(
        RandomClaim(random, std::min(most, instance.capacity.workers), servers_vary, whole));
  }
  return instance;
}

void ExpectBest(const Instance& instance, MeritRule rule) {
  const auto chosen = ShareExactly(instance.claims, instance.capacity, rule, NeverStop);
  ASSERT_TRUE(chosen.ok()) << chosen.status();
  const std::optional<Worth> best = BestByTrying(instance.claims, instance.capacity, rule);
  ASSERT_EQ(chosen->has_value(), best.has_value());
  if (!best) return;
  const Worth worth = WorthOf(instance.claims, **chosen, rule);
  EXPECT_TRUE(Fits(worth, instance.capacity));
  ASSERT_EQ(worth.merits.size(), best->merits.size());
  for (size_t i = 0; i < worth.merits.size(); ++i)
    EXPECT_NEAR(worth.merits[i], best->merits[i], 1e-9);
  EXPECT_EQ(worth.workers, best->workers);
}

TEST(ClaimTest, TheHighestTotalIsThatOfTryingAllChoices) {
  for (uint64_t seed = 1; seed <= 300; ++seed) {
    SCOPED_TRACE(::testing::Message() << "seed " << seed);
    ExpectBest(RandomInstance(seed), MeritRule::kTotal);
  }
}

TEST(ClaimTest, TheHighestLeastIsThatOfTryingAllChoices) {
  for (uint64_t seed = 1; seed <= 300; ++seed) {
    SCOPED_TRACE(::testing::Message() << "seed " << seed);
    ExpectBest(RandomInstance(seed), MeritRule::kMinFirst);
  }
}

// By marginal gain the first job takes both workers, 1 and then 1; the second gets nothing for its
// first worker and 5 for its second.
TEST(ClaimTest, AStepIsSeenFromAfar) {
  const std::vector<Claim> claims = {{{0, 0, 0}, {1, 1, 1}, {2, 1, 2}},
                                     {{0, 0, 0}, {1, 1, 0}, {2, 1, 5}}};
  EXPECT_THAT(*ShareExactly(claims, {.workers = 2}, MeritRule::kTotal, NeverStop),
              Optional(ElementsAre(0, 2)));
}

// The envelope of the first goes straight from 0 to 9 at 3 workers, and that of the second from 0
// to 8 at 3; with 4 the best is neither's corner alone.
TEST(ClaimTest, NearTheCapacityTheEnvelopeIsNotEnough) {
  const std::vector<Claim> claims = {
      {{0, 0, 0}, {3, 1, 9}}, {{0, 0, 0}, {2, 1, 5}, {3, 1, 8}}, {{0, 0, 0}, {2, 1, 5}}};
  EXPECT_THAT(*ShareExactly(claims, {.workers = 4}, MeritRule::kTotal, NeverStop),
              Optional(ElementsAre(0, 1, 1)));
}

TEST(ClaimTest, OfEquallyGoodSharesTheOneWithFewestWorkersIsTaken) {
  const std::vector<Claim> claims = {{{1, 1, 3}, {2, 1, 4}, {3, 1, 4}, {4, 1, 2}}};
  EXPECT_THAT(*ShareExactly(claims, {.workers = 9}, MeritRule::kTotal, NeverStop),
              Optional(ElementsAre(1)));
  EXPECT_THAT(*ShareExactly(claims, {.workers = 9}, MeritRule::kMinFirst, NeverStop),
              Optional(ElementsAre(1)));
}

TEST(ClaimTest, TheSecondLeastCountsWhereTheLeastIsStuck) {
  // The first cannot have more than 1 and takes one worker for it; the others share four, not three
  // and one.
  const std::vector<Claim> claims = {
      {{1, 1, 1}, {2, 1, 1}}, {{1, 1, 2}, {2, 1, 4}, {3, 1, 9}}, {{1, 1, 2}, {2, 1, 4}, {3, 1, 9}}};
  EXPECT_THAT(*ShareExactly(claims, {.workers = 5}, MeritRule::kMinFirst, NeverStop),
              Optional(ElementsAre(0, 1, 1)));
}

TEST(ClaimTest, NeverEndingIsTheLeastOfAll) {
  constexpr double kNever = -std::numeric_limits<double>::infinity();
  const std::vector<Claim> claims = {{{0, 0, kNever}, {2, 1, -100}},
                                     {{0, 0, kNever}, {1, 1, -50}, {3, 1, -1}}};
  EXPECT_THAT(*ShareExactly(claims, {.workers = 3}, MeritRule::kMinFirst, NeverStop),
              Optional(ElementsAre(1, 1)));
}

TEST(ClaimTest, ServersAreACapacityToo) {
  const std::vector<Claim> claims = {{{1, 1, 1}, {1, 2, 5}}, {{1, 1, 1}, {1, 2, 4}}};
  EXPECT_THAT(*ShareExactly(claims, {.workers = 9, .servers = 3}, MeritRule::kTotal, NeverStop),
              Optional(ElementsAre(1, 0)));
  EXPECT_THAT(*ShareExactly(claims, {.workers = 9}, MeritRule::kTotal, NeverStop),
              Optional(ElementsAre(1, 1)));
}

TEST(ClaimTest, NoChoiceWhereTheLeastDoesNotFit) {
  EXPECT_EQ(*ShareExactly({{{2, 1, 1}}, {{2, 1, 1}}}, {.workers = 3}, MeritRule::kTotal, NeverStop),
            std::nullopt);
  EXPECT_EQ(
      *ShareExactly({{{1, 2, 1}}}, {.workers = 3, .servers = 1}, MeritRule::kMinFirst, NeverStop),
      std::nullopt);
}

TEST(ClaimTest, NothingIsSharedByNobody) {
  EXPECT_THAT(*ShareExactly({}, {.workers = 3}, MeritRule::kTotal, NeverStop),
              Optional(ElementsAre()));
  EXPECT_THAT(*ShareExactly({}, {.workers = 3}, MeritRule::kMinFirst, NeverStop),
              Optional(ElementsAre()));
}

TEST(ClaimTest, ASearchThatIsTooLargeNamesItsLimit) {
  Claim claim;
  for (int32_t workers = 1; workers <= 100; ++workers)
    claim.push_back({.workers = workers, .servers = 1, .merit = 1.0 * workers});
  const absl::Status states = ShareExactly({claim, claim}, {.workers = 50}, MeritRule::kTotal,
                                           NeverStop, {.max_states = 10})
                                  .status();
  EXPECT_EQ(DetailsOf(states).reason, "ALLOCATION_TOO_LARGE");
  EXPECT_THAT(std::string(states.message()), HasSubstr("max_states = 10"));
  const absl::Status visits = ShareExactly({claim, claim}, {.workers = 51}, MeritRule::kMinFirst,
                                           NeverStop, {.max_share_visits = 10})
                                  .status();
  EXPECT_THAT(std::string(visits.message()), HasSubstr("max_share_visits = 10"));
}

TEST(ClaimTest, StopsWhenTold) {
  const std::vector<Claim> claims = {{{1, 1, 1}, {2, 1, 2}}, {{1, 1, 1}, {2, 1, 2}}};
  const auto stop = [] { return absl::CancelledError("stop"); };
  EXPECT_TRUE(
      absl::IsCancelled(ShareExactly(claims, {.workers = 3}, MeritRule::kTotal, stop).status()));
  EXPECT_TRUE(
      absl::IsCancelled(ShareExactly(claims, {.workers = 3}, MeritRule::kMinFirst, stop).status()));
}

}  // namespace
}  // namespace stepcast::claim_test
