#include "core/model/scenario.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <limits>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "core/base/error.h"

namespace stepcast::scenario_test {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

ProfileDraft RecordedDraft() {
  ProfileDraft draft{.batch_size = 8,
                     .platform = {.bandwidth_bytes_per_second = 1e8,
                                  .parsing_overhead = {.seconds_per_byte = 1e-9, .seconds = 1e-6},
                                  .window_bytes = 4096}};
  draft.parameter_servers = 2;
  draft.operations = {
      {.name = "recv", .resource = Resource::kDownlink, .size_bytes = 1000, .parameter = "w"},
      {.name = "forward", .resource = Resource::kWorker, .waiting_for = {0}},
      {.name = "send",
       .resource = Resource::kUplink,
       .size_bytes = 1000,
       .waiting_for = {1},
       .parameter = "w"},
      {.name = "update",
       .resource = Resource::kParameterServer,
       .waiting_for = {2},
       .parameter = "w"},
  };
  draft.steps = {{.start_ns = {0, 10, 20, 30}, .end_ns = {10, 20, 30, 40}}};
  return draft;
}

Profile Recorded(const std::function<void(ProfileDraft&)>& change = [](ProfileDraft&) {}) {
  ProfileDraft draft = RecordedDraft();
  change(draft);
  return Profile::Create(std::move(draft)).value();
}

std::vector<std::string> Paths(const absl::Status& status) {
  std::vector<std::string> paths;
  for (const Fault& fault : DetailsOf(status).faults) paths.push_back(fault.field);
  return paths;
}

// A draft of `servers` alone.
ScenarioDraft Asked(ParameterServersDraft servers) { return {.communication = std::move(servers)}; }

Multiplexing ResolvedMultiplexing(const Profile& profile, ParameterServersDraft servers) {
  const absl::StatusOr<Scenario> scenario = ResolveScenario(profile, Asked(std::move(servers)));
  EXPECT_TRUE(scenario.ok()) << scenario.status();
  return scenario.value().servers().multiplexing;
}

TEST(ScenarioTest, WhatIsUnsetIsAsRecorded) {
  const absl::StatusOr<Scenario> scenario = ResolveScenario(Recorded(), {});
  ASSERT_TRUE(scenario.ok()) << scenario.status();
  const Scenario expected{.workers = 1,
                          .bandwidth_bytes_per_second = 1e8,
                          .communication = ParameterServers{
                              .servers = 2,
                              .parsing_overhead = {.seconds_per_byte = 1e-9, .seconds = 1e-6},
                              .synchronization = Synchronization::kAsynchronous,
                              .multiplexing = Window{.bytes = 4096},
                              .link_sharing = EqualShares{},
                              .transfer_order = TransferOrder::kGraph}};
  EXPECT_EQ(*scenario, expected);
  EXPECT_FALSE(scenario->is_synchronous());
}

TEST(ScenarioTest, WhatIsSetIsKept) {
  const ScenarioDraft draft{
      .workers = 3,
      .bandwidth_bytes_per_second = 2e9,
      .communication = ParameterServersDraft{.servers = 5,
                                             .parsing_overhead = ParsingOverhead{},
                                             .synchronization = Synchronization::kSynchronous,
                                             .multiplexing = WindowDraft{.bytes = 7},
                                             .link_sharing = FirstCome{},
                                             .transfer_order = TransferOrder::kTac},
      .start_offsets_ns = {0, 5, 86'400'000'000'000},
      .worker_groups = {{.count = 2, .compute_speed_factor = 0.5},
                        {.count = 1, .bandwidth_bytes_per_second = 1e6}}};
  const absl::StatusOr<Scenario> scenario = ResolveScenario(Recorded(), draft);
  ASSERT_TRUE(scenario.ok()) << scenario.status();
  const Scenario expected{
      .workers = 3,
      .bandwidth_bytes_per_second = 2e9,
      .communication = ParameterServers{.servers = 5,
                                        .synchronization = Synchronization::kSynchronous,
                                        .multiplexing = Window{.bytes = 7},
                                        .link_sharing = FirstCome{},
                                        .transfer_order = TransferOrder::kTac},
      .start_offsets_ns = {0, 5, 86'400'000'000'000},
      .worker_groups = {
          {.count = 2, .compute_speed_factor = 0.5, .bandwidth_bytes_per_second = 2e9},
          {.count = 1, .compute_speed_factor = 1, .bandwidth_bytes_per_second = 1e6}}};
  EXPECT_EQ(*scenario, expected);
  EXPECT_TRUE(scenario->is_synchronous());
}

// Only workers that begin each step together forget how they started.
TEST(ScenarioTest, SeveralWorkersRememberTheirStartUnlessTheyBeginStepsTogether) {
  const auto with = [](int32_t workers, Synchronization synchronization) {
    return Scenario{.workers = workers,
                    .communication = ParameterServers{.synchronization = synchronization}};
  };
  EXPECT_TRUE(with(2, Synchronization::kAsynchronous).RemembersStart());
  EXPECT_TRUE(with(2, Synchronization::kSummed).RemembersStart());
  EXPECT_TRUE(with(2, Synchronization::kSummed).is_synchronous());
  EXPECT_FALSE(with(2, Synchronization::kSynchronous).RemembersStart());
  EXPECT_FALSE(with(1, Synchronization::kSummed).RemembersStart());
  EXPECT_FALSE((Scenario{.workers = 2, .communication = AllReduce{}}.RemembersStart()));
}

struct MultiplexingCase {
  std::optional<std::variant<WholeStream, WindowDraft, RoundRobinDraft>> asked;
  int64_t recorded_window;
  Multiplexing expected;
};

TEST(ScenarioTest, MultiplexingHasItsDefaultsFromTheProfileAndFromMeasurements) {
  const std::vector<MultiplexingCase> cases = {
      {std::nullopt, 0, WholeStream{}},
      {std::nullopt, 64, Window{.bytes = 64}},
      {WholeStream{}, 0, WholeStream{}},
      {WholeStream{}, 64, WholeStream{}},
      {WindowDraft{}, 64, Window{.bytes = 64}},
      {WindowDraft{.bytes = 32}, 0, Window{.bytes = 32}},
      {WindowDraft{.bytes = 32}, 64, Window{.bytes = 32}},
      {WindowDraft{.quantum_bytes = 7}, 64, Window{.bytes = 64, .quantum_bytes = 7}},
      {WindowDraft{.quantum_bytes = 0}, 64, Window{.bytes = 64}},
      {WindowDraft{.bytes = 1, .quantum_bytes = 1}, 64, Window{.bytes = 1, .quantum_bytes = 1}},
      {RoundRobinDraft{}, 0, RoundRobin{.window_bytes = 65'536, .quantum_bytes = 1'048'576}},
      {RoundRobinDraft{}, 64, RoundRobin{.window_bytes = 64, .quantum_bytes = 1'048'576}},
      {RoundRobinDraft{.window_bytes = 32}, 64,
       RoundRobin{.window_bytes = 32, .quantum_bytes = 1'048'576}},
      {RoundRobinDraft{.quantum_bytes = 7}, 0,
       RoundRobin{.window_bytes = 65'536, .quantum_bytes = 7}},
      {RoundRobinDraft{.window_bytes = 1, .quantum_bytes = 1}, 64,
       RoundRobin{.window_bytes = 1, .quantum_bytes = 1}},
  };
  for (const MultiplexingCase& one : cases) {
    SCOPED_TRACE(&one - cases.data());
    const Profile profile =
        Recorded([&](ProfileDraft& draft) { draft.platform.window_bytes = one.recorded_window; });
    EXPECT_EQ(ResolvedMultiplexing(profile, {.multiplexing = one.asked}), one.expected);
  }
}

TEST(ScenarioTest, LinksAreSharedEquallyUnlessAskedFor) {
  const auto sharing = [](const ParameterServersDraft& draft) {
    const absl::StatusOr<Scenario> scenario = ResolveScenario(Recorded(), Asked(draft));
    EXPECT_TRUE(scenario.ok()) << scenario.status();
    return scenario.value().servers().link_sharing;
  };
  EXPECT_EQ(sharing({}), LinkSharing(EqualShares{}));
  EXPECT_EQ(sharing({.link_sharing = EqualShares{}}), LinkSharing(EqualShares{}));
  EXPECT_EQ(sharing({.link_sharing = FirstCome{}}), LinkSharing(FirstCome{}));
  EXPECT_EQ(sharing({.servers = 1, .link_sharing = TurnsDraft{}}),
            LinkSharing(Turns{.bytes = 65'160}));
  EXPECT_EQ(sharing({.servers = 1, .link_sharing = TurnsDraft{.bytes = 7}}),
            LinkSharing(Turns{.bytes = 7}));
}

TEST(ScenarioTest, PrioritiesAloneMeanExplicitOrder) {
  const absl::StatusOr<Scenario> scenario =
      ResolveScenario(Recorded(), Asked({.transfer_priorities = {{"recv", 1}, {"send", 0}}}));
  ASSERT_TRUE(scenario.ok()) << scenario.status();
  EXPECT_EQ(scenario->servers().transfer_order, TransferOrder::kExplicit);
  EXPECT_THAT(scenario->servers().transfer_priorities,
              ElementsAre(std::pair("recv", 1), std::pair("send", 0)));
}

struct BadScenario {
  std::string title;
  ScenarioDraft draft;
  std::string path;
  std::string says;
};

class BadScenarioTest : public ::testing::TestWithParam<BadScenario> {};

TEST_P(BadScenarioTest, IsRefusedAtItsPathWithTheOffendingValue) {
  const absl::Status status = ResolveScenario(Recorded(), GetParam().draft).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << status;
  EXPECT_EQ(DetailsOf(status).reason, "SCENARIO_INVALID");
  ASSERT_THAT(Paths(status), ElementsAre(GetParam().path)) << status;
  EXPECT_THAT(DetailsOf(status).faults[0].description, HasSubstr(GetParam().says));
}

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

INSTANTIATE_TEST_SUITE_P(
    Rules, BadScenarioTest,
    ::testing::ValuesIn(std::vector<BadScenario>{
        {"NoWorkers", {.workers = 0}, "workers", "0 is not from 1 to 4096"},
        {"ManyWorkers", {.workers = 4097}, "workers", "4097"},
        {"NoServers", Asked({.servers = 0}), "parameter_servers.servers", "0 is not from 1 to 256"},
        {"ManyServers", Asked({.servers = 257}), "parameter_servers.servers", "257"},
        {"NoBandwidth", {.bandwidth_bytes_per_second = 0.5}, "bandwidth_bytes_per_second", "0.5"},
        {"NanBandwidth", {.bandwidth_bytes_per_second = kNan}, "bandwidth_bytes_per_second", "nan"},
        {"AllOtherTraffic",
         {.other_traffic_fraction = 1},
         "other_traffic_fraction",
         "1 is not from 0 to 0.99"},
        {"NegativeOtherTraffic",
         {.other_traffic_fraction = -0.1},
         "other_traffic_fraction",
         "-0.1"},
        {"NanOtherTraffic", {.other_traffic_fraction = kNan}, "other_traffic_fraction", "nan"},
        {"OtherTrafficThatLeavesNothing",
         {.bandwidth_bytes_per_second = 1.5, .other_traffic_fraction = 0.5},
         "other_traffic_fraction",
         "0.5 leaves 0.75 bytes per second of a link"},
        {"NegativeOverhead", Asked({.parsing_overhead = ParsingOverhead{.seconds = -1}}),
         "parameter_servers.parsing_overhead.seconds", "-1"},
        {"HugeOverhead", Asked({.parsing_overhead = ParsingOverhead{.seconds_per_byte = 2}}),
         "parameter_servers.parsing_overhead.seconds_per_byte", "2"},
        {"NegativeWindow", Asked({.multiplexing = WindowDraft{.bytes = -1}}),
         "parameter_servers.window.bytes", "-1 is below 1"},
        {"WindowOfNothing", Asked({.multiplexing = WindowDraft{.bytes = 0}}),
         "parameter_servers.window.bytes", "0 is below 1"},
        {"NegativeQuantumOfAWindow", Asked({.multiplexing = WindowDraft{.quantum_bytes = -2}}),
         "parameter_servers.window.quantum_bytes", "-2 is below 0"},
        {"RoundRobinWithoutWindow", Asked({.multiplexing = RoundRobinDraft{.window_bytes = 0}}),
         "parameter_servers.round_robin.window_bytes", "0 is below 1"},
        {"RoundRobinWithoutQuantum", Asked({.multiplexing = RoundRobinDraft{.quantum_bytes = 0}}),
         "parameter_servers.round_robin.quantum_bytes", "0 is below 1"},
        {"NegativeQuantumOfRoundRobin",
         Asked({.multiplexing = RoundRobinDraft{.quantum_bytes = -2}}),
         "parameter_servers.round_robin.quantum_bytes", "-2 is below 1"},
        {"TurnsOfNothing", Asked({.servers = 1, .link_sharing = TurnsDraft{.bytes = 0}}),
         "parameter_servers.turns.bytes", "0 is below 1"},
        {"NegativeTurn", Asked({.servers = 1, .link_sharing = TurnsDraft{.bytes = -3}}),
         "parameter_servers.turns.bytes", "-3 is below 1"},
        {"ExplicitWithoutRanks", Asked({.transfer_order = TransferOrder::kExplicit}),
         "parameter_servers.transfer_priorities", "EXPLICIT needs them"},
        {"RanksWithoutExplicit",
         Asked({.transfer_order = TransferOrder::kTic, .transfer_priorities = {{"recv", 0}}}),
         "parameter_servers.transfer_priorities",
         "1 given, and another transfer_order than EXPLICIT"},
        {"RankOfNoTransfer", Asked({.transfer_priorities = {{"forward", 0}}}),
         "parameter_servers.transfer_priorities[\"forward\"]", "\"forward\" is not a transfer"},
        {"NegativeRank", Asked({.transfer_priorities = {{"recv", -4}}}),
         "parameter_servers.transfer_priorities[\"recv\"]", "-4 is a negative rank"},
        {"OffsetsForOthers",
         {.workers = 2, .start_offsets_ns = {1}},
         "start_offsets_ns",
         "1 given for 2 workers"},
        {"NegativeOffset",
         {.workers = 2, .start_offsets_ns = {1, -1}},
         "start_offsets_ns[1]",
         "-1 ns is not from 0"},
        {"LateOffset",
         {.workers = 1, .start_offsets_ns = {172'800'000'000'000}},
         "start_offsets_ns[0]",
         "172800 s is not from 0 to 86400 s"},
        {"GroupsTooSmall",
         {.workers = 3, .worker_groups = {{.count = 1}, {.count = 1}}},
         "worker_groups",
         "add up to 2, not to 3"},
        {"ManyGroups",
         {.workers = 1, .worker_groups = {{.count = 1}, {.count = 1}}},
         "worker_groups",
         "2 groups for 1 workers"},
        {"EmptyGroup",
         {.workers = 2, .worker_groups = {{.count = 2}, {.count = 0}}},
         "worker_groups[1].count",
         "0 is below 1"},
        {"HaltedGroup",
         {.worker_groups = {{.count = 1, .compute_speed_factor = 0}}},
         "worker_groups[0].compute_speed_factor",
         "0 is not from 1e-06"},
        {"NanGroup",
         {.worker_groups = {{.count = 1, .compute_speed_factor = kNan}}},
         "worker_groups[0].compute_speed_factor",
         "nan"},
        {"UnlinkedGroup",
         {.worker_groups = {{.count = 1, .bandwidth_bytes_per_second = 0}}},
         "worker_groups[0].bandwidth_bytes_per_second",
         "0 is not"},
    }),
    [](const auto& bad) { return bad.param.title; });

// Its default is the recorded window, and there is none.
TEST(ScenarioTest, AWindowOfAProfileWithoutOneMustBeSaid) {
  const Profile profile = Recorded([](ProfileDraft& draft) { draft.platform.window_bytes = 0; });
  const absl::Status status =
      ResolveScenario(profile, Asked({.multiplexing = WindowDraft{}})).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  ASSERT_THAT(Paths(status), ElementsAre("parameter_servers.window.bytes"));
}

TEST(ScenarioTest, EveryFaultIsReportedAtOnce) {
  const absl::Status status =
      ResolveScenario(
          Recorded(),
          {.workers = 2,
           .bandwidth_bytes_per_second = -1,
           .communication =
               ParameterServersDraft{
                   .multiplexing = RoundRobinDraft{.window_bytes = -1, .quantum_bytes = 0},
                   .link_sharing = TurnsDraft{.bytes = 0},
                   .transfer_order = TransferOrder::kExplicit},
           .start_offsets_ns = {3}})
          .status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(
      Paths(status),
      ElementsAre("bandwidth_bytes_per_second", "parameter_servers.round_robin.window_bytes",
                  "parameter_servers.round_robin.quantum_bytes", "parameter_servers.turns.bytes",
                  "parameter_servers.transfer_priorities", "start_offsets_ns"));
}

TEST(ScenarioTest, ServicesHaveALimitThatIsReachedExactly) {
  // Two transfers of 1000 bytes: after a window of 400 each has 600 left, in 6 services of 100 or 7
  // of 99.
  const ScenarioLimits limits{.max_turns = 12};
  const auto check = [&](const auto& six, const auto& seven, const std::string& path) {
    EXPECT_TRUE(ResolveScenario(Recorded(), Asked({.multiplexing = six}), limits).ok());
    const absl::Status status =
        ResolveScenario(Recorded(), Asked({.multiplexing = seven}), limits).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    ASSERT_THAT(Paths(status), ElementsAre(path));
    EXPECT_THAT(DetailsOf(status).faults[0].description, HasSubstr("99 makes 14 turns or more"));
    EXPECT_THAT(DetailsOf(status).faults[0].description, HasSubstr("max_turns = 12"));
  };
  check(WindowDraft{.bytes = 400, .quantum_bytes = 100},
        WindowDraft{.bytes = 400, .quantum_bytes = 99}, "parameter_servers.window.quantum_bytes");
  check(RoundRobinDraft{.window_bytes = 400, .quantum_bytes = 100},
        RoundRobinDraft{.window_bytes = 400, .quantum_bytes = 99},
        "parameter_servers.round_robin.quantum_bytes");
}

// Turns over two links are simulated one by one: of two transfers of 1000 bytes 12
// behind the first ones of 150 bytes, 14 of 141.
TEST(ScenarioTest, TurnsOnTwoLinksHaveThatLimitToo) {
  const ScenarioLimits limits{.max_turns = 12};
  const auto in_turns = [&](int64_t bytes, std::vector<WorkerGroup> groups) {
    const ScenarioDraft draft{
        .workers = 1,
        .communication =
            ParameterServersDraft{.servers = 1, .link_sharing = TurnsDraft{.bytes = bytes}},
        .worker_groups = std::move(groups)};
    return ResolveScenario(Recorded(), draft, limits).status();
  };
  EXPECT_TRUE(in_turns(150, {{.count = 1}}).ok());
  EXPECT_THAT(Paths(in_turns(141, {{.count = 1}})), ElementsAre("parameter_servers.turns.bytes"));
  EXPECT_TRUE(in_turns(141, {}).ok());
}

TEST(ScenarioTest, AServiceForAllTheRestIsNeverTooMany) {
  const Profile profile =
      Recorded([](ProfileDraft& draft) { draft.operations[0].size_bytes = int64_t{1} << 44; });
  const auto with_quantum = [&](int64_t quantum_bytes) {
    return ResolveScenario(
        profile, Asked({.multiplexing = WindowDraft{.bytes = 1, .quantum_bytes = quantum_bytes}}));
  };
  EXPECT_TRUE(with_quantum(int64_t{1} << 44).ok());
  EXPECT_THAT(Paths(with_quantum(1).status()),
              ElementsAre("parameter_servers.window.quantum_bytes"));
}

TEST(ScenarioTest, AnotherNumberOfServersNeedsParametersToPlace) {
  for (const size_t nameless : {0, 2, 3}) {
    const Profile profile =
        Recorded([&](ProfileDraft& draft) { draft.operations[nameless].parameter.clear(); });
    EXPECT_TRUE(ResolveScenario(profile, Asked({.servers = 2})).ok());
    const absl::Status status = ResolveScenario(profile, Asked({.servers = 3})).status();
    ASSERT_THAT(Paths(status), ElementsAre("parameter_servers.servers"));
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    EXPECT_THAT(DetailsOf(status).faults[0].description,
                HasSubstr("operations[" + std::to_string(nameless) + "]"));
  }
}

TEST(ScenarioTest, TheLimitsAreTheCallers) {
  const ScenarioLimits limits{
      .max_workers = 2, .max_parameter_servers = 1, .max_start_offset_ns = 3};
  EXPECT_THAT(
      Paths(
          ResolveScenario(Recorded(), {.workers = 2, .start_offsets_ns = {3, 4}}, limits).status()),
      ElementsAre("parameter_servers.servers", "start_offsets_ns[1]"));
}

// The figures of one machine with eight workers.
ClusterDraft Machines() {
  return {.bandwidth_bytes_per_second = 2e11,
          .workers_per_node = 8,
          .intra_node_bandwidth_bytes_per_second = 3e11,
          .latency_seconds = 5e-6,
          .intra_node_latency_seconds = 3e-6,
          .algorithm = CollectiveAlgorithm::kTree};
}

// The recorded job with its gradient in a collective.
Profile Meeting() {
  ProfileDraft draft = RecordedDraft();
  draft.parameter_servers = 1;
  draft.platform.parsing_overhead = {};
  draft.platform.window_bytes = 0;
  draft.operations = {{.name = "compute", .resource = Resource::kWorker},
                      {.name = "gradient",
                       .resource = Resource::kCollective,
                       .size_bytes = 1000,
                       .waiting_for = {0},
                       .collective = Collective::kAllReduce}};
  draft.steps = {{.start_ns = {0, 10}, .end_ns = {10, 20}}};
  return Profile::Create(std::move(draft)).value();
}

TEST(ClusterTest, FillsWhatCollectivesLeaveEmpty) {
  const auto scenario = ResolveScenario(Meeting(), {.workers = 16, .cluster = Machines()});
  ASSERT_TRUE(scenario.ok()) << scenario.status();
  EXPECT_EQ(scenario->bandwidth_bytes_per_second, 2e11);
  const AllReduce& job = scenario->all_reduce();
  EXPECT_EQ(job.workers_per_node, 8);
  EXPECT_EQ(job.intra_node_bandwidth_bytes_per_second, 3e11);
  EXPECT_EQ(job.latency_seconds, 5e-6);
  EXPECT_EQ(job.intra_node_latency_seconds, 3e-6);
  EXPECT_EQ(job.algorithm, CollectiveAlgorithm::kTree);
}

TEST(ClusterTest, TheScenariosOwnFiguresGoBeforeIt) {
  const auto scenario = ResolveScenario(
      Meeting(), {.workers = 4,
                  .bandwidth_bytes_per_second = 1e9,
                  .cluster = Machines(),
                  .communication = AllReduceDraft{.algorithm = CollectiveAlgorithm::kRing,
                                                  .latency_seconds = 1e-3,
                                                  .workers_per_node = 4,
                                                  .intra_node_bandwidth_bytes_per_second = 4e9,
                                                  .intra_node_latency_seconds = 2e-3}});
  ASSERT_TRUE(scenario.ok()) << scenario.status();
  EXPECT_EQ(scenario->bandwidth_bytes_per_second, 1e9);
  const AllReduce& job = scenario->all_reduce();
  EXPECT_EQ(job.workers_per_node, 4);
  EXPECT_EQ(job.intra_node_bandwidth_bytes_per_second, 4e9);
  EXPECT_EQ(job.latency_seconds, 1e-3);
  EXPECT_EQ(job.intra_node_latency_seconds, 2e-3);
  EXPECT_EQ(job.algorithm, CollectiveAlgorithm::kRing);
}

TEST(OtherTrafficTest, TakesAShareOfEveryLinkBetweenNodes) {
  const auto of_servers = ResolveScenario(
      Recorded(),
      {.workers = 3,
       .other_traffic_fraction = 0.25,
       .worker_groups = {{.count = 2}, {.count = 1, .bandwidth_bytes_per_second = 4e8}}});
  ASSERT_TRUE(of_servers.ok()) << of_servers.status();
  EXPECT_EQ(of_servers->bandwidth_bytes_per_second, 0.75e8);
  EXPECT_EQ(of_servers->worker_groups[0].bandwidth_bytes_per_second, 0.75e8);
  EXPECT_EQ(of_servers->worker_groups[1].bandwidth_bytes_per_second, 3e8);
  const auto of_cluster = ResolveScenario(
      Meeting(), {.workers = 16, .other_traffic_fraction = 0.5, .cluster = Machines()});
  ASSERT_TRUE(of_cluster.ok()) << of_cluster.status();
  EXPECT_EQ(of_cluster->bandwidth_bytes_per_second, 1e11);
  EXPECT_EQ(of_cluster->all_reduce().intra_node_bandwidth_bytes_per_second, 3e11);
  const auto of_racks = ResolveScenario(
      Meeting(), {.workers = 8,
                  .other_traffic_fraction = 0.5,
                  .communication = AllReduceDraft{.fidelity = Fidelity::kExpanded,
                                                  .workers_per_rack = 4,
                                                  .rack_bandwidth_bytes_per_second = 2e8}});
  ASSERT_TRUE(of_racks.ok()) << of_racks.status();
  EXPECT_EQ(of_racks->all_reduce().rack_bandwidth_bytes_per_second, 1e8);
}

TEST(OtherTrafficTest, IsNotOfMeasuredTimes) {
  const auto scenario = ResolveScenario(
      Meeting(), {.workers = 8,
                  .other_traffic_fraction = 0.5,
                  .communication = AllReduceDraft{.measured = {{.kind = Collective::kAllReduce,
                                                                .workers = 8,
                                                                .size_bytes = 1000,
                                                                .seconds = 1e-3}}}});
  EXPECT_THAT(Paths(scenario.status()), ElementsAre("other_traffic_fraction"));
}

TEST(ClusterTest, MeasuredTimesGoBeforeItsAlgorithm) {
  const auto scenario = ResolveScenario(
      Meeting(), {.workers = 8,
                  .cluster = Machines(),
                  .communication = AllReduceDraft{.measured = {{.kind = Collective::kAllReduce,
                                                                .workers = 8,
                                                                .size_bytes = 1000,
                                                                .seconds = 1e-3}}}});
  ASSERT_TRUE(scenario.ok()) << scenario.status();
  EXPECT_EQ(scenario->all_reduce().algorithm, CollectiveAlgorithm::kMeasured);
  EXPECT_TRUE(scenario->assumed.Has(Assumed::kLinksUnused));
}

// Figures that measured times contain have no effect beside them, and that is told.
TEST(ScenarioTest, LinksBesideMeasuredTimesAreToldToCountForNothing) {
  const auto is_told = [](const std::function<void(ScenarioDraft&, AllReduceDraft&)>& change) {
    ScenarioDraft draft{.workers = 2, .bandwidth_bytes_per_second = 1e9};
    AllReduceDraft job{
        .measured = {
            {.kind = Collective::kAllReduce, .workers = 2, .size_bytes = 1000, .seconds = 1e-3}}};
    change(draft, job);
    draft.communication = job;
    return ResolveScenario(Meeting(), draft).value().assumed.Has(Assumed::kLinksUnused);
  };
  EXPECT_FALSE(is_told([](auto&, auto&) {}));
  EXPECT_TRUE(is_told([](auto&, AllReduceDraft& job) { job.reduction_seconds_per_byte = 1e-9; }));
  EXPECT_TRUE(is_told([](auto&, AllReduceDraft& job) {
    job.workers_per_node = 2;
    job.intra_node_bandwidth_bytes_per_second = 2e9;
  }));
  EXPECT_TRUE(is_told([](ScenarioDraft& draft, auto&) {
    draft.worker_groups = {{.count = 1}, {.count = 1, .bandwidth_bytes_per_second = 1e8}};
  }));
  // A reply's scenario has every field set, to what is in force.
  EXPECT_FALSE(is_told([](ScenarioDraft& draft, AllReduceDraft& job) {
    job.reduction_seconds_per_byte = 0;
    job.intra_node_bandwidth_bytes_per_second = 1e9;
    job.intra_node_latency_seconds = 0;
    draft.worker_groups = {{.count = 2, .bandwidth_bytes_per_second = 1e9}};
  }));
}

TEST(ClusterTest, OfAJobWithParameterServersTheBandwidthCountsAndTheKindStays) {
  const auto scenario = ResolveScenario(Recorded(), {.workers = 9, .cluster = Machines()});
  ASSERT_TRUE(scenario.ok()) << scenario.status();
  EXPECT_TRUE(scenario->has_servers());
  EXPECT_EQ(scenario->bandwidth_bytes_per_second, 2e11);
  const auto plain =
      ResolveScenario(Recorded(), {.workers = 9, .bandwidth_bytes_per_second = 2e11});
  ASSERT_TRUE(plain.ok());
  EXPECT_EQ(*scenario, *plain);
  // Workers of a node share its link, and each has all of it.
  EXPECT_TRUE(scenario->assumed.Has(Assumed::kNodeLinks));
  EXPECT_FALSE(plain->assumed.Has(Assumed::kNodeLinks));
}

TEST(ClusterTest, WhatIsWrongWithItIsSaidOfIt) {
  const auto faults = [](const std::function<void(ClusterDraft&)>& change) {
    ClusterDraft cluster = Machines();
    change(cluster);
    return Paths(ResolveScenario(Meeting(), {.cluster = cluster}).status());
  };
  EXPECT_THAT(faults([](ClusterDraft& cluster) { cluster = {}; }),
              ElementsAre("cluster.bandwidth_bytes_per_second"));
  EXPECT_THAT(
      faults([](ClusterDraft& cluster) { cluster.intra_node_bandwidth_bytes_per_second.reset(); }),
      ElementsAre("cluster.intra_node_bandwidth_bytes_per_second"));
  EXPECT_THAT(
      faults([](ClusterDraft& cluster) {
        cluster = {.bandwidth_bytes_per_second = std::numeric_limits<double>::quiet_NaN(),
                   .workers_per_node = 0,
                   .intra_node_bandwidth_bytes_per_second = 0,
                   .latency_seconds = 11,
                   .intra_node_latency_seconds = -1,
                   .algorithm = CollectiveAlgorithm::kMeasured};
      }),
      ElementsAre("cluster.bandwidth_bytes_per_second", "cluster.workers_per_node",
                  "cluster.intra_node_bandwidth_bytes_per_second", "cluster.latency_seconds",
                  "cluster.intra_node_latency_seconds", "cluster.algorithm"));
  // Also where it would count for nothing.
  ClusterDraft bad = Machines();
  bad.latency_seconds = -1;
  EXPECT_THAT(Paths(ResolveScenario(Recorded(), {.cluster = bad}).status()),
              ElementsAre("cluster.latency_seconds"));
}

// Eight layers, each with a gradient where there are any.
Profile Layers(int32_t devices_per_worker, bool has_gradients = true,
               std::vector<int64_t> recorded_buckets = {}, int64_t output_bytes = 0) {
  ProfileDraft draft{.batch_size = 1, .platform = {.bandwidth_bytes_per_second = 1e8}};
  draft.devices_per_worker = devices_per_worker;
  constexpr int32_t kLayers = 8;
  for (int32_t i = 0; i < 2 * kLayers; ++i) {
    const bool is_forward = i < kLayers;
    draft.operations.push_back(
        {.name = (is_forward ? "forward/" : "backward/") +
                 std::to_string(is_forward ? i : 2 * kLayers - 1 - i),
         .resource = Resource::kWorker,
         .waiting_for = i == 0 ? std::vector<int32_t>{} : std::vector<int32_t>{i - 1},
         .pass = is_forward ? Pass::kForward : Pass::kBackward,
         .output_bytes = is_forward ? output_bytes : 0});
  }
  for (int32_t i = kLayers; has_gradients && i < 2 * kLayers; ++i)
    draft.operations.push_back({.name = "gradient/" + std::to_string(i),
                                .resource = Resource::kCollective,
                                .size_bytes = 100,
                                .waiting_for = {i},
                                .collective = Collective::kAllReduce});
  RecordedStep& step = draft.steps.emplace_back();
  for (size_t i = 0; i < draft.operations.size(); ++i) {
    step.start_ns.push_back(static_cast<int64_t>(i) * 10);
    step.end_ns.push_back(static_cast<int64_t>(i) * 10 + 10);
  }
  if (!recorded_buckets.empty())
    draft.buckets = RecordedBuckets{.sizes_bytes = std::move(recorded_buckets)};
  return Profile::Create(std::move(draft)).value();
}

absl::StatusOr<Scenario> ResolvePipelined(const Profile& profile, ScenarioDraft draft) {
  draft.workers = 2;
  draft.pipeline->micro_batches = 8;
  return ResolveScenario(profile, draft, {.pipelines = true});
}

TEST(PipelineScenarioTest, DevicesOfANodeShareItsNetwork) {
  struct Case {
    int32_t stages;
    int32_t devices_per_worker;
    std::optional<int32_t> nodes;  // as asked for
    double of_ring;
    int32_t replicas_of_node;
    double of_transfers;
    int32_t nodes_of_replica;
  };
  const ClusterDraft cluster{.bandwidth_bytes_per_second = 8e9,
                             .workers_per_node = 4,
                             .intra_node_bandwidth_bytes_per_second = 1e11};
  for (const Case& one : {Case{1, 4, {}, 2e9, 1, 1e11, 1}, Case{4, 1, {}, 2e9, 1, 1e11, 1},
                          Case{2, 1, {}, 4e9, 2, 1e11, 1}, Case{2, 2, {}, 2e9, 1, 1e11, 1},
                          Case{3, 1, {}, 8e9 / 3, 1, 1e11, 1},
                          // A device of every stage sends to the next node, not all of a node do.
                          Case{8, 1, {}, 2e9, 1, 8e9, 2}, Case{4, 2, {}, 2e9, 1, 4e9, 2},
                          Case{8, 4, {}, 2e9, 1, 2e9, 8}, Case{4, 8, {}, 2e9, 1, 2e9, 8},
                          Case{4, 1, 2, 4e9, 1, 8e9, 2}, Case{4, 1, 4, 8e9, 1, 8e9, 4}}) {
    SCOPED_TRACE(::testing::Message() << one.stages << " stages of " << one.devices_per_worker);
    ScenarioDraft draft{
        .cluster = cluster,
        .pipeline = PipelineDraft{.stages = one.stages, .nodes_per_replica = one.nodes}};
    const Profile profile = Layers(one.devices_per_worker);
    const absl::StatusOr<Scenario> scenario = ResolvePipelined(profile, draft);
    ASSERT_TRUE(scenario.ok()) << scenario.status();
    EXPECT_DOUBLE_EQ(scenario->bandwidth_bytes_per_second, one.of_ring);
    EXPECT_EQ(scenario->all_reduce().workers_per_node, one.replicas_of_node);
    EXPECT_DOUBLE_EQ(scenario->pipeline->bandwidth_bytes_per_second, one.of_transfers);
    EXPECT_EQ(scenario->pipeline->nodes_per_replica, one.nodes_of_replica);
    draft.bandwidth_bytes_per_second = 3e8;
    EXPECT_EQ(ResolvePipelined(profile, draft)->bandwidth_bytes_per_second, 3e8);
  }
}

// Replicas of several devices are placed as a pipeline of one stage: each device is in a ring of
// its own.
TEST(ScenarioTest, WorkersOfSeveralDevicesFillNodesToo) {
  struct Case {
    int32_t devices_per_worker;
    double of_ring;
    int32_t workers_of_node;
    int64_t nodes_of_eight;
  };
  const ClusterDraft cluster{.bandwidth_bytes_per_second = 8e9,
                             .workers_per_node = 4,
                             .intra_node_bandwidth_bytes_per_second = 1e11};
  for (const Case& one : {Case{1, 8e9, 4, 2}, Case{2, 4e9, 2, 4}, Case{3, 8e9 / 3, 1, 8},
                          Case{4, 2e9, 1, 8}, Case{8, 2e9, 1, 16}}) {
    SCOPED_TRACE(one.devices_per_worker);
    const Profile profile = Layers(one.devices_per_worker);
    const Scenario scenario = ResolveScenario(profile, {.workers = 8, .cluster = cluster}).value();
    EXPECT_DOUBLE_EQ(scenario.bandwidth_bytes_per_second, one.of_ring);
    EXPECT_EQ(scenario.workers_per_node(), one.workers_of_node);
    EXPECT_EQ(scenario.NodesOf(8), one.nodes_of_eight);
    const Scenario pipelined =
        ResolveScenario(profile,
                        {.workers = 8,
                         .cluster = cluster,
                         .pipeline = PipelineDraft{.stages = 1, .micro_batches = 1}},
                        {.pipelines = true})
            .value();
    EXPECT_EQ(pipelined.bandwidth_bytes_per_second, scenario.bandwidth_bytes_per_second);
    EXPECT_EQ(pipelined.workers_per_node(), scenario.workers_per_node());
    EXPECT_EQ(pipelined.NodesOf(8), scenario.NodesOf(8));
    // A reply's scenario has no cluster.
    const AllReduce& job = scenario.all_reduce();
    const ScenarioDraft told{
        .workers = 8,
        .bandwidth_bytes_per_second = scenario.bandwidth_bytes_per_second,
        .nodes_per_worker = scenario.nodes_per_worker,
        .communication = AllReduceDraft{
            .workers_per_node = job.workers_per_node,
            .intra_node_bandwidth_bytes_per_second = job.intra_node_bandwidth_bytes_per_second}};
    EXPECT_EQ(ResolveScenario(profile, told)->NodesOf(8), scenario.NodesOf(8));
  }
}

TEST(ScenarioTest, NodesOfAWorkerAreThoseOfItsDevices) {
  const Profile profile = Layers(4);
  EXPECT_EQ(ResolveScenario(profile, {.workers = 3, .nodes_per_worker = 4})->NodesOf(3), 12);
  EXPECT_EQ(ResolveScenario(profile, {.workers = 3, .nodes_per_worker = 1})->NodesOf(3), 3);
  // More than the cluster's need are taken.
  const ClusterDraft cluster{.bandwidth_bytes_per_second = 8e9,
                             .workers_per_node = 4,
                             .intra_node_bandwidth_bytes_per_second = 1e11};
  const Scenario spread =
      ResolveScenario(profile, {.workers = 3, .cluster = cluster, .nodes_per_worker = 2}).value();
  EXPECT_EQ(spread.NodesOf(3), 6);
  EXPECT_DOUBLE_EQ(spread.bandwidth_bytes_per_second, 4e9);
  const auto faults = [](const Profile& of, const ScenarioDraft& draft) {
    return Paths(ResolveScenario(of, draft, {.pipelines = true}).status());
  };
  const auto is_named = ElementsAre("nodes_per_worker");
  EXPECT_THAT(faults(profile, {.nodes_per_worker = 0}), is_named);
  EXPECT_THAT(faults(profile, {.nodes_per_worker = 5}), is_named);
  EXPECT_THAT(faults(Layers(1), {.nodes_per_worker = 2}), is_named);
  EXPECT_THAT(faults(Recorded(), {.nodes_per_worker = 2}), is_named);
  const PipelineDraft pipeline{.stages = 2, .micro_batches = 2};
  EXPECT_THAT(faults(profile, {.nodes_per_worker = 2, .pipeline = pipeline}), is_named);
  EXPECT_THAT(faults(profile, {.workers = 4,
                               .nodes_per_worker = 2,
                               .communication =
                                   AllReduceDraft{.workers_per_node = 2,
                                                  .intra_node_bandwidth_bytes_per_second = 1e11}}),
              is_named);
}

TEST(PipelineScenarioTest, AReplicaLiesOnNoMoreNodesThanItHasDevices) {
  const auto resolved = [](int32_t nodes) {
    return ResolvePipelined(Layers(2),
                            {.pipeline = PipelineDraft{.stages = 2, .nodes_per_replica = nodes}});
  };
  EXPECT_TRUE(resolved(4).ok());
  EXPECT_THAT(Paths(resolved(5).status()), ElementsAre("pipeline.nodes_per_replica"));
}

TEST(PipelineScenarioTest, GradientsAreFusedAsAskedForElseAsRecorded) {
  using Reduction = PipelineReduction;
  const auto resolved = [](const Profile& profile, std::optional<Reduction> reduction,
                           AllReduceDraft collectives) {
    return ResolvePipelined(profile,
                            {.communication = std::move(collectives),
                             .pipeline = PipelineDraft{.stages = 2, .reduction = reduction}});
  };
  const Profile plain = Layers(1);
  const Profile recorded = Layers(1, true, {300, 500});
  const AllReduceDraft unfused{.fusion = Unfused{}};
  for (const std::optional<Reduction> asked : {std::optional<Reduction>(), {Reduction::kBuckets}}) {
    for (const Profile& profile : {plain, recorded}) {
      const absl::StatusOr<Scenario> scenario = resolved(profile, asked, unfused);
      ASSERT_TRUE(scenario.ok()) << scenario.status();
      EXPECT_EQ(scenario->pipeline->reduction, Reduction::kBuckets);
      EXPECT_TRUE(std::holds_alternative<std::monostate>(scenario->all_reduce().fusion));
      EXPECT_FALSE(scenario->assumed.Has(Assumed::kBuckets));
    }
  }
  for (const Reduction reduction :
       {Reduction::kAtEnd, Reduction::kByChunk, Reduction::kMegatronBuckets}) {
    EXPECT_THAT(Paths(resolved(plain, reduction, unfused).status()),
                ElementsAre("pipeline.reduction"));
    EXPECT_THAT(Paths(resolved(plain, reduction, {.fusion = Buckets{}}).status()),
                ElementsAre("pipeline.reduction"));
  }
  EXPECT_EQ(
      std::get<RecordedBuckets>(resolved(recorded, Reduction::kBuckets, {})->all_reduce().fusion)
          .sizes_bytes,
      (std::vector<int64_t>{300, 500}));
  const absl::StatusOr<Scenario> assumed = resolved(plain, Reduction::kBuckets, {});
  EXPECT_EQ(std::get<Buckets>(assumed->all_reduce().fusion), Buckets{});
  EXPECT_TRUE(assumed->assumed.Has(Assumed::kBuckets));
  const absl::StatusOr<Scenario> unasked = resolved(plain, std::nullopt, {});
  EXPECT_EQ(unasked->pipeline->reduction, Reduction::kAtEnd);
  EXPECT_TRUE(unasked->assumed.Has(Assumed::kPipelineReduction));
  EXPECT_FALSE(assumed->assumed.Has(Assumed::kPipelineReduction));
  EXPECT_FALSE(resolved(plain, std::nullopt, {.fusion = Buckets{}})
                   ->assumed.Has(Assumed::kPipelineReduction));
}

TEST(PipelineScenarioTest, ThatStagesSendNothingIsAssumedWhereNoOutputIsKnown) {
  for (const int64_t output_bytes : {int64_t{0}, int64_t{1000}}) {
    const absl::StatusOr<Scenario> scenario = ResolvePipelined(
        Layers(1, true, {}, output_bytes), {.pipeline = PipelineDraft{.stages = 2}});
    ASSERT_TRUE(scenario.ok()) << scenario.status();
    EXPECT_EQ(scenario->assumed.Has(Assumed::kNothingToSend), output_bytes == 0);
    const std::vector<Assumption> told = AssumptionsOf(*scenario);
    const auto tells = [&](const char* field, const char* value) {
      return std::ranges::any_of(
          told, [&](const Assumption& each) { return each.field == field && each.value == value; });
    };
    EXPECT_EQ(tells("pipeline", "stages send nothing"), output_bytes == 0);
    EXPECT_TRUE(tells("pipeline.reduction", "AT_END"));
  }
}

TEST(PipelineScenarioTest, WithoutGradientsReplicasReduceNothing) {
  for (const bool has_gradients : {true, false}) {
    const absl::StatusOr<Scenario> scenario =
        ResolvePipelined(Layers(1, has_gradients), {.pipeline = PipelineDraft{.stages = 2}});
    ASSERT_TRUE(scenario.ok()) << scenario.status();
    EXPECT_EQ(scenario->assumed.Has(Assumed::kNothingToReduce), !has_gradients);
  }
}

}  // namespace
}  // namespace stepcast::scenario_test
