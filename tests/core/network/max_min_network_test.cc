#include "core/network/max_min_network.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "core/base/random.h"
#include "core/base/time.h"
#include "core/network/path_network.h"
#include "tests/core/network/exact_max_min.h"
#include "tests/core/network/network_history.h"

namespace stepcast::max_min_network_test {
namespace {

using testing::Exact;

constexpr int64_t kUnit = MaxMinNetwork::kUnit;

// The instant at which the first flow ends that is started with the others at 0.
Instant FirstEnd(MaxMinNetwork& network, const std::map<int32_t, int64_t>& work) {
  for (const auto& [flow, ticks] : work) network.Start(flow, Span{ticks});
  return network.Settle(Instant{0});
}

TEST(MaxMinNetworkTest, AWorkerAloneOnBothHubsHalvesItsOwnLink) {
  MaxMinNetwork network(2, {kUnit});
  EXPECT_EQ(FirstEnd(network, {{0, 1000}, {1, 5000}}), Instant{2000});
}

// Section 5: 1/n of the second hub's link, and 1 - 1/n of the first one's, which the worker has
// alone.
TEST(MaxMinNetworkTest, AWorkerAloneOnOneHubGetsWhatItsShareOfTheOtherLeaves) {
  for (int32_t n = 2; n <= 16; ++n) {
    MaxMinNetwork network(2, std::vector<int64_t>(static_cast<size_t>(n), kUnit));
    std::map<int32_t, int64_t> work{{0, 1000 * (n - 1)}};
    for (int32_t worker = 0; worker < n; ++worker) work[2 * worker + 1] = 1'000'000;
    EXPECT_EQ(FirstEnd(network, work), Instant{int64_t{1000} * n}) << n << " workers";
  }
}

TEST(MaxMinNetworkTest, WhatASlowWorkerLeavesGoesToTheOthers) {
  MaxMinNetwork network(1, {kUnit / 4, kUnit, kUnit});
  // A quarter for the first; three eighths each for the others.
  EXPECT_EQ(FirstEnd(network, {{0, 1'000'000}, {1, 3000}, {2, 9000}}), Instant{8000});
}

TEST(MaxMinNetworkTest, FasterOwnLinksDoNotHelpWhereTheHubBinds) {
  MaxMinNetwork network(1, {10 * kUnit, 10 * kUnit});
  EXPECT_EQ(FirstEnd(network, {{0, 1000}, {1, 1000}}), Instant{2000});
}

TEST(MaxMinNetworkTest, AnOwnLinkFasterThanTheHubsTakesBothAtFullSpeed) {
  MaxMinNetwork network(2, {2 * kUnit});
  EXPECT_EQ(FirstEnd(network, {{0, 1000}, {1, 1000}}), Instant{1000});
}

// The tasks of every flow: works, each begun some time after the one before has ended.
struct Job {
  int64_t gap = 0;
  int64_t work = 0;
};
using Jobs = std::vector<std::vector<Job>>;  // by flow

struct Setting {
  int32_t hubs = 1;
  std::vector<int64_t> capacities;
  Jobs jobs;
};

Setting MakeSetting(uint64_t seed) {
  Random random({seed, 22});
  Setting setting{.hubs = static_cast<int32_t>(1 + random.Below(3))};
  const size_t workers = 1 + random.Below(6);
  const bool is_round = random.Below(2) == 0;
  for (size_t worker = 0; worker < workers; ++worker) {
    const int64_t fraction = is_round ? kUnit / static_cast<int64_t>(1 + random.Below(4))
                                      : static_cast<int64_t>(1 + random.Below(2 * kUnit));
    setting.capacities.push_back(random.Below(2) == 0 ? kUnit : std::max(fraction, kUnit / 50));
  }
  for (size_t flow = 0; flow < workers * static_cast<size_t>(setting.hubs); ++flow) {
    std::vector<Job>& own = setting.jobs.emplace_back(random.Below(5));
    for (Job& job : own) {
      job.gap = random.Below(2) == 0 ? 0 : static_cast<int64_t>(random.Below(4'000'000));
      job.work = is_round ? 2520 * static_cast<int64_t>(1 + random.Below(400))
                          : static_cast<int64_t>(1 + random.Below(2'000'000));
    }
  }
  return setting;
}

// Every flow's ends, by the network.
std::vector<std::vector<Exact>> RunNetwork(const Setting& setting) {
  MaxMinNetwork network(setting.hubs, setting.capacities);
  std::vector<std::vector<Exact>> ends(setting.jobs.size());
  std::vector<Instant> begin(setting.jobs.size(), kEndOfTime);
  for (size_t flow = 0; flow < setting.jobs.size(); ++flow) {
    if (!setting.jobs[flow].empty()) begin[flow] = Instant{setting.jobs[flow].front().gap};
  }
  for (Instant next_end = kEndOfTime;;) {
    const Instant now = std::min(next_end, *std::min_element(begin.begin(), begin.end()));
    if (now == kEndOfTime) return ends;
    std::vector<int32_t> ended;
    if (now == next_end) network.TakeEnded(now, ended);
    for (const int32_t flow : ended) {
      const auto index = static_cast<size_t>(flow);
      ends[index].emplace_back(now.ticks);
      if (ends[index].size() < setting.jobs[index].size())
        begin[index] = now + Span{setting.jobs[index][ends[index].size()].gap};
    }
    for (size_t flow = 0; flow < begin.size(); ++flow) {
      if (begin[flow] != now) continue;
      begin[flow] = kEndOfTime;
      network.Start(static_cast<int32_t>(flow), Span{setting.jobs[flow][ends[flow].size()].work});
    }
    next_end = network.Settle(now);
  }
}

// The same in exact rationals, all rates filled anew at every event.
class ExactNetwork {
 public:
  explicit ExactNetwork(const Setting& setting)
      : setting_(setting), states_(setting.jobs.size()), ends_(setting.jobs.size()) {
    for (int32_t hub = 0; hub < setting.hubs; ++hub) capacities_.emplace_back(1);
    for (const int64_t own : setting.capacities) capacities_.push_back(Exact(own) / kUnit);
    for (size_t flow = 0; flow < states_.size(); ++flow) {
      if (!setting.jobs[flow].empty()) states_[flow].begin = setting.jobs[flow].front().gap;
    }
  }

  std::vector<std::vector<Exact>> Run() {
    while (Advance()) {
    }
    return ends_;
  }
  int events() const { return events_; }

 private:
  struct State {
    std::optional<Exact> begin;  // of the next job
    std::optional<Exact> left;   // of the one under way
  };

  bool Advance() {
    std::vector<size_t> active;
    std::vector<std::vector<size_t>> flows;
    const auto hubs = static_cast<size_t>(setting_.hubs);
    for (size_t flow = 0; flow < states_.size(); ++flow) {
      if (!states_[flow].left.has_value()) continue;
      active.push_back(flow);
      flows.push_back({flow % hubs, hubs + flow / hubs});
    }
    const std::vector<Exact> rates = testing::MaxMinRates(capacities_, flows);
    std::optional<Exact> next;
    for (size_t i = 0; i < active.size(); ++i) {
      const Exact end = now_ + *states_[active[i]].left / rates[i];
      if (!next.has_value() || end < *next) next = end;
    }
    for (const State& state : states_) {
      if (state.begin.has_value() && (!next.has_value() || *state.begin < *next))
        next = state.begin;
    }
    if (!next.has_value()) return false;
    for (size_t i = 0; i < active.size(); ++i)
      *states_[active[i]].left -= (*next - now_) * rates[i];
    now_ = *next;
    ++events_;
    for (size_t flow = 0; flow < states_.size(); ++flow) EndAndBegin(flow);
    return true;
  }

  void EndAndBegin(size_t flow) {
    State& state = states_[flow];
    if (state.left.has_value() && *state.left == 0) {
      state.left.reset();
      ends_[flow].push_back(now_);
      if (ends_[flow].size() < setting_.jobs[flow].size())
        state.begin = now_ + setting_.jobs[flow][ends_[flow].size()].gap;
    }
    if (state.begin.has_value() && *state.begin == now_) {
      state.begin.reset();
      state.left = setting_.jobs[flow][ends_[flow].size()].work;
    }
  }

  const Setting& setting_;
  std::vector<Exact> capacities_;
  std::vector<State> states_;
  std::vector<std::vector<Exact>> ends_;
  Exact now_ = 0;
  int events_ = 0;
};

TEST(MaxMinNetworkTest, FlowsEndWhereExactFillingSays) {
  int compared = 0;
  for (uint64_t seed = 1; seed <= 400; ++seed) {
    SCOPED_TRACE(::testing::Message() << "seed " << seed);
    const Setting setting = MakeSetting(seed);
    ExactNetwork reference(setting);
    const std::vector<std::vector<Exact>> expected = reference.Run();
    const std::vector<std::vector<Exact>> ends = RunNetwork(setting);
    // Every event rounds each flow by a tick of its own link, of which a flow with a small share of
    // it feels many.
    const double limit = 50.0 * reference.events() + 50;
    for (size_t flow = 0; flow < ends.size(); ++flow) {
      ASSERT_EQ(ends[flow].size(), expected[flow].size());
      for (size_t n = 0; n < ends[flow].size(); ++n, ++compared) {
        EXPECT_LE(std::abs(Exact(ends[flow][n] - expected[flow][n]).convert_to<double>()), limit)
            << "flow " << flow << " end " << n;
      }
    }
  }
  EXPECT_GT(compared, 3000);
}

TEST(MaxMinNetworkTest, WhatWasCarriedAtTheEndIsAllTheWork) {
  MaxMinNetwork network(2, {kUnit, kUnit / 3});
  Instant next = FirstEnd(network, {{0, 7001}, {1, 3000}, {2, 5000}, {3, 123}});
  for (std::vector<int32_t> ended; next < kEndOfTime; next = network.Settle(next))
    network.TakeEnded(next, ended);
  EXPECT_EQ(network.CarriedBy(Instant{1'000'000}, 0), 12001);
  EXPECT_EQ(network.CarriedBy(Instant{1'000'000}, 1), 3123);
}

TEST(MaxMinNetworkTest, AgreesWithThePathNetworkToTheTick) {
  int ended = 0;
  for (uint64_t seed = 1; seed <= 2000; ++seed) {
    SCOPED_TRACE(::testing::Message() << "seed " << seed);
    Random random({seed, 24});
    const testing::NetworkShape shape = testing::RandomShape(random, 40);
    testing::NetworkHistory history(seed, shape, MaxMinNetwork(shape.hubs, shape.capacities),
                                    PathNetwork::Star(shape.hubs, shape.capacities));
    history.Live(200);
    if (HasFatalFailure()) return;
    ended += history.ended();
  }
  EXPECT_GT(ended, 100'000);
}

}  // namespace
}  // namespace stepcast::max_min_network_test
