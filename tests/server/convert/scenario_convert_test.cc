#include "server/convert/scenario_convert.h"

#include <gtest/gtest.h>

#include <limits>

#include "core/base/random.h"
#include "tests/server/support/random_profile.h"

namespace stepcast::server::scenario_convert_test {
namespace {

Scenario RandomScenario(uint64_t seed) {
  Random random({seed});
  Scenario scenario;
  scenario.workers = 1 + static_cast<int32_t>(random.Below(100));
  scenario.parameter_servers = 1 + static_cast<int32_t>(random.Below(10));
  scenario.bandwidth_bytes_per_second = 1 + random.Unit() * 1e9;
  scenario.parsing_overhead = {.seconds_per_byte = random.Unit(), .seconds = random.Unit()};
  scenario.synchronization = static_cast<Synchronization>(random.Below(2));
  scenario.multiplexing = static_cast<Multiplexing>(random.Below(3));
  if (scenario.multiplexing != Multiplexing::kWholeStream)
    scenario.window_bytes = 1 + static_cast<int64_t>(random.Below(1 << 20));
  const bool turns = scenario.multiplexing == Multiplexing::kRoundRobin ||
                     (scenario.multiplexing == Multiplexing::kWindow && random.Below(2) == 0);
  if (turns) scenario.quantum_bytes = 1 + static_cast<int64_t>(random.Below(1 << 20));
  scenario.link_sharing = static_cast<LinkSharing>(random.Below(3));
  if (scenario.link_sharing == LinkSharing::kTurns)
    scenario.turn_bytes = 1 + static_cast<int64_t>(random.Below(1 << 20));
  scenario.transfer_order = static_cast<TransferOrder>(random.Below(7));
  for (uint64_t i = random.Below(4); i > 0; --i)
    scenario.transfer_priorities["t" + std::to_string(i)] = static_cast<int32_t>(random.Below(9));
  for (uint64_t i = random.Below(4); i > 0; --i)
    scenario.start_offsets_ns.push_back(static_cast<int64_t>(random.Below(1000)));
  if (random.Below(2) == 0)
    scenario.worker_groups = {{.count = 1, .compute_speed_factor = 2.0},
                              {.count = 2, .bandwidth_bytes_per_second = 5.0}};
  return scenario;
}

// What a draft asks for where it asks for everything.
Scenario Filled(const ScenarioDraft& draft) {
  Scenario scenario;
  scenario.workers = draft.workers.value_or(-1);
  scenario.parameter_servers = draft.parameter_servers.value_or(-1);
  scenario.bandwidth_bytes_per_second = draft.bandwidth_bytes_per_second.value_or(-1);
  scenario.parsing_overhead = draft.parsing_overhead.value_or(ParsingOverhead{-1, -1});
  scenario.synchronization = draft.synchronization.value();
  scenario.multiplexing = draft.multiplexing.value();
  scenario.window_bytes = draft.window_bytes.value_or(0);
  scenario.quantum_bytes = draft.quantum_bytes.value_or(0);
  scenario.link_sharing = draft.link_sharing.value();
  scenario.turn_bytes = draft.turn_bytes.value_or(0);
  scenario.transfer_order = draft.transfer_order.value();
  scenario.transfer_priorities = draft.transfer_priorities;
  scenario.start_offsets_ns = draft.start_offsets_ns;
  scenario.worker_groups = draft.worker_groups;
  return scenario;
}

TEST(ScenarioConvertTest, AResolvedScenarioComesBackAsItWas) {
  for (uint64_t seed = 0; seed < 300; ++seed) {
    FaultList faults;
    const Scenario scenario = RandomScenario(seed);
    EXPECT_TRUE(Filled(FromWire(ToWire(scenario), "scenario", faults)) == scenario)
        << "seed " << seed;
    EXPECT_TRUE(faults.empty()) << "seed " << seed;
  }
}

TEST(ScenarioConvertTest, AResolvedScenarioResolvesToItself) {
  const Profile profile = *Profile::Create(SmallProfile());
  const std::vector<ScenarioDraft> drafts = {
      {.workers = 3},
      {.multiplexing = Multiplexing::kRoundRobin},
      {.multiplexing = Multiplexing::kWindow, .window_bytes = 9},
      {.window_bytes = 9, .quantum_bytes = 5},
      {.link_sharing = LinkSharing::kTurns}};
  for (const ScenarioDraft& draft : drafts) {
    SCOPED_TRACE(&draft - drafts.data());
    const absl::StatusOr<Scenario> resolved = ResolveScenario(profile, draft);
    ASSERT_TRUE(resolved.ok()) << resolved.status();
    FaultList faults;
    const absl::StatusOr<Scenario> again =
        ResolveScenario(profile, FromWire(ToWire(*resolved), "scenario", faults));
    ASSERT_TRUE(again.ok()) << again.status();
    EXPECT_TRUE(*again == *resolved);
  }
}

TEST(ScenarioConvertTest, WhatIsUnsetStaysUnset) {
  FaultList faults;
  EXPECT_TRUE(FromWire(v1::Scenario(), "scenario", faults) == ScenarioDraft());
  EXPECT_TRUE(FromWire(v1::SimulationOptions(), "options", faults) == SimulationOptionsDraft());
  EXPECT_TRUE(faults.empty());
}

TEST(ScenarioConvertTest, ZeroIsNotUnsetWhereTheContractTellsThemApart) {
  v1::SimulationOptions wire;
  wire.set_warmup_steps(0);
  wire.set_seed(0);
  FaultList faults;
  const SimulationOptionsDraft draft = FromWire(wire, "options", faults);
  EXPECT_EQ(draft.warmup_steps, 0);
  EXPECT_EQ(draft.seed, 0U);
  EXPECT_EQ(draft.replications, std::nullopt);
}

TEST(ScenarioConvertTest, ResolvedOptionsComeBackAsTheyWere) {
  SimulationOptions options{.steps_per_worker = 7,
                            .warmup_steps = 2,
                            .seed = std::numeric_limits<uint64_t>::max(),
                            .replications = 3,
                            .relative_precision = 0.5,
                            .time_budget_seconds = 1.25,
                            .start = Start::kStaggered,
                            .confidence_level = 0.9};
  FaultList faults;
  const SimulationOptionsDraft draft = FromWire(ToWire(options), "options", faults);
  EXPECT_EQ(draft.steps_per_worker, 7);
  EXPECT_EQ(draft.warmup_steps, 2);
  EXPECT_EQ(draft.seed, std::numeric_limits<uint64_t>::max());
  EXPECT_EQ(draft.replications, 3);
  EXPECT_EQ(draft.relative_precision, 0.5);
  EXPECT_EQ(draft.time_budget_seconds, 1.25);
  EXPECT_EQ(draft.start, Start::kStaggered);
  EXPECT_EQ(draft.horizon, Horizon::kSteadyState);
  EXPECT_EQ(draft.horizon_steps, std::nullopt);
  EXPECT_EQ(draft.horizon_seconds, std::nullopt);
  EXPECT_EQ(draft.confidence_level, 0.9);
}

TEST(ScenarioConvertTest, OptionsOfAReplyCanBeSentBack) {
  const SimulationOptionsDraft drafts[] = {
      {},
      {.steps_per_worker = 30},
      {.steps_per_worker = 30, .warmup_steps = 0, .relative_precision = 0.1},
      {.seed = 3, .horizon = Horizon::kFirstSteps, .horizon_steps = 9},
      {.start = Start::kStaggered, .horizon = Horizon::kFirstSeconds, .horizon_seconds = 2.5},
  };
  for (const SimulationOptionsDraft& draft : drafts) {
    const absl::StatusOr<SimulationOptions> options = ResolveOptions(draft);
    ASSERT_TRUE(options.ok()) << options.status();
    FaultList faults;
    const absl::StatusOr<SimulationOptions> again =
        ResolveOptions(FromWire(ToWire(*options), "options", faults));
    ASSERT_TRUE(again.ok()) << again.status();
    EXPECT_TRUE(*again == *options)
        << ToWire(*again).ShortDebugString() << " is not " << ToWire(*options).ShortDebugString();
  }
}

TEST(ScenarioConvertTest, EveryUnknownEnumNumberIsAFaultAtItsPath) {
  v1::Scenario scenario;
  scenario.set_synchronization(static_cast<v1::Scenario::Synchronization>(90));
  scenario.set_multiplexing(static_cast<v1::Scenario::Multiplexing>(91));
  scenario.set_link_sharing(static_cast<v1::Scenario::LinkSharing>(92));
  scenario.set_transfer_order(static_cast<v1::Scenario::TransferOrder>(-1));
  v1::SimulationOptions options;
  options.set_start(static_cast<v1::SimulationOptions::Start>(93));
  options.set_horizon(static_cast<v1::SimulationOptions::Horizon>(94));
  FaultList list;
  FromWire(scenario, "scenarios[2]", list);
  FromWire(options, "options", list);
  std::vector<std::string> fields;
  for (const Fault& fault : std::move(list).Take()) fields.push_back(fault.field);
  EXPECT_EQ(fields,
            (std::vector<std::string>{"scenarios[2].synchronization", "scenarios[2].multiplexing",
                                      "scenarios[2].link_sharing", "scenarios[2].transfer_order",
                                      "options.start", "options.horizon"}));
}

TEST(DurationTest, SecondsComeBackToTheNanosecond) {
  for (uint64_t seed = 0; seed < 1000; ++seed) {
    Random random({seed});
    const double seconds = random.Unit() * (seed % 2 == 0 ? 1 : 100'000);
    FaultList faults;
    const std::optional<double> back = FromWire(DurationOf(seconds), "d", faults);
    ASSERT_TRUE(back.has_value()) << "seed " << seed;
    EXPECT_NEAR(*back, seconds, 0.6e-9) << "seed " << seed;
  }
}

TEST(DurationTest, RoundingCarriesIntoTheSeconds) {
  EXPECT_EQ(DurationOf(1.9999999999).seconds(), 2);
  EXPECT_EQ(DurationOf(1.9999999999).nanos(), 0);
}

TEST(DurationTest, WhatTheStandardForbidsIsAFault) {
  const auto is_fault = [](int64_t seconds, int32_t nanos) {
    google::protobuf::Duration wire;
    wire.set_seconds(seconds);
    wire.set_nanos(nanos);
    FaultList faults;
    return !FromWire(wire, "d", faults).has_value() && !faults.empty();
  };
  EXPECT_TRUE(is_fault(1, -1));
  EXPECT_TRUE(is_fault(-1, 1));
  EXPECT_TRUE(is_fault(0, 1'000'000'000));
  EXPECT_TRUE(is_fault(0, std::numeric_limits<int32_t>::min()));
  EXPECT_TRUE(is_fault(315'576'000'001, 0));
  EXPECT_TRUE(is_fault(std::numeric_limits<int64_t>::min(), 0));
  EXPECT_FALSE(is_fault(-1, -999'999'999));
  EXPECT_FALSE(is_fault(0, 1));
}

}  // namespace
}  // namespace stepcast::server::scenario_convert_test
