#include "core/model/scenario_edits.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <variant>

#include "core/model/simulation_options.h"

namespace stepcast::scenario_edits_test {
namespace {

Scenario OfCollectives() {
  AllReduce job{.latency_seconds = 1e-5,
                .workers_per_node = 4,
                .intra_node_bandwidth_bytes_per_second = 1e10,
                .rack_bandwidth_bytes_per_second = 3e9};
  return {.workers = 8, .bandwidth_bytes_per_second = 1e9, .communication = job};
}

TEST(ScenarioEditsTest, LinksOfOnePlaceAreTwiceAsFastAndOthersAsTheyWere) {
  const Scenario before = OfCollectives();
  const Scenario between = WithLinkRates(before, LinkPlace::kBetweenNodes, 2);
  EXPECT_EQ(between.bandwidth_bytes_per_second, 2e9);
  EXPECT_EQ(between.all_reduce().rack_bandwidth_bytes_per_second, 6e9);
  EXPECT_EQ(between.all_reduce().intra_node_bandwidth_bytes_per_second, 1e10);
  const Scenario inside = WithLinkRates(before, LinkPlace::kInsideNodes, 2);
  EXPECT_EQ(inside.bandwidth_bytes_per_second, 1e9);
  EXPECT_EQ(inside.all_reduce().intra_node_bandwidth_bytes_per_second, 2e10);
}

TEST(ScenarioEditsTest, AnEditThatMakesNoDifferenceSaysWhyAndLeavesTheScenario) {
  Scenario servers{.workers = 2};
  const Scenario before = servers;
  EXPECT_EQ(RemoveLatency(servers), "links to parameter servers have none");
  EXPECT_EQ(servers, before);
  Scenario alone = OfCollectives();
  alone.workers = 1;
  EXPECT_EQ(MakeLinksTwiceAsFast(alone), "one worker uses no link");
  Scenario many = OfCollectives();
  EXPECT_EQ(RemoveLatency(many), "");
  EXPECT_EQ(many.all_reduce().latency_seconds, 0);
  EXPECT_EQ(RemoveLatency(many), "the scenario has none");
}

// The rate that a warning names is that of the links that carry something.
TEST(ScenarioEditsTest, RatesThatNobodyMeasuredAreThoseOfTheLinksInUse) {
  Scenario scenario = OfCollectives();
  const std::string one =
      "the links' rate, 1000000000 bytes/s, is not a measured one, and sockets often reach a "
      "fraction of the nominal rate";
  EXPECT_EQ(NotMeasuredText(scenario), one);
  std::get<AllReduce>(scenario.communication).workers_per_rack = 4;
  EXPECT_EQ(NotMeasuredText(scenario),
            "the links' rates, 1000000000 to 3000000000 bytes/s, are not measured ones, and "
            "sockets often reach a fraction of nominal rates");
  Scenario grouped = OfCollectives();
  grouped.worker_groups = {{.count = 8, .bandwidth_bytes_per_second = 2e9}};
  EXPECT_THAT(NotMeasuredText(grouped), ::testing::HasSubstr("rate, 2000000000 bytes/s"));
  // A server's own link keeps its rate.
  grouped.communication = ParameterServers{};
  EXPECT_THAT(NotMeasuredText(grouped), ::testing::HasSubstr("1000000000 to 2000000000"));
}

TEST(ScenarioEditsTest, AScenarioTellsItsNodesSpeedsAndRulesOfRuns) {
  Scenario scenario = OfCollectives();
  EXPECT_EQ(scenario.NodesOf(9), 3);
  EXPECT_EQ(Scenario{.workers = 9}.NodesOf(9), 9);
  EXPECT_TRUE(scenario.compute_speeds().empty());
  scenario.worker_groups = {{.count = 2, .compute_speed_factor = 1},
                            {.count = 1, .compute_speed_factor = 0.5}};
  EXPECT_EQ(scenario.compute_speeds(), (std::vector<double>{1, 1, 0.5}));
  EXPECT_EQ(scenario.kind(), JobKind::kAllReduce);
  EXPECT_EQ(RunRulesOf(scenario).lengths, 1);
  EXPECT_EQ(RunRulesOf(Scenario{.workers = 2}).lengths, kAutomaticLengths);
}

}  // namespace
}  // namespace stepcast::scenario_edits_test
