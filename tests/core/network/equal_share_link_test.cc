#include "core/network/equal_share_link.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <vector>

#include "core/base/random.h"
#include "core/base/time.h"
#include "core/network/max_min_network.h"

namespace stepcast::equal_share_link_test {
namespace {

std::vector<int32_t> TakeEnded(EqualShareLink& link, Instant now) {
  std::vector<int32_t> ended;
  link.TakeEnded(now, ended);
  return ended;
}

TEST(EqualShareLinkTest, AloneAFlowTakesItsWork) {
  EqualShareLink link(1);
  link.Start(0, Span{100});
  EXPECT_EQ(link.Settle(Instant{7}), Instant{107});
}

TEST(EqualShareLinkTest, EachOfThreeGetsAThird) {
  EqualShareLink link(3);
  for (int32_t flow = 0; flow < 3; ++flow) link.Start(flow, Span{100});
  EXPECT_EQ(link.Settle(Instant{0}), Instant{300});
  EXPECT_EQ(TakeEnded(link, Instant{300}).size(), 3U);
  EXPECT_EQ(link.Settle(Instant{300}), kEndOfTime);
}

TEST(EqualShareLinkTest, ALateFlowSlowsTheOthersFromThenOn) {
  EqualShareLink link(2);
  link.Start(0, Span{100});
  link.Settle(Instant{0});
  link.Start(1, Span{100});
  // 40 are done, the other 60 take twice as long.
  EXPECT_EQ(link.Settle(Instant{40}), Instant{160});
  EXPECT_EQ(TakeEnded(link, Instant{160}), std::vector<int32_t>{0});
  // 60 of the second are done, and it is alone again.
  EXPECT_EQ(link.Settle(Instant{160}), Instant{200});
}

TEST(EqualShareLinkTest, CarriesEveryTickOfABusyLink) {
  EqualShareLink link(2);
  link.Start(0, Span{100});
  link.Start(1, Span{50});
  link.Settle(Instant{0});
  EXPECT_EQ(link.CarriedBy(Instant{60}, 0), 60);
  TakeEnded(link, Instant{100});
  link.Settle(Instant{100});
  EXPECT_EQ(link.CarriedBy(Instant{150}, 0), 150);
}

// Drives both networks through the same random history of one hub's link and compares every
// answer.
class Twins {
 public:
  explicit Twins(uint64_t seed)
      : random_({seed, 21}),
        workers_(1 + random_.Below(24)),
        // Own links that do not bind: as fast as the hub's, or faster.
        capacities_(workers_, MaxMinNetwork::kUnit * static_cast<int64_t>(1 + random_.Below(2))),
        equal_(workers_),
        max_min_(1, capacities_),
        busy_(workers_, false) {}

  void Run() {
    Instant now{0};
    for (int event = 0; event < 400; ++event) {
      if (now == next_end_) TakeEnded(now);
      StartSome();
      next_end_ = equal_.Settle(now);
      ASSERT_EQ(next_end_, max_min_.Settle(now)) << "at " << now.ticks;
      ASSERT_EQ(equal_.CarriedBy(now, 0), max_min_.CarriedBy(now, 0)) << "at " << now.ticks;
      const Instant later = now + Span{static_cast<int64_t>(1 + random_.Below(3000))};
      now = std::min(next_end_, later);
    }
    EXPECT_GT(ended_, 20);
  }

 private:
  void TakeEnded(Instant now) {
    std::vector<int32_t> a;
    std::vector<int32_t> b;
    equal_.TakeEnded(now, a);
    max_min_.TakeEnded(now, b);
    std::sort(a.begin(), a.end());
    std::sort(b.begin(), b.end());
    ASSERT_EQ(a, b);
    for (const int32_t flow : a) busy_[static_cast<size_t>(flow)] = false;
    ended_ += static_cast<int>(a.size());
  }

  void StartSome() {
    for (size_t flow = 0; flow < workers_; ++flow) {
      if (busy_[flow] || random_.Below(3) != 0) continue;
      // Often the same work, so that flows end together.
      const Span work{static_cast<int64_t>(random_.Below(2) == 0 ? 1 + random_.Below(2000) : 840)};
      equal_.Start(static_cast<int32_t>(flow), work);
      max_min_.Start(static_cast<int32_t>(flow), work);
      busy_[flow] = true;
    }
  }

  Random random_;
  size_t workers_;
  std::vector<int64_t> capacities_;
  EqualShareLink equal_;
  MaxMinNetwork max_min_;
  std::vector<bool> busy_;
  Instant next_end_ = kEndOfTime;
  int ended_ = 0;
};

TEST(EqualShareLinkTest, AgreesWithMaxMinOverOneHubToTheTick) {
  for (uint64_t seed = 1; seed <= 300; ++seed) {
    SCOPED_TRACE(::testing::Message() << "seed " << seed);
    Twins(seed).Run();
    if (HasFatalFailure()) return;
  }
}

}  // namespace
}  // namespace stepcast::equal_share_link_test
