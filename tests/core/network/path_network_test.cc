#include "core/network/path_network.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "core/base/index.h"
#include "core/base/random.h"
#include "core/network/network.h"
#include "tests/core/network/exact.h"
#include "tests/core/network/exact_max_min.h"

namespace stepcast::path_network_test {
namespace {

using testing::Exact;

static_assert(Network<PathNetwork>);

struct Setting {
  std::vector<PathNetwork::Link> links;
  std::vector<FlowPath> paths;
  std::vector<int64_t> work;    // by flow
  std::vector<int64_t> starts;  // ticks, by flow
};

// Racks, uplinks between them, hosts: any links, and any paths of one to four of them.
Setting RandomSetting(uint64_t seed) {
  Random random({seed, 31});
  Setting setting;
  const uint64_t links = 2 + random.Below(6);
  for (uint64_t i = 0; i < links; ++i) {
    setting.links.push_back(
        {.capacity = PathNetwork::kUnit / static_cast<int64_t>(1 + random.Below(5)) *
                     static_cast<int64_t>(1 + random.Below(4)),
         .is_shared = random.Below(3) > 0});
  }
  for (uint64_t flow = 1 + random.Below(9); flow > 0; --flow) {
    std::vector<LinkIndex> all;
    for (LinkIndex link = 0; Index(link) < setting.links.size(); ++link) all.push_back(link);
    FlowPath path;
    for (uint64_t left = 1 + random.Below(FlowPath::kMaxLinks); left > 0 && !all.empty(); --left) {
      const auto at = all.begin() + static_cast<std::ptrdiff_t>(random.Below(all.size()));
      path.links[Index(path.count)] = *at;
      ++path.count;
      all.erase(at);
    }
    setting.paths.push_back(path);
    setting.work.push_back(static_cast<int64_t>(1 + random.Below(100'000'000)));
    setting.starts.push_back(random.Below(2) == 0 ? 0
                                                  : static_cast<int64_t>(random.Below(50'000'000)));
  }
  return setting;
}

std::vector<int64_t> EndsOf(const Setting& setting) {
  PathNetwork network(1, setting.links, setting.paths);
  std::vector<int64_t> ends(setting.work.size(), -1);
  std::vector<int64_t> starts = setting.starts;
  Instant next_end = kEndOfTime;
  while (true) {
    const Instant now{std::min(next_end.ticks, *std::min_element(starts.begin(), starts.end()))};
    if (now == kEndOfTime) return ends;
    std::vector<int32_t> ended;
    if (now == next_end) network.TakeEnded(now, ended);
    for (const int32_t flow : ended) ends[Index(flow)] = now.ticks;
    for (size_t flow = 0; flow < starts.size(); ++flow) {
      if (starts[flow] != now.ticks) continue;
      network.Start(static_cast<int32_t>(flow), Span{setting.work[flow]});
      starts[flow] = kEndOfTime.ticks;
    }
    next_end = network.Settle(now);
  }
}

// The same without rounding.
std::vector<Exact> ExactEndsOf(const Setting& setting) {
  std::vector<Exact> capacities;
  for (const PathNetwork::Link& link : setting.links)
    capacities.push_back(Exact(link.capacity) / PathNetwork::kUnit);
  std::vector<std::optional<Exact>> left(setting.work.size());
  std::vector<Exact> ends(setting.work.size(), -1);
  std::vector<bool> started(setting.work.size(), false);
  Exact now = 0;
  while (true) {
    for (size_t flow = 0; flow < left.size(); ++flow) {
      if (left[flow].has_value() && *left[flow] == 0) {
        left[flow].reset();
        ends[flow] = now;
      }
      if (!started[flow] && now == setting.starts[flow]) {
        started[flow] = true;
        left[flow] = setting.work[flow];
      }
    }
    std::vector<size_t> active;
    std::vector<std::vector<size_t>> flows;
    for (size_t flow = 0; flow < left.size(); ++flow) {
      if (!left[flow].has_value()) continue;
      active.push_back(flow);
      const auto path = setting.paths[flow].all();
      flows.emplace_back(path.begin(), path.end());
    }
    const std::vector<Exact> rates = testing::MaxMinRates(capacities, flows);
    std::optional<Exact> next;
    for (size_t i = 0; i < active.size(); ++i) {
      const Exact end = now + *left[active[i]] / rates[i];
      if (!next.has_value() || end < *next) next = end;
    }
    for (size_t flow = 0; flow < left.size(); ++flow) {
      if (!started[flow] && (!next.has_value() || setting.starts[flow] < *next))
        next = setting.starts[flow];
    }
    if (!next.has_value()) return ends;
    for (size_t i = 0; i < active.size(); ++i) *left[active[i]] -= (*next - now) * rates[i];
    now = *next;
  }
}

TEST(PathNetworkTest, FlowsEndWhereExactFillingSaysOnAnyPaths) {
  int of_four_links = 0;
  for (uint64_t seed = 1; seed <= 500; ++seed) {
    SCOPED_TRACE(::testing::Message() << "seed " << seed);
    const Setting setting = RandomSetting(seed);
    const std::vector<int64_t> ends = EndsOf(setting);
    const std::vector<Exact> expected = ExactEndsOf(setting);
    for (size_t flow = 0; flow < ends.size(); ++flow) {
      // Each start and end rounds a flow by a tick of its link, of which it has a share.
      EXPECT_LE(std::abs(Exact(ends[flow] - expected[flow]).convert_to<double>()), 2000)
          << "flow " << flow;
      of_four_links += setting.paths[flow].count == 4 ? 1 : 0;
    }
  }
  EXPECT_GT(of_four_links, 300);
}

// Two racks of two hosts: what leaves a rack shares its uplink, what stays inside does not.
TEST(PathNetworkTest, OnlyFlowsThatLeaveTheRackShareItsUplink) {
  constexpr int64_t kUnit = PathNetwork::kUnit;
  // Hosts' links 0 to 3, uplinks of the racks 4 and 5, each as wide as one host's.
  const std::vector<PathNetwork::Link> links(6, {.capacity = kUnit});
  PathNetwork network(1, links,
                      {{.links = {0, 4, 5, 2}, .count = 4},
                       {.links = {1, 4, 5, 3}, .count = 4},
                       {.links = {0, 1}, .count = 2}});
  network.Start(0, Span{1000});
  network.Start(1, Span{1000});
  EXPECT_EQ(network.Settle(Instant{}), Instant{2000});
  std::vector<int32_t> ended;
  network.TakeEnded(Instant{2000}, ended);
  EXPECT_EQ(ended, (std::vector<int32_t>{0, 1}));
  network.Start(2, Span{500});
  EXPECT_EQ(network.Settle(Instant{2000}), Instant{2500});
  EXPECT_EQ(network.CarriedBy(Instant{2500}, 0), 2500);
}

}  // namespace
}  // namespace stepcast::path_network_test
