// The end of a processor's work from the few arrivals that can decide it, beside all of them.
#include "core/engine/latest_ends.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <vector>

#include "core/base/random.h"

namespace stepcast::latest_ends_test {
namespace {

struct Items {
  std::vector<Span> works;
  std::vector<Span> takes;
};

Items RandomItems(Random& random) {
  Items items;
  const uint64_t most_taken = uint64_t{1} << random.Below(12);
  const uint64_t count = 1 + random.Below(40);
  for (uint64_t i = 0; i < count; ++i) {
    items.works.push_back({static_cast<int64_t>(random.Below(200))});
    items.takes.push_back({static_cast<int64_t>(random.Below(most_taken))});
  }
  return items;
}

// When each has arrived over a link that is alone or shared, with pauses in between.
std::vector<Instant> RandomArrivals(const Items& items, Random& random) {
  std::vector<Instant> arrivals;
  Instant now;
  for (const Span work : items.works) {
    const auto pause = static_cast<int64_t>(random.Below(3) == 0 ? random.Below(500) : 0);
    now = now + Span{work.ticks * static_cast<int64_t>(1 + random.Below(3)) + pause};
    arrivals.push_back(now);
  }
  return arrivals;
}

// Of items `first` to `last`, one after the other.
Instant EndOneByOne(const Items& items, const std::vector<Instant>& arrivals, int32_t first,
                    int32_t last) {
  Instant end;
  for (int32_t i = first; i <= last; ++i)
    end = std::max(end, arrivals[Index(i)]) + items.takes[Index(i)];
  return end;
}

TEST(LatestEndsTest, DecisiveArrivalsSayWhenAllIsDoneForAnyRangeOfItems) {
  int64_t looked_at = 0;
  int64_t items_of_all = 0;
  for (uint64_t seed = 1; seed <= 2000; ++seed) {
    Random random({seed});
    const Items items = RandomItems(random);
    const std::vector<Instant> arrivals = RandomArrivals(items, random);
    const LatestEnds ends(items.works, items.takes);
    ASSERT_EQ(static_cast<size_t>(ends.size()), items.works.size());
    const auto last = static_cast<int32_t>(random.Below(items.works.size()));
    const auto first = static_cast<int32_t>(random.Below(static_cast<uint64_t>(last) + 1));
    Instant end;
    for (int32_t i = last; i >= first; i = ends.DecisiveBefore(i)) {
      end = std::max(end, arrivals[Index(i)] + (ends.TakenBefore(last + 1) - ends.TakenBefore(i)));
      ++looked_at;
    }
    items_of_all += last - first + 1;
    ASSERT_EQ(end, EndOneByOne(items, arrivals, first, last)) << seed;
  }
  // It would be no use if most of them were.
  EXPECT_LT(looked_at, items_of_all / 2);
  EXPECT_GT(looked_at, 2000);
}

TEST(LatestEndsTest, SumsStandBeforeTheirItem) {
  const LatestEnds ends({{3}, {5}}, {{7}, {11}});
  EXPECT_EQ(ends.WorkBefore(0), Span{});
  EXPECT_EQ(ends.WorkBefore(1), Span{3});
  EXPECT_EQ(ends.WorkBefore(2), Span{8});
  EXPECT_EQ(ends.TakenBefore(1), Span{7});
  EXPECT_EQ(ends.TakenBefore(2), Span{18});
  // Seven wait for the first, and the second is on the link for five only.
  EXPECT_EQ(ends.DecisiveBefore(1), 0);
  EXPECT_EQ(ends.DecisiveBefore(0), -1);
  EXPECT_EQ(LatestEnds().size(), 0);
  EXPECT_EQ(LatestEnds().WorkBefore(0), Span{});
}

}  // namespace
}  // namespace stepcast::latest_ends_test
