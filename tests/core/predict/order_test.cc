#include "core/predict/order.h"

#include <algorithm>
#include <limits>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "core/base/error.h"
#include "core/base/index.h"
#include "core/orders/tic_tac.h"
#include "core/predict/throughput.h"
#include "tests/core/orders/golden_case.h"
#include "tests/core/orders/serial_schedule.h"
#include "tests/core/predict/example_profiles.h"

namespace stepcast::order_test {
namespace {

using ::testing::ElementsAre;
using ::testing::UnorderedElementsAre;

const std::vector<OrderMethod> kEveryMethod{
    OrderMethod::kTic,      OrderMethod::kTac,   OrderMethod::kReverse, OrderMethod::kRandom,
    OrderMethod::kRecorded, OrderMethod::kGraph, OrderMethod::kSearch};

SimulationOptionsDraft ShortRun() {
  return {.steps_per_worker = 4, .warmup_steps = 0, .replications = 1};
}

OrderAnswer Answer(const Profile& profile, const OrderDraft& draft) {
  const absl::StatusOr<OrderQuery> query = ResolveOrder(profile, draft);
  EXPECT_TRUE(query.ok()) << query.status();
  const absl::StatusOr<OrderAnswer> answer = OptimizeOrder(profile, *query, NeverStop);
  EXPECT_TRUE(answer.ok()) << answer.status();
  return *answer;
}

std::vector<std::string> NamesOf(const OrderResult& order) {
  std::vector<std::string> names;
  for (const RankedTransfer& transfer : order.transfers) names.push_back(transfer.name);
  return names;
}

TEST(OrderTest, GoldenTacOrdersMakespansAndEfficienciesThroughTheEngine) {
  const std::vector<testing::GoldenOrderCase> cases = testing::ReadGoldenOrderCases();
  ASSERT_EQ(cases.size(), 40u);
  for (size_t i = 0; i < cases.size(); ++i) {
    SCOPED_TRACE(i);
    const testing::GoldenOrderCase& golden = cases[i];
    const OrderAnswer answer =
        Answer(testing::ProfileOf(golden), {.options = ShortRun(), .methods = {OrderMethod::kTac}});
    std::vector<std::string> expected;
    for (const int32_t d : golden.tac_order) expected.push_back("recv" + std::to_string(d));
    EXPECT_EQ(NamesOf(answer.orders[0]), expected);
    EXPECT_EQ(answer.orders[0].makespan_ns, golden.tac_makespan_ns);
    EXPECT_NEAR(answer.orders[0].scheduling_efficiency, golden.tac_scheduling_efficiency, 1e-12);
    EXPECT_EQ(answer.upper_makespan_ns, golden.upper_makespan_ns);
    EXPECT_EQ(answer.lower_makespan_ns, golden.lower_makespan_ns);
    const auto upper = static_cast<double>(golden.upper_makespan_ns);
    const auto lower = static_cast<double>(golden.lower_makespan_ns);
    EXPECT_NEAR(answer.speedup_bound, (upper - lower) / lower, 1e-12);
    // One step after the other: a worker alone makes one step a makespan.
    EXPECT_NEAR(answer.orders[0].steps_per_second,
                1e9 / static_cast<double>(golden.tac_makespan_ns), 1e-9);
  }
}

TEST(OrderTest, EveryMethodsMakespanIsThatOfTheListedOrderByAnotherEvaluation) {
  const std::vector<testing::GoldenOrderCase> cases = testing::ReadGoldenOrderCases();
  for (size_t i = 0; i < cases.size(); ++i) {
    SCOPED_TRACE(i);
    const TransferGraph graph = GraphOf(cases[i]);
    const OrderAnswer answer =
        Answer(testing::ProfileOf(cases[i]), {.options = ShortRun(), .methods = kEveryMethod});
    for (const OrderResult& order : answer.orders) {
      std::vector<int32_t> listed;
      for (const std::string& name : NamesOf(order))
        listed.push_back(graph.downloads()[static_cast<size_t>(std::stoi(name.substr(4)))]);
      EXPECT_EQ(Nanoseconds(order.makespan_ns), testing::SerialMakespan(graph, listed))
          << static_cast<int>(order.method);
      EXPECT_GE(order.makespan_ns, cases[i].best_makespan_ns);
    }
  }
}

TEST(OrderTest, WhatEachMethodIs) {
  ProfileDraft draft =
      testing::DraftOf({{.name = "a", .resource = Resource::kDownlink, .time_ns = 10},
                        {.name = "b", .resource = Resource::kDownlink, .time_ns = 20},
                        {.name = "c", .resource = Resource::kDownlink, .time_ns = 30},
                        {.name = "of_b", .time_ns = 5, .waiting_for = {1}}});
  draft.steps[0].start_ns = {0, 0, 0, 40};
  draft.steps[0].end_ns = {30, 50, 30, 45};
  const Profile profile = Profile::Create(std::move(draft)).value();
  const OrderAnswer answer = Answer(profile, {.options = ShortRun(), .methods = kEveryMethod});
  std::map<OrderMethod, std::vector<std::pair<std::string, int32_t>>> ranks;
  for (const OrderResult& order : answer.orders) {
    for (const RankedTransfer& transfer : order.transfers)
      ranks[order.method].emplace_back(transfer.name, transfer.rank);
  }
  using Entry = std::pair<std::string, int32_t>;
  EXPECT_THAT(ranks[OrderMethod::kGraph], ElementsAre(Entry("a", 0), Entry("b", 1), Entry("c", 2)));
  EXPECT_THAT(ranks[OrderMethod::kReverse],
              ElementsAre(Entry("c", 0), Entry("b", 1), Entry("a", 2)));
  EXPECT_THAT(ranks[OrderMethod::kRecorded],
              ElementsAre(Entry("a", 0), Entry("c", 0), Entry("b", 1)));
  EXPECT_THAT(ranks[OrderMethod::kTac], ElementsAre(Entry("b", 0), Entry("a", 1), Entry("c", 2)));
  EXPECT_THAT(ranks[OrderMethod::kTic], ElementsAre(Entry("a", 0), Entry("b", 0), Entry("c", 0)));
}

TEST(OrderTest, WhatWeakensAThroughputIsSaidOfItsOrders) {
  const Profile profile = testing::NetworkProfile(3, {.layers = 4, .steps = 5});
  // Of a beginning, every prediction warns.
  const OrderAnswer answer =
      Answer(profile, {.options = {.horizon = Horizon::kFirstSteps, .horizon_steps = 10},
                       .methods = {OrderMethod::kTac}});
  ASSERT_FALSE(answer.warnings.empty());
  EXPECT_EQ(answer.warnings[0].message.rfind("recorded order, graph order, random order, TAC", 0),
            0U)
      << answer.warnings[0].message;
}

TEST(OrderTest, RandomIsOnePermutationThatTheSeedDecides) {
  const Profile profile = testing::NetworkProfile(1, {.layers = 12});
  std::set<std::vector<std::string>> seen;
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    OrderDraft draft{.options = ShortRun(), .methods = {OrderMethod::kRandom}};
    draft.options.seed = seed;
    const std::vector<std::string> names = NamesOf(Answer(profile, draft).orders[0]);
    EXPECT_EQ(names, NamesOf(Answer(profile, draft).orders[0]));
    seen.insert(names);
  }
  EXPECT_EQ(seen.size(), 20u);
}

TEST(OrderTest, AnOrderNeverChangesWhichBytesTravel) {
  for (uint64_t seed = 0; seed < 20; ++seed) {
    SCOPED_TRACE(seed);
    const Profile profile =
        testing::NetworkProfile(seed, {.layers = 6, .servers = static_cast<int32_t>(1 + seed % 3)});
    std::map<std::string, int64_t> downloads;
    for (const Operation& operation : profile.operations()) {
      if (operation.resource == Resource::kDownlink)
        downloads[operation.name] = operation.size_bytes;
    }
    for (const OrderResult& order :
         Answer(profile, {.options = ShortRun(), .methods = kEveryMethod}).orders) {
      std::map<std::string, int64_t> listed;
      for (const RankedTransfer& transfer : order.transfers)
        listed[transfer.name] = transfer.size_bytes;
      EXPECT_EQ(listed, downloads);
      EXPECT_EQ(order.transfers.size(), downloads.size());
      EXPECT_TRUE(std::is_sorted(order.transfers.begin(), order.transfers.end(),
                                 [](const auto& a, const auto& b) { return a.rank < b.rank; }));
    }
  }
}

TEST(OrderTest, EveryMakespanLiesBetweenTheBounds) {
  for (uint64_t seed = 0; seed < 60; ++seed) {
    SCOPED_TRACE(seed);
    const Profile profile = testing::NetworkProfile(
        seed, {.layers = 6, .servers = static_cast<int32_t>(1 + seed % 3), .steps = 2});
    OrderDraft draft{.options = ShortRun(), .methods = kEveryMethod};
    if (seed % 2 == 1)
      draft.scenario = {.communication =
                            ParameterServersDraft{.multiplexing = WindowDraft{.bytes = 200'000}}};
    if (seed % 5 == 0)
      draft.scenario.servers().parsing_overhead =
          ParsingOverhead{.seconds_per_byte = 1e-10, .seconds = 1e-5};
    const OrderAnswer answer = Answer(profile, draft);
    EXPECT_GT(answer.speedup_bound, 0);
    for (const OrderResult& order : answer.orders) {
      EXPECT_LE(order.makespan_ns, answer.upper_makespan_ns);
      EXPECT_GE(order.makespan_ns, answer.lower_makespan_ns);
      EXPECT_GE(order.scheduling_efficiency, 0);
      EXPECT_LE(order.scheduling_efficiency, 1);
    }
  }
}

// 100 ns down, 70 of work, 50 up, 30 on the server, one after the other; and what least times mean:
// 60 of work.
TEST(OrderTest, AMakespanCountsUploadsAndUpdatesAndTakesLeastTimes) {
  ProfileDraft draft = testing::DraftOf(
      {{.name = "recv", .resource = Resource::kDownlink, .time_ns = 100},
       {.name = "compute", .time_ns = 70, .waiting_for = {0}},
       {.name = "send", .resource = Resource::kUplink, .time_ns = 50, .waiting_for = {1}},
       {.name = "update",
        .resource = Resource::kParameterServer,
        .time_ns = 30,
        .waiting_for = {2}}});
  draft.steps.push_back({.start_ns = {0, 100, 160, 210}, .end_ns = {100, 160, 210, 250}});
  const OrderAnswer answer =
      Answer(Profile::Create(std::move(draft)).value(), {.options = ShortRun()});
  EXPECT_EQ(answer.upper_makespan_ns, 240);
  EXPECT_EQ(answer.lower_makespan_ns, 100);
  EXPECT_DOUBLE_EQ(answer.speedup_bound, 1.4);
  for (const OrderResult& order : answer.orders) {
    EXPECT_EQ(order.makespan_ns, 240);
    EXPECT_EQ(order.scheduling_efficiency, 0);
  }
}

// Two servers' downloads share the worker's own link, so that both together are the busiest
// resource.
TEST(OrderTest, TheDownloadsOfAllServersAreOneResourceOfTheLowerBound) {
  ProfileDraft draft = testing::DraftOf(
      {{.name = "a", .resource = Resource::kDownlink, .time_ns = 100, .parameter_server = 0},
       {.name = "b", .resource = Resource::kDownlink, .time_ns = 60, .parameter_server = 1},
       {.name = "compute", .time_ns = 110, .waiting_for = {}}});
  draft.parameter_servers = 2;
  const OrderAnswer answer =
      Answer(Profile::Create(std::move(draft)).value(), {.options = ShortRun()});
  EXPECT_EQ(answer.lower_makespan_ns, 160);
  for (const OrderResult& order : answer.orders) EXPECT_EQ(order.makespan_ns, 160);
}

TEST(OrderTest, OnAChainTacGoesForwardAndIsNeverWorseThanAnyOtherOrder) {
  for (uint64_t seed = 0; seed < 40; ++seed) {
    SCOPED_TRACE(seed);
    const int32_t layers = static_cast<int32_t>(2 + seed % 9);
    const Profile profile = testing::NetworkProfile(
        seed, {.layers = layers, .training = seed % 3 == 0, .downloads_reversed = seed % 2 == 0});
    const OrderAnswer answer = Answer(profile, {.options = ShortRun(), .methods = kEveryMethod});
    const OrderResult& tac = answer.orders[1];
    for (int32_t layer = 0; layer < layers; ++layer)
      EXPECT_EQ(tac.transfers[static_cast<size_t>(layer)].name, "recv" + std::to_string(layer));
    for (const OrderResult& other : answer.orders) {
      EXPECT_LE(tac.makespan_ns, other.makespan_ns);
      EXPECT_GE(tac.steps_per_second, other.steps_per_second * (1 - 1e-12));
    }
  }
}

TEST(OrderTest, TheListedRanksGivenAsPrioritiesReproduceTheThroughput) {
  for (uint64_t seed = 0; seed < 12; ++seed) {
    SCOPED_TRACE(seed);
    const Profile profile = testing::NetworkProfile(
        seed, {.layers = 5, .servers = static_cast<int32_t>(1 + seed % 2), .steps = 3});
    OrderDraft draft{.options = {.steps_per_worker = 20, .replications = 2},
                     .methods = kEveryMethod};
    draft.scenario.workers = 3;
    if (seed % 3 == 0) draft.scenario.servers().multiplexing = WindowDraft{.bytes = 300'000};
    for (const OrderResult& order : Answer(profile, draft).orders) {
      if (order.method == OrderMethod::kGraph) continue;
      ThroughputDraft again{.scenario = draft.scenario, .options = draft.options};
      for (const RankedTransfer& transfer : order.transfers)
        again.scenario->servers().transfer_priorities[transfer.name] = transfer.rank;
      const auto predicted =
          PredictThroughput(profile, *ResolveThroughput(profile, again), NeverStop);
      ASSERT_TRUE(predicted.ok());
      EXPECT_EQ(predicted->predictions[0].steps_per_second, order.steps_per_second);
      // What the recording leaves open moves all orders alike.
      EXPECT_EQ(predicted->predictions[0].simulation_interval.upper,
                order.confidence_interval.upper);
    }
  }
}

TEST(OrderTest, TacIsTheScenariosTacAndGraphAndRandomAreTheScenariosOwn) {
  const Profile profile = testing::NetworkProfile(3, {.layers = 6, .steps = 4});
  OrderDraft draft{.options = {.steps_per_worker = 30, .replications = 2},
                   .methods = {OrderMethod::kGraph, OrderMethod::kTac}};
  draft.scenario.workers = 2;
  const OrderAnswer answer = Answer(profile, draft);
  const auto predict = [&](TransferOrder order) {
    ThroughputDraft throughput{.scenario = draft.scenario, .options = draft.options};
    throughput.scenario->servers().transfer_order = order;
    return PredictThroughput(profile, *ResolveThroughput(profile, throughput), NeverStop)
        ->predictions[0]
        .steps_per_second;
  };
  EXPECT_EQ(answer.orders[0].steps_per_second, predict(TransferOrder::kGraph));
  EXPECT_EQ(answer.orders[1].steps_per_second, predict(TransferOrder::kTac));
  ASSERT_EQ(answer.baselines.size(), 3u);
  for (const OrderBaseline& baseline : answer.baselines)
    EXPECT_EQ(baseline.steps_per_second, predict(baseline.order));
  EXPECT_EQ(answer.baselines[0].order, TransferOrder::kRecorded);
  EXPECT_EQ(answer.baselines[1].order, TransferOrder::kGraph);
  EXPECT_EQ(answer.baselines[2].order, TransferOrder::kRandom);
  EXPECT_NE(answer.baselines[1].steps_per_second, answer.baselines[2].steps_per_second);
}

TEST(OrderTest, ChosenIsTheShortestAndTheFirstOfSeveral) {
  const Profile reversed =
      testing::NetworkProfile(5, {.layers = 6, .training = false, .downloads_reversed = true});
  EXPECT_EQ(
      Answer(reversed, {.options = ShortRun(),
                        .methods = {OrderMethod::kGraph, OrderMethod::kReverse, OrderMethod::kTac}})
          .chosen,
      OrderMethod::kReverse);
  EXPECT_EQ(
      Answer(reversed, {.options = ShortRun(),
                        .methods = {OrderMethod::kGraph, OrderMethod::kTac, OrderMethod::kReverse}})
          .chosen,
      OrderMethod::kTac);
}

TEST(OrderTest, WithoutMethodsFiveAreTriedInAFixedOrder) {
  std::vector<OrderMethod> methods;
  for (const OrderResult& order :
       Answer(testing::NetworkProfile(1, {}), {.options = ShortRun()}).orders)
    methods.push_back(order.method);
  EXPECT_THAT(methods, ElementsAre(OrderMethod::kTic, OrderMethod::kTac, OrderMethod::kReverse,
                                   OrderMethod::kRecorded, OrderMethod::kGraph));
}

// Steps of 10 and of 40 ms: the first to finish waits 30 of 40 ms where the two workers draw
// different ones.
TEST(OrderTest, StragglerEffectIsTheShareOfAnIterationSpentWaiting) {
  ProfileDraft draft = testing::DraftOf({{.name = "compute", .time_ns = 10'000'000}});
  draft.steps.push_back({.start_ns = {0}, .end_ns = {40'000'000}});
  const Profile profile = Profile::Create(std::move(draft)).value();
  OrderDraft order{.options = {.steps_per_worker = 50, .replications = 1},
                   .methods = {OrderMethod::kGraph}};
  order.scenario.workers = 2;
  EXPECT_NEAR(Answer(profile, order).orders[0].straggler_effect, 0.75, 1e-9);
  order.scenario.workers = 1;
  EXPECT_EQ(Answer(profile, order).orders[0].straggler_effect, 0);
}

// TicTac, 6.3: "Enforcing any order reduces straggler effect regardless of the quality of the
// chosen order."
TEST(OrderTest, LikeWorkersWithOneOrderEnforcedDoNotWaitForEachOther) {
  const Profile profile = testing::NetworkProfile(2, {.layers = 8});
  OrderDraft draft{.options = {.steps_per_worker = 20, .replications = 1}, .methods = kEveryMethod};
  draft.scenario.workers = 4;
  for (const OrderResult& order : Answer(profile, draft).orders)
    EXPECT_LT(order.straggler_effect, 1e-9);
}

TEST(OrderTest, TransfersWithoutAMeasuredTimeAreNamed) {
  ProfileDraft draft =
      testing::DraftOf({{.name = "a", .resource = Resource::kDownlink, .time_ns = 10},
                        {.name = "b", .resource = Resource::kDownlink, .time_ns = 10},
                        {.name = "c", .resource = Resource::kUplink, .time_ns = 10},
                        {.name = "compute", .time_ns = 0}});
  draft.steps.push_back(draft.steps[0]);
  draft.steps[0].end_ns = {0, 0, 0, 0};
  draft.steps[1].end_ns = {0, 7, 0, 5};
  EXPECT_THAT(Answer(Profile::Create(std::move(draft)).value(), {.options = ShortRun()})
                  .unmeasured_transfers,
              ElementsAre("a", "c"));
}

TEST(OrderTest, AProfileWithoutDownloadsHasEmptyOrders) {
  const Profile profile =
      Profile::Create(testing::DraftOf({{.name = "compute", .time_ns = 1000}})).value();
  const OrderAnswer answer = Answer(profile, {.options = ShortRun(), .methods = kEveryMethod});
  for (const OrderResult& order : answer.orders) {
    EXPECT_TRUE(order.transfers.empty());
    EXPECT_EQ(order.makespan_ns, 1000);
    EXPECT_EQ(order.scheduling_efficiency, 1);  // the bounds coincide
    EXPECT_NEAR(order.steps_per_second, 1e6, 1e-3);
  }
  EXPECT_EQ(answer.speedup_bound, 0);
}

TEST(OrderTest, AllFaultsAreReportedAtOnceWithTheirPaths) {
  OrderDraft draft{.methods = {OrderMethod::kTac, OrderMethod::kGraph, OrderMethod::kTac}};
  draft.scenario.workers = 0;
  draft.scenario.servers().transfer_order = TransferOrder::kTac;
  draft.scenario.servers().transfer_priorities = {{"recv0", 1}};
  draft.options.replications = 0;
  const absl::Status status = ResolveOrder(testing::NetworkProfile(1, {}), draft).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(DetailsOf(status).reason, "REQUEST_INVALID");
  std::vector<std::string> fields;
  for (const Fault& fault : DetailsOf(status).faults) fields.push_back(fault.field);
  EXPECT_THAT(fields,
              UnorderedElementsAre("scenario.workers", "scenario.parameter_servers.transfer_order",
                                   "scenario.parameter_servers.transfer_priorities",
                                   "options.replications", "methods[2]"));
}

TEST(OrderTest, SearchReachesTheBestMakespanOfEveryGoldenCase) {
  for (const testing::GoldenOrderCase& golden : testing::ReadGoldenOrderCases()) {
    const OrderAnswer answer =
        Answer(testing::ProfileOf(golden),
               {.options = ShortRun(), .methods = {OrderMethod::kTac, OrderMethod::kSearch}});
    const OrderResult& search = answer.orders[1];
    EXPECT_EQ(search.makespan_ns, golden.best_makespan_ns);
    EXPECT_TRUE(search.is_best);
    EXPECT_EQ(answer.orders[0].makespan_ns == search.makespan_ns,
              answer.chosen == OrderMethod::kTac);
  }
}

TEST(OrderTest, SearchIsNeverWorseThanAnyOtherMethodAndNoOrderBeatsTheLowerBound) {
  for (uint64_t seed = 0; seed < 40; ++seed) {
    SCOPED_TRACE(seed);
    const Profile profile =
        testing::NetworkProfile(seed, {.layers = static_cast<int32_t>(4 + seed % 12),
                                       .servers = static_cast<int32_t>(1 + seed % 3),
                                       .downloads_reversed = seed % 2 == 0});
    OrderDraft draft{.options = ShortRun(), .methods = kEveryMethod};
    if (seed % 4 == 1)
      draft.scenario = {.communication =
                            ParameterServersDraft{.multiplexing = WindowDraft{.bytes = 200'000}}};
    const OrderAnswer answer = Answer(profile, draft);
    const OrderResult& search = answer.orders.back();
    for (const OrderResult& other : answer.orders) {
      EXPECT_LE(search.makespan_ns, other.makespan_ns);
      EXPECT_GE(other.makespan_ns, answer.order_lower_bound_ns);
      EXPECT_NEAR(other.gap,
                  static_cast<double>(other.makespan_ns) /
                          static_cast<double>(answer.order_lower_bound_ns) -
                      1,
                  1e-6);
      if (other.is_best) {
        EXPECT_EQ(other.makespan_ns, search.makespan_ns);
      }
    }
    EXPECT_GE(answer.order_lower_bound_ns, answer.lower_makespan_ns);
  }
}

TEST(OrderTest, RanksAreListedAmongEachServersTransfersToo) {
  for (uint64_t seed = 0; seed < 10; ++seed) {
    SCOPED_TRACE(seed);
    const Profile profile = testing::NetworkProfile(seed, {.layers = 9, .servers = 3});
    for (const OrderResult& order :
         Answer(profile, {.options = ShortRun(), .methods = kEveryMethod}).orders) {
      std::map<int32_t, int32_t> next;
      for (const RankedTransfer& transfer : order.transfers)
        EXPECT_EQ(transfer.server_rank, next[transfer.parameter_server]++);
      EXPECT_EQ(next.size(), 3u);
    }
  }
}

// Two servers, and a worker whose own link carries twice what one of theirs does: both downloads
// travel at once, in 100 ns, not in 160.
TEST(OrderTest, LinksOfSeveralServersAreBusyAtOnceWhereTheWorkersOwnCarriesThem) {
  ProfileDraft draft = testing::DraftOf(
      {{.name = "a", .resource = Resource::kDownlink, .time_ns = 100, .parameter_server = 0},
       {.name = "b", .resource = Resource::kDownlink, .time_ns = 60, .parameter_server = 1},
       {.name = "compute", .time_ns = 40, .waiting_for = {0, 1}}});
  draft.parameter_servers = 2;
  OrderDraft order{.options = ShortRun()};
  order.scenario.worker_groups = {
      {.count = 1, .bandwidth_bytes_per_second = 2 * testing::kNanosecondPerByte}};
  const OrderAnswer answer = Answer(Profile::Create(std::move(draft)).value(), order);
  EXPECT_EQ(answer.lower_makespan_ns, 100);
  EXPECT_EQ(answer.upper_makespan_ns, 200);
  for (const OrderResult& result : answer.orders) EXPECT_EQ(result.makespan_ns, 140);
}

TEST(OrderTest, SpeedupsAreQuotientsWithIntervalsFromTheEndsOfBoth) {
  const Profile profile = testing::NetworkProfile(4, {.layers = 6, .steps = 4});
  OrderDraft draft{.options = {.steps_per_worker = 60, .replications = 3},
                   .methods = {OrderMethod::kReverse}};
  draft.scenario.workers = 2;
  const OrderAnswer answer = Answer(profile, draft);
  const OrderResult& order = answer.orders[0];
  ASSERT_EQ(order.speedups.size(), answer.baselines.size());
  for (size_t i = 0; i < order.speedups.size(); ++i) {
    const OrderSpeedup& speedup = order.speedups[i];
    const Interval& other = answer.baselines[i].confidence_interval;
    EXPECT_EQ(speedup.over, answer.baselines[i].order);
    EXPECT_DOUBLE_EQ(speedup.speedup,
                     order.steps_per_second / answer.baselines[i].steps_per_second);
    ASSERT_TRUE(speedup.confidence_interval.has_value());
    EXPECT_DOUBLE_EQ(speedup.confidence_interval->lower,
                     order.confidence_interval.lower / other.upper);
    EXPECT_DOUBLE_EQ(speedup.confidence_interval->upper,
                     order.confidence_interval.upper / other.lower);
    EXPECT_DOUBLE_EQ(speedup.confidence_interval->level, 0.9);
  }
}

TEST(OrderTest, AnOrderIsNoFasterThanOneThatMakesTheSameOfEveryRun) {
  const Profile profile = testing::NetworkProfile(4, {.layers = 6, .steps = 4});
  OrderDraft draft{.options = {.steps_per_worker = 60, .replications = 3},
                   .methods = {OrderMethod::kGraph, OrderMethod::kReverse}};
  draft.scenario.workers = 2;
  const OrderAnswer answer = Answer(profile, draft);
  for (const OrderResult& order : answer.orders) {
    for (const OrderSpeedup& speedup : order.speedups) {
      const bool is_same =
          order.method == OrderMethod::kGraph && speedup.over == TransferOrder::kGraph;
      ASSERT_TRUE(speedup.confidence_interval.has_value());
      EXPECT_EQ(speedup.confidence_interval->lower == 1, is_same) << static_cast<int>(order.method);
      EXPECT_EQ(speedup.confidence_interval->upper == 1, is_same) << static_cast<int>(order.method);
    }
  }
}

TEST(OrderTest, InferenceIsTheDownloadsAndTheForwardPass) {
  const Profile profile = testing::NetworkProfile(2, {.layers = 6});
  const Profile forward = testing::NetworkProfile(2, {.layers = 6, .training = false});
  const OrderAnswer inference =
      Answer(profile, {.options = ShortRun(), .methods = kEveryMethod, .inference = true});
  const OrderAnswer alone = Answer(forward, {.options = ShortRun(), .methods = kEveryMethod});
  EXPECT_EQ(inference.operations, 12);
  EXPECT_LT(inference.operations, Answer(profile, {.options = ShortRun()}).operations);
  for (size_t i = 0; i < alone.orders.size(); ++i)
    EXPECT_EQ(inference.orders[i].transfers.size(), alone.orders[i].transfers.size());
}

TEST(OrderTest, ASpentTimeForTheSearchLeavesTheOtherMethodsBest) {
  const Profile profile = testing::NetworkProfile(6, {.layers = 14, .downloads_reversed = true});
  const OrderQuery query =
      ResolveOrder(profile,
                   {.options = ShortRun(), .methods = {OrderMethod::kTac, OrderMethod::kSearch}})
          .value();
  int asked = 0;
  const auto spent = [&] { return ++asked > 0 ? TimeBudgetSpent() : absl::OkStatus(); };
  const absl::StatusOr<OrderAnswer> answer =
      OptimizeOrder(profile, query, NeverStop, InOrder(), {}, spent);
  ASSERT_TRUE(answer.ok()) << answer.status();
  EXPECT_LE(answer->orders[1].makespan_ns, answer->orders[0].makespan_ns);
}

TEST(OrderTest, TimesPastTheSimulatedTimeThereIsAreAnError) {
  const Profile profile = testing::DownloadThenCompute(int64_t{1} << 44, 1);
  const OrderQuery query =
      ResolveOrder(profile, {.scenario = {.bandwidth_bytes_per_second = 1}}).value();
  EXPECT_EQ(OptimizeOrder(profile, query, NeverStop).status().code(),
            absl::StatusCode::kOutOfRange);
}

TEST(OrderTest, ASpentTimeBudgetLeavesTheAnswerOfFewerReplications) {
  const Profile profile = testing::NetworkProfile(1, {.steps = 3});
  OrderDraft draft{.options = {.steps_per_worker = 500, .replications = 4}};
  draft.scenario.workers = 2;
  const OrderQuery query = ResolveOrder(profile, draft).value();
  int asked = 0;
  int limit = std::numeric_limits<int>::max();
  const auto stop = [&] { return ++asked > limit ? TimeBudgetSpent() : absl::OkStatus(); };
  const OrderAnswer whole = OptimizeOrder(profile, query, stop).value();
  limit = asked * 3 / 4;
  asked = 0;
  const absl::StatusOr<OrderAnswer> early = OptimizeOrder(profile, query, stop);
  ASSERT_TRUE(early.ok()) << early.status();
  EXPECT_LT(early->simulation.simulated_operations, whole.simulation.simulated_operations);
  EXPECT_EQ(early->orders.size(), whole.orders.size());
  EXPECT_GT(early->baselines[2].steps_per_second, 0);
  limit = 0;
  EXPECT_TRUE(IsTimeBudgetSpent(OptimizeOrder(profile, query, stop).status()));
}

TEST(OrderTest, StopsWhenTold) {
  const Profile profile = testing::NetworkProfile(1, {.layers = 50});
  const OrderQuery query = ResolveOrder(profile, {}).value();
  EXPECT_EQ(OptimizeOrder(profile, query, [] { return absl::CancelledError("enough"); }).status(),
            absl::CancelledError("enough"));
}

// Four layers whose gradients were all-reduced: layer i needs parameter i, and takes as long
// forward as that says.
Profile AllReduced(const std::vector<int64_t>& forward_ns, const std::vector<int64_t>& bytes) {
  ProfileDraft draft{.batch_size = 1, .platform = {.bandwidth_bytes_per_second = 1e9}};
  RecordedStep step;
  int64_t now = 0;
  const auto add = [&](Operation operation, int64_t length) {
    draft.operations.push_back(std::move(operation));
    step.start_ns.push_back(now);
    now += length;
    step.end_ns.push_back(now);
    return static_cast<int32_t>(draft.operations.size()) - 1;
  };
  std::vector<int32_t> before;
  for (size_t i = 0; i < forward_ns.size(); ++i) {
    before = {add({.name = "forward/" + std::to_string(i),
                   .resource = Resource::kWorker,
                   .waiting_for = before,
                   .parameter = "w" + std::to_string(i),
                   .pass = Pass::kForward},
                  forward_ns[i])};
  }
  for (size_t i = forward_ns.size(); i-- > 0;) {
    before = {add({.name = "backward/" + std::to_string(i),
                   .resource = Resource::kWorker,
                   .waiting_for = before,
                   .pass = Pass::kBackward},
                  2 * forward_ns[i])};
    add({.name = "gradient/" + std::to_string(i),
         .resource = Resource::kCollective,
         .size_bytes = bytes[i],
         .waiting_for = before,
         .parameter = "w" + std::to_string(i),
         .collective = Collective::kAllReduce},
        0);
  }
  draft.steps = {step};
  return Profile::Create(std::move(draft)).value();
}

double StepSeconds(const Profile& profile, const ScenarioDraft& scenario) {
  ThroughputDraft draft{.scenarios = {scenario}, .options = ShortRun()};
  draft.options.step_variation = StepSource::kAsRecorded;
  const ThroughputQuery query = ResolveThroughput(profile, draft).value();
  return 1 / PredictThroughput(profile, query, NeverStop)->predictions[0].steps_per_second;
}

// Of a job of all-reduces asked about with servers: every order of its downloads is tried.
TEST(OrderTest, WhatWasAllReducedIsOrderedAsTransfersToServersAre) {
  const Profile profile =
      AllReduced({3'000'000, 1'000'000, 4'000'000, 1'000'000}, {900'000, 7'000'000, 20, 4'000'000});
  ScenarioDraft servers{.workers = 1};
  servers.communication = ParameterServersDraft{.servers = 1};
  OrderDraft draft{.scenario = servers, .options = ShortRun()};
  draft.options.step_variation = StepSource::kAsRecorded;
  draft.methods = {OrderMethod::kTic, OrderMethod::kTac, OrderMethod::kSearch, OrderMethod::kGraph};
  const OrderAnswer answer = Answer(profile, draft);
  std::vector<int> order = {0, 1, 2, 3};
  double least = std::numeric_limits<double>::infinity();
  do {
    ScenarioDraft ordered = servers;
    for (size_t rank = 0; rank < order.size(); ++rank)
      ordered.servers().transfer_priorities["gradient/" + std::to_string(order[rank])] =
          static_cast<int32_t>(rank);
    least = std::min(least, StepSeconds(profile, ordered));
  } while (std::next_permutation(order.begin(), order.end()));
  ASSERT_EQ(answer.orders.size(), 4u);
  const OrderResult& searched = answer.orders[2];
  EXPECT_NEAR(1 / searched.steps_per_second, least, least * 1e-9);
  EXPECT_THAT(NamesOf(searched),
              UnorderedElementsAre("gradient/0", "gradient/1", "gradient/2", "gradient/3"));
  // The rows say what predictions do.
  for (const auto& [row, asked] :
       {std::pair(0, TransferOrder::kTic), {1, TransferOrder::kTac}, {3, TransferOrder::kGraph}}) {
    ScenarioDraft ordered = servers;
    ordered.servers().transfer_order = asked;
    EXPECT_NEAR(1 / answer.orders[Index(row)].steps_per_second, StepSeconds(profile, ordered),
                least * 1e-9);
  }
  ASSERT_EQ(answer.baselines.size(), 2u);
  EXPECT_EQ(answer.baselines[0].order, TransferOrder::kGraph);
  EXPECT_EQ(answer.baselines[1].order, TransferOrder::kRandom);
  // By default every method but the one that nothing was recorded for.
  draft.methods.clear();
  EXPECT_EQ(Answer(profile, draft).orders.size(), 4u);
  draft.methods = {OrderMethod::kRecorded};
  EXPECT_EQ(DetailsOf(ResolveOrder(profile, draft).status()).faults[0].field, "methods[0]");
}

}  // namespace
}  // namespace stepcast::order_test
