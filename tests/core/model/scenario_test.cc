#include "core/model/scenario.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <limits>
#include <string>
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

TEST(ScenarioTest, WhatIsUnsetIsAsRecorded) {
  const absl::StatusOr<Scenario> scenario = ResolveScenario(Recorded(), {});
  ASSERT_TRUE(scenario.ok()) << scenario.status();
  const Scenario expected{.workers = 1,
                          .parameter_servers = 2,
                          .bandwidth_bytes_per_second = 1e8,
                          .parsing_overhead = {.seconds_per_byte = 1e-9, .seconds = 1e-6},
                          .synchronization = Synchronization::kAsynchronous,
                          .multiplexing = Multiplexing::kWindow,
                          .window_bytes = 4096,
                          .link_sharing = LinkSharing::kEqual,
                          .transfer_order = TransferOrder::kGraph};
  EXPECT_EQ(*scenario, expected);
}

TEST(ScenarioTest, WhatIsSetIsKept) {
  const ScenarioDraft draft{.workers = 3,
                            .parameter_servers = 5,
                            .bandwidth_bytes_per_second = 2e9,
                            .parsing_overhead = ParsingOverhead{},
                            .synchronization = Synchronization::kSynchronous,
                            .multiplexing = Multiplexing::kWindow,
                            .window_bytes = 7,
                            .link_sharing = LinkSharing::kFirstCome,
                            .transfer_order = TransferOrder::kTac,
                            .start_offsets_ns = {0, 5, 86'400'000'000'000},
                            .worker_groups = {{.count = 2, .compute_speed_factor = 0.5},
                                              {.count = 1, .bandwidth_bytes_per_second = 1e6}}};
  const absl::StatusOr<Scenario> scenario = ResolveScenario(Recorded(), draft);
  ASSERT_TRUE(scenario.ok()) << scenario.status();
  const Scenario expected{
      .workers = 3,
      .parameter_servers = 5,
      .bandwidth_bytes_per_second = 2e9,
      .synchronization = Synchronization::kSynchronous,
      .multiplexing = Multiplexing::kWindow,
      .window_bytes = 7,
      .link_sharing = LinkSharing::kFirstCome,
      .transfer_order = TransferOrder::kTac,
      .start_offsets_ns = {0, 5, 86'400'000'000'000},
      .worker_groups = {
          {.count = 2, .compute_speed_factor = 0.5, .bandwidth_bytes_per_second = 2e9},
          {.count = 1, .compute_speed_factor = 1, .bandwidth_bytes_per_second = 1e6}}};
  EXPECT_EQ(*scenario, expected);
}

struct MultiplexingCase {
  std::optional<Multiplexing> asked;
  std::optional<int64_t> asked_window;
  int64_t recorded_window;
  Multiplexing expected;
  int64_t expected_window;
  int64_t expected_quantum = 0;
};

TEST(ScenarioTest, MultiplexingFollowsTheWindowUnlessAskedFor) {
  using enum Multiplexing;
  const std::vector<MultiplexingCase> cases = {
      {std::nullopt, std::nullopt, 0, kWholeStream, 0},
      {std::nullopt, std::nullopt, 64, kWindow, 64},
      {std::nullopt, 32, 0, kWindow, 32},
      {std::nullopt, 32, 64, kWindow, 32},
      {std::nullopt, 0, 64, kWholeStream, 0},
      {kWholeStream, std::nullopt, 64, kWholeStream, 0},
      {kWholeStream, 0, 64, kWholeStream, 0},
      {kWindow, std::nullopt, 64, kWindow, 64},
      {kWindow, 32, 0, kWindow, 32},
      {kRoundRobin, std::nullopt, 0, kRoundRobin, 65'536, 1'048'576},
      {kRoundRobin, std::nullopt, 64, kRoundRobin, 64, 1'048'576},
      {kRoundRobin, 32, 64, kRoundRobin, 32, 1'048'576},
  };
  for (const MultiplexingCase& one : cases) {
    SCOPED_TRACE(&one - cases.data());
    const Profile profile =
        Recorded([&](ProfileDraft& draft) { draft.platform.window_bytes = one.recorded_window; });
    const absl::StatusOr<Scenario> scenario =
        ResolveScenario(profile, {.multiplexing = one.asked, .window_bytes = one.asked_window});
    ASSERT_TRUE(scenario.ok()) << scenario.status();
    EXPECT_EQ(scenario->multiplexing, one.expected);
    EXPECT_EQ(scenario->window_bytes, one.expected_window);
    EXPECT_EQ(scenario->quantum_bytes, one.expected_quantum);
  }
}

TEST(ScenarioTest, ATurnIsALargestSegmentUnlessAskedFor) {
  const auto turn = [](const ScenarioDraft& draft) {
    return ResolveScenario(Recorded(), draft).value().turn_bytes;
  };
  EXPECT_EQ(turn({.parameter_servers = 1, .link_sharing = LinkSharing::kTurns}), 65'160);
  EXPECT_EQ(turn({.parameter_servers = 1, .link_sharing = LinkSharing::kTurns, .turn_bytes = 7}),
            7);
  EXPECT_EQ(turn({.link_sharing = LinkSharing::kFirstCome}), 0);
  EXPECT_EQ(turn({.turn_bytes = 0}), 0);
}

TEST(ScenarioTest, AQuantumIsKeptWithRoundRobinAndWithAWindow) {
  const auto quantum = [](const ScenarioDraft& draft) {
    return ResolveScenario(Recorded(), draft).value().quantum_bytes;
  };
  EXPECT_EQ(quantum({.multiplexing = Multiplexing::kRoundRobin, .quantum_bytes = 7}), 7);
  EXPECT_EQ(quantum({.multiplexing = Multiplexing::kWindow, .quantum_bytes = 7}), 7);
  EXPECT_EQ(quantum({.quantum_bytes = 7}), 7) << "the profile has a window";
  EXPECT_EQ(quantum({.quantum_bytes = 0}), 0);
  EXPECT_EQ(quantum({.multiplexing = Multiplexing::kWholeStream, .quantum_bytes = 0}), 0);
}

TEST(ScenarioTest, PrioritiesAloneMeanExplicitOrder) {
  const absl::StatusOr<Scenario> scenario =
      ResolveScenario(Recorded(), {.transfer_priorities = {{"recv", 1}, {"send", 0}}});
  ASSERT_TRUE(scenario.ok()) << scenario.status();
  EXPECT_EQ(scenario->transfer_order, TransferOrder::kExplicit);
  EXPECT_THAT(scenario->transfer_priorities,
              ElementsAre(std::pair("recv", 1), std::pair("send", 0)));
}

TEST(ScenarioTest, AResolvedScenarioAskedForAgainResolvesToItself) {
  const Scenario first =
      ResolveScenario(Recorded(),
                      {.workers = 2, .window_bytes = 0, .worker_groups = {{.count = 2}}})
          .value();
  const ScenarioDraft again{.workers = first.workers,
                            .parameter_servers = first.parameter_servers,
                            .bandwidth_bytes_per_second = first.bandwidth_bytes_per_second,
                            .parsing_overhead = first.parsing_overhead,
                            .synchronization = first.synchronization,
                            .multiplexing = first.multiplexing,
                            .window_bytes = first.window_bytes,
                            .link_sharing = first.link_sharing,
                            .transfer_order = first.transfer_order,
                            .worker_groups = first.worker_groups};
  EXPECT_EQ(ResolveScenario(Recorded(), again).value(), first);
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
        {"NoServers", {.parameter_servers = 0}, "parameter_servers", "0 is not from 1 to 256"},
        {"ManyServers", {.parameter_servers = 257}, "parameter_servers", "257"},
        {"NoBandwidth", {.bandwidth_bytes_per_second = 0.5}, "bandwidth_bytes_per_second", "0.5"},
        {"NanBandwidth", {.bandwidth_bytes_per_second = kNan}, "bandwidth_bytes_per_second", "nan"},
        {"NegativeOverhead",
         {.parsing_overhead = ParsingOverhead{.seconds = -1}},
         "parsing_overhead.seconds",
         "-1"},
        {"HugeOverhead",
         {.parsing_overhead = ParsingOverhead{.seconds_per_byte = 2}},
         "parsing_overhead.seconds_per_byte",
         "2"},
        {"NegativeWindow", {.window_bytes = -1}, "window_bytes", "-1"},
        {"WindowOfNothing",
         {.multiplexing = Multiplexing::kWindow, .window_bytes = 0},
         "window_bytes",
         "need at least 1"},
        {"WindowWithWholeStreams",
         {.multiplexing = Multiplexing::kWholeStream, .window_bytes = 9},
         "window_bytes",
         "9 has no effect with WHOLE_STREAM"},
        {"RoundRobinWithoutWindow",
         {.multiplexing = Multiplexing::kRoundRobin, .window_bytes = 0},
         "window_bytes",
         "need at least 1"},
        {"QuantumWithWholeStreams",
         {.multiplexing = Multiplexing::kWholeStream, .quantum_bytes = 9},
         "quantum_bytes",
         "9 has no effect with WHOLE_STREAM"},
        {"RoundRobinWithoutQuantum",
         {.multiplexing = Multiplexing::kRoundRobin, .quantum_bytes = 0},
         "quantum_bytes",
         "needs at least 1"},
        {"NegativeQuantum", {.quantum_bytes = -2}, "quantum_bytes", "-2 is a negative size"},
        {"TurnsOfNothing",
         {.parameter_servers = 1, .link_sharing = LinkSharing::kTurns, .turn_bytes = 0},
         "turn_bytes",
         "TURNS needs at least 1"},
        {"NegativeTurn",
         {.parameter_servers = 1, .link_sharing = LinkSharing::kTurns, .turn_bytes = -3},
         "turn_bytes",
         "-3 is a negative size"},
        {"TurnWithEqualShares", {.turn_bytes = 9}, "turn_bytes", "9 has no effect without TURNS"},
        {"TurnsOfTwoServers",
         {.parameter_servers = 2, .link_sharing = LinkSharing::kTurns},
         "link_sharing",
         "TURNS are of one parameter server, not of 2"},
        {"TurnsOverSlowLinks",
         {.workers = 1,
          .parameter_servers = 1,
          .link_sharing = LinkSharing::kTurns,
          .worker_groups = {{.count = 1, .bandwidth_bytes_per_second = 1e6}}},
         "worker_groups[0].bandwidth_bytes_per_second",
         "not modelled"},
        {"ExplicitWithoutRanks",
         {.transfer_order = TransferOrder::kExplicit},
         "transfer_priorities",
         "EXPLICIT needs them"},
        {"RanksWithoutExplicit",
         {.transfer_order = TransferOrder::kTic, .transfer_priorities = {{"recv", 0}}},
         "transfer_priorities",
         "no effect without EXPLICIT"},
        {"RankOfNoTransfer",
         {.transfer_priorities = {{"forward", 0}}},
         "transfer_priorities[\"forward\"]",
         "\"forward\" is no transfer"},
        {"NegativeRank",
         {.transfer_priorities = {{"recv", -4}}},
         "transfer_priorities[\"recv\"]",
         "-4 is a negative rank"},
        {"OffsetsForOthers",
         {.workers = 2, .start_offsets_ns = {1}},
         "start_offsets_ns",
         "1 given for 2 workers"},
        {"NegativeOffset",
         {.workers = 2, .start_offsets_ns = {1, -1}},
         "start_offsets_ns[1]",
         "-1 is not from 0"},
        {"LateOffset",
         {.workers = 1, .start_offsets_ns = {86'400'000'000'001}},
         "start_offsets_ns[0]",
         "max_start_offset_ns = 86400000000000"},
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

TEST(ScenarioTest, EveryFaultIsReportedAtOnce) {
  const absl::Status status =
      ResolveScenario(Recorded(), {.workers = 2,
                                   .bandwidth_bytes_per_second = -1,
                                   .multiplexing = Multiplexing::kRoundRobin,
                                   .quantum_bytes = 0,
                                   .start_offsets_ns = {3}})
          .status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(Paths(status),
              ElementsAre("bandwidth_bytes_per_second", "quantum_bytes", "start_offsets_ns"));
}

TEST(ScenarioTest, TurnsHaveALimitThatIsReachedExactly) {
  // Two transfers of 1000 bytes: after a window of 400 each has 600 left, in 6 turns of 100 or 7
  // of 99.
  const ScenarioDraft six{
      .multiplexing = Multiplexing::kRoundRobin, .window_bytes = 400, .quantum_bytes = 100};
  ScenarioDraft seven = six;
  seven.quantum_bytes = 99;
  const ScenarioLimits limits{.max_turns = 12};
  EXPECT_TRUE(ResolveScenario(Recorded(), six, limits).ok());
  for (const Multiplexing multiplexing : {Multiplexing::kRoundRobin, Multiplexing::kWindow}) {
    seven.multiplexing = multiplexing;
    const absl::Status status = ResolveScenario(Recorded(), seven, limits).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    ASSERT_THAT(Paths(status), ElementsAre("quantum_bytes"));
    EXPECT_THAT(DetailsOf(status).faults[0].description, HasSubstr("99 makes 14 turns or more"));
    EXPECT_THAT(DetailsOf(status).faults[0].description, HasSubstr("max_turns = 12"));
  }
}

TEST(ScenarioTest, ATurnForAllTheRestIsNeverTooMany) {
  const Profile profile =
      Recorded([](ProfileDraft& draft) { draft.operations[0].size_bytes = int64_t{1} << 44; });
  EXPECT_TRUE(
      ResolveScenario(profile, {.window_bytes = 1, .quantum_bytes = int64_t{1} << 44}).ok());
  EXPECT_THAT(Paths(ResolveScenario(profile, {.window_bytes = 1, .quantum_bytes = 1}).status()),
              ElementsAre("quantum_bytes"));
}

TEST(ScenarioTest, AnotherNumberOfServersNeedsParametersToPlace) {
  for (const size_t nameless : {0, 2, 3}) {
    const Profile profile =
        Recorded([&](ProfileDraft& draft) { draft.operations[nameless].parameter.clear(); });
    EXPECT_TRUE(ResolveScenario(profile, {.parameter_servers = 2}).ok());
    const absl::Status status = ResolveScenario(profile, {.parameter_servers = 3}).status();
    ASSERT_THAT(Paths(status), ElementsAre("parameter_servers"));
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
      ElementsAre("parameter_servers", "start_offsets_ns[1]"));
}

}  // namespace
}  // namespace stepcast::scenario_test
