#include "core/network/message_link.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <map>
#include <tuple>
#include <vector>

#include "core/base/random.h"
#include "core/base/time.h"

namespace stepcast::message_link_test {
namespace {

struct Ring {
  int64_t begin = 0;
  RingMessages messages;
};

// The end of each ring, tick by tick: what arrives is added, what is due is issued, and whenever
// the link is idle it sends what was issued first, of one instant the ring's that began first.
std::vector<int64_t> NaiveEnds(const std::vector<Ring>& rings) {
  struct Progress {
    int32_t issued = 0;
    int32_t done = 0;
    int64_t added_until = 0;
  };
  using Message = std::tuple<int64_t, size_t, int32_t>;  // issued at, ring, its index there
  std::vector<Progress> progress(rings.size());
  std::vector<int64_t> ends(rings.size(), -1);
  std::vector<Message> line;
  std::multimap<int64_t, size_t> done_at;  // arrived, and added where that is to be done
  int64_t busy_until = 0;
  for (int64_t now = 0; std::count(ends.begin(), ends.end(), -1) > 0; ++now) {
    const auto issue = [&](size_t ring, int32_t count) {
      const RingMessages& all = rings[ring].messages;
      for (; count > 0 && progress[ring].issued < all.reducing + all.gathering; --count)
        line.emplace_back(now, ring, progress[ring].issued++);
    };
    for (; done_at.contains(now); done_at.erase(done_at.find(now))) {
      const size_t ring = done_at.find(now)->second;
      const RingMessages& all = rings[ring].messages;
      const int32_t done = ++progress[ring].done;
      if (done == all.reducing) {
        issue(ring, 2);
      } else if (done > all.reducing || progress[ring].issued < all.reducing) {
        issue(ring, 1);
      }
      if (done == all.reducing + all.gathering) ends[ring] = now;
    }
    for (size_t ring = 0; ring < rings.size(); ++ring) {
      if (rings[ring].begin != now) continue;
      const RingMessages& all = rings[ring].messages;
      issue(ring, all.reducing > 0 ? std::min(2, all.reducing) : 2);
      if (all.reducing + all.gathering == 0) ends[ring] = now;
    }
    if (line.empty() || busy_until > now) continue;
    const auto first = std::min_element(line.begin(), line.end());
    const auto [at, ring, index] = *first;
    line.erase(first);
    const RingMessages& all = rings[ring].messages;
    busy_until = now + all.transmission.ticks;
    int64_t done = busy_until + all.latency.ticks;
    if (index < all.reducing) {
      done = std::max(done, progress[ring].added_until) + all.addition.ticks;
      progress[ring].added_until = done;
    }
    done_at.emplace(done, ring);
  }
  return ends;
}

// The same by the link. Each ring has a slot of its own.
std::vector<int64_t> LinkEnds(const std::vector<Ring>& rings) {
  MessageLink link;
  std::vector<int64_t> ends(rings.size(), -1);
  const auto take = [&](Instant now) {
    std::vector<int32_t> slots;
    link.TakeEnded(now, slots);
    for (const int32_t slot : slots) ends[static_cast<size_t>(slot)] = now.ticks;
  };
  for (size_t i = 0; i < rings.size(); ++i) {
    while (link.NextEnd() <= Instant{rings[i].begin}) take(link.NextEnd());
    link.Begin(static_cast<int32_t>(i), Instant{rings[i].begin}, rings[i].messages);
  }
  while (link.NextEnd() < kEndOfTime) take(link.NextEnd());
  return ends;
}

TEST(MessageLinkTest, FiveHundredRandomSetsOfRingsEndAsAnObviousSimulationSays) {
  for (uint64_t seed = 0; seed < 500; ++seed) {
    Random random({seed, 5});
    std::vector<Ring> rings;
    int64_t begin = 0;
    const uint64_t most = seed % 2 == 0 ? 2 : 5;
    for (uint64_t i = 1 + random.Below(most); i > 0; --i) {
      begin += static_cast<int64_t>(random.Below(3) == 0 ? 0 : random.Below(40));
      rings.push_back({.begin = begin,
                       .messages = {.reducing = static_cast<int32_t>(random.Below(7)),
                                    .gathering = static_cast<int32_t>(random.Below(7)),
                                    .transmission = {1 + static_cast<int64_t>(random.Below(9))},
                                    .latency = {static_cast<int64_t>(random.Below(12))},
                                    .addition = {static_cast<int64_t>(random.Below(12))}}});
    }
    EXPECT_EQ(LinkEnds(rings), NaiveEnds(rings)) << "seed " << seed;
  }
}

TEST(MessageLinkTest, AThousandRandomRingsAloneTakeTheirAloneTime) {
  for (uint64_t seed = 0; seed < 1000; ++seed) {
    Random random({seed, 6});
    const RingMessages ring{.reducing = static_cast<int32_t>(random.Below(12)),
                            .gathering = static_cast<int32_t>(random.Below(12)),
                            .transmission = {1 + static_cast<int64_t>(random.Below(20))},
                            .latency = {static_cast<int64_t>(random.Below(20))},
                            .addition = {static_cast<int64_t>(random.Below(20))}};
    EXPECT_EQ(LinkEnds({{.begin = 0, .messages = ring}}).front(), ring.AloneTime().ticks)
        << "seed " << seed;
  }
}

TEST(MessageLinkTest, ARingAloneEndsBeforeTheEndOfTime) {
  const Span longest = kEndOfTime - Instant{};
  const RingMessages ring{.reducing = 1000,
                          .gathering = 1000,
                          .transmission = longest,
                          .latency = longest,
                          .addition = longest};
  EXPECT_EQ(ring.AloneTime(), longest);
}

TEST(MessageLinkTest, ARingAloneTakesItsAloneTime) {
  const RingMessages ring{.reducing = 4,
                          .gathering = 4,
                          .transmission = Nanoseconds(1000),
                          .latency = Nanoseconds(100),
                          .addition = Nanoseconds(100)};
  EXPECT_EQ(ring.AloneTime(), Nanoseconds(8300));
  EXPECT_EQ(NaiveEnds({{.begin = 0,
                        .messages = {.reducing = 4,
                                     .gathering = 4,
                                     .transmission = {10},
                                     .latency = {1},
                                     .addition = {1}}}}),
            std::vector<int64_t>{83});
  EXPECT_EQ(RingMessages{}.AloneTime(), Span{});
}

TEST(MessageLinkTest, AMessageThatIsUnderWayIsNotTakenBack) {
  const RingMessages one{.gathering = 1, .transmission = {10}};
  // The second waits for the link, though it began when the first was under way.
  EXPECT_EQ(LinkEnds({{.begin = 0, .messages = one}, {.begin = 3, .messages = one}}),
            (std::vector<int64_t>{10, 20}));
  EXPECT_EQ(LinkEnds({{.begin = 0, .messages = one}, {.begin = 30, .messages = one}}),
            (std::vector<int64_t>{10, 40}));
}

// Of two all-reduces of 4 MiB together, as measured of PyTorch's gloo at 1 Gbit/s; milliseconds.
struct MeasuredPair {
  int32_t workers = 0;
  double first = 0;
  double second = 0;
};

// By nothing but what such a link carries, 117.7 MB/s. One after the other the first would end
// after 36 and 59 ms; in equal shares both at the end.
TEST(MessageLinkTest, TwoAllReducesTogetherEndAsMeasured) {
  for (const MeasuredPair& pair : {MeasuredPair{.workers = 2, .first = 53.5, .second = 70.5},
                                   MeasuredPair{.workers = 6, .first = 112, .second = 119}}) {
    const double chunk = 4'194'304.0 / pair.workers;
    const double per_chunk = std::max(2.0, std::ceil(chunk / 1'048'576));
    const auto count = static_cast<int32_t>(per_chunk) * (pair.workers - 1);
    const RingMessages ring{.reducing = count,
                            .gathering = count,
                            .transmission = FromSeconds(chunk / per_chunk / 117.7e6)};
    const std::vector<int64_t> ends = LinkEnds({{.messages = ring}, {.messages = ring}});
    EXPECT_NEAR(ToSeconds(Span{ends[0]}) * 1e3 / pair.first, 1, 0.015) << pair.workers;
    EXPECT_NEAR(ToSeconds(Span{ends[1]}) * 1e3 / pair.second, 1, 0.015) << pair.workers;
  }
}

}  // namespace
}  // namespace stepcast::message_link_test
