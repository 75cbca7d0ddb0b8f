#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "server/convert/prediction_convert.h"

namespace stepcast::server::strategy_convert_test {
namespace {

using ::testing::ElementsAre;

TEST(StrategyConvertTest, OptimizeJobCarriesEverything) {
  v1::OptimizeJobRequest wire;
  wire.set_profile("profiles/p");
  wire.mutable_scenario()->set_workers(7);
  wire.mutable_options()->set_seed(5);
  v1::FusedCost& cost = *wire.add_fused_costs();
  cost.add_operations("a");
  cost.add_operations("b");
  cost.set_seconds(0.25);
  wire.set_fused_share(0.75);
  wire.set_max_partitions(3);
  wire.mutable_shortcuts()->set_symmetry(false);
  v1::StrategyMemory& memory = *wire.mutable_memory();
  memory.set_budget_bytes(11);
  memory.add_kept_outputs()->set_operation("c");
  memory.mutable_kept_outputs(0)->set_bytes(12);
  memory.set_parameter_copies(3);
  memory.set_half_batch_share(0.625);
  memory.set_second_profile("profiles/q");
  wire.mutable_time_budget()->set_seconds(9);
  const OptimizeJobCall call = FromWire(wire);
  EXPECT_EQ(std::get<std::string>(call.source.recorded), "profiles/p");
  EXPECT_EQ(call.draft.scenario.workers, 7);
  EXPECT_EQ(call.draft.options.seed, 5U);
  ASSERT_EQ(call.draft.fused_costs.size(), 1U);
  EXPECT_THAT(call.draft.fused_costs[0].operations, ElementsAre("a", "b"));
  EXPECT_EQ(call.draft.fused_costs[0].seconds, 0.25);
  EXPECT_EQ(call.draft.fused_share, 0.75);
  EXPECT_EQ(call.draft.max_partitions, 3);
  EXPECT_EQ(call.draft.shortcuts, (SearchShortcuts{.symmetry = false}));
  ASSERT_TRUE(call.draft.memory.has_value());
  EXPECT_EQ(call.draft.memory->budget_bytes, 11);
  ASSERT_EQ(call.draft.memory->kept_outputs.size(), 1U);
  EXPECT_EQ(call.draft.memory->kept_outputs[0].operation, "c");
  EXPECT_EQ(call.draft.memory->kept_outputs[0].bytes, 12);
  EXPECT_EQ(call.draft.memory->parameter_copies, 3);
  EXPECT_EQ(call.draft.memory->half_batch_share, 0.625);
  EXPECT_EQ(std::get<std::string>(call.second), "profiles/q");
  memory.mutable_second_inline_profile()->set_batch_size(5);
  EXPECT_EQ(std::get<ProfileInput>(FromWire(wire).second).draft.batch_size, 5);
  EXPECT_EQ(call.time_budget_seconds, 9);
  EXPECT_TRUE(call.faults.empty());
  wire.mutable_options()->set_start(static_cast<v1::SimulationOptions::Start>(51));
  EXPECT_EQ(FromWire(wire).faults.at(0).field, "options.start");
}

TEST(StrategyConvertTest, WhatIsUnsetIsUnset) {
  const OptimizeJobCall call = FromWire(v1::OptimizeJobRequest());
  EXPECT_FALSE(call.draft.fused_share.has_value());
  EXPECT_FALSE(call.draft.max_partitions.has_value());
  EXPECT_FALSE(call.draft.memory.has_value());
  EXPECT_TRUE(std::holds_alternative<std::monostate>(call.second));
  EXPECT_EQ(call.draft.shortcuts, SearchShortcuts{});
}

StrategyAnswer SomeStrategy() {
  StrategyAnswer answer;
  answer.as_recorded.examples_per_second = 10;
  answer.prediction.examples_per_second = 12;
  answer.gain = {.mean = 0.2,
                 .confidence_interval = {.lower = 0.1, .upper = 0.3, .level = 0.9},
                 .is_none = false};
  answer.fused = {
      {.operations = {"a", "b"}, .seconds_apart = 2, .seconds = 1.5, .is_estimate = true}};
  answer.tensors = {{.operations = {"g", "h"}, .size_bytes = 77, .partitions = 3}};
  answer.setting = "HOROVOD_CYCLE_TIME=1";
  answer.compared = {{.name = "MG_WFBP",
                      .step_seconds = 0.5,
                      .examples_per_second = 11,
                      .gain = {.mean = 0.1,
                               .confidence_interval = {.lower = 0, .upper = 0.2, .level = 0.9},
                               .is_none = true}}};
  answer.memory = MemoryReport{.before = {.parameter_bytes = 5, .output_bytes = 6},
                               .after = {.parameter_bytes = 5, .output_bytes = 2},
                               .budget_bytes = 9,
                               .pass = MemoryPass::kRecomputation,
                               .recomputed = {"forward/x"},
                               .tried = {{.pass = MemoryPass::kGradientAccumulation,
                                          .memory = {.parameter_bytes = 5, .output_bytes = 3},
                                          .step_seconds = 0.75,
                                          .why_not = "slow",
                                          .recomputes = "segments"}},
                               .assumptions = {"assumed"}};
  answer.search = {.rounds = 1,
                   .accepted = 2,
                   .replays = 3,
                   .partial_replays = 4,
                   .replayed_operations = 5,
                   .decisions = 6};
  answer.shortcuts.partial_replay = false;
  answer.cost_source = "a table";
  answer.lower_bound_seconds = 0.25;
  answer.why_no_bound = "why";
  answer.is_chains_best = true;
  answer.reason = "reason";
  answer.warnings = {{.reason = Warning::Reason::kNotSteady, .message = "careful"}};
  answer.simulation = {.simulated_operations = 13, .engine_path = "plain"};
  return answer;
}

TEST(StrategyConvertTest, AStrategyCarriesEverything) {
  const v1::OptimizeJobResponse wire = ToWire(OptimizeJobAnswer{
      .answer = SomeStrategy(),
      .context = {.options = {.seed = 42}, .profile_digest = "digest", .engine_seconds = 1.5}});
  ASSERT_EQ(wire.strategy().fused_operations_size(), 1);
  EXPECT_THAT(wire.strategy().fused_operations(0).operations(), ElementsAre("a", "b"));
  EXPECT_EQ(wire.strategy().fused_operations(0).seconds_apart(), 2);
  EXPECT_EQ(wire.strategy().fused_operations(0).seconds(), 1.5);
  EXPECT_TRUE(wire.strategy().fused_operations(0).is_estimate());
  ASSERT_EQ(wire.strategy().tensors_size(), 1);
  EXPECT_THAT(wire.strategy().tensors(0).operations(), ElementsAre("g", "h"));
  EXPECT_EQ(wire.strategy().tensors(0).size_bytes(), 77);
  EXPECT_EQ(wire.strategy().tensors(0).partitions(), 3);
  EXPECT_EQ(wire.strategy().memory_pass(), v1::JobStrategy::RECOMPUTATION);
  EXPECT_THAT(wire.strategy().recomputed(), ElementsAre("forward/x"));
  EXPECT_EQ(wire.strategy().setting(), "HOROVOD_CYCLE_TIME=1");
  EXPECT_EQ(wire.as_recorded().examples_per_second(), 10);
  EXPECT_EQ(wire.prediction().examples_per_second(), 12);
  EXPECT_EQ(wire.gain(), 0.2);
  EXPECT_EQ(wire.gain_interval().lower(), 0.1);
  EXPECT_FALSE(wire.no_difference());
  ASSERT_EQ(wire.compared_size(), 1);
  EXPECT_EQ(wire.compared(0).name(), "MG_WFBP");
  EXPECT_EQ(wire.compared(0).step_seconds(), 0.5);
  EXPECT_EQ(wire.compared(0).examples_per_second(), 11);
  EXPECT_EQ(wire.compared(0).gain(), 0.1);
  EXPECT_EQ(wire.compared(0).gain_interval().upper(), 0.2);
  EXPECT_TRUE(wire.compared(0).no_difference());
  EXPECT_EQ(wire.memory().before_bytes(), 11);
  EXPECT_EQ(wire.memory().after_bytes(), 7);
  EXPECT_EQ(wire.memory().parameter_bytes(), 5);
  ASSERT_EQ(wire.memory().tried_size(), 1);
  EXPECT_EQ(wire.memory().tried(0).pass(), v1::JobStrategy::GRADIENT_ACCUMULATION);
  EXPECT_EQ(wire.memory().tried(0).bytes(), 8);
  EXPECT_EQ(wire.memory().tried(0).step_seconds(), 0.75);
  EXPECT_EQ(wire.memory().tried(0).why_not(), "slow");
  EXPECT_EQ(wire.memory().tried(0).recomputes(), "segments");
  EXPECT_THAT(wire.memory().assumptions(), ElementsAre("assumed"));
  EXPECT_EQ(wire.search().rounds(), 1);
  EXPECT_EQ(wire.search().accepted(), 2);
  EXPECT_EQ(wire.search().replays(), 3);
  EXPECT_EQ(wire.search().partial_replays(), 4);
  EXPECT_EQ(wire.search().replayed_operations(), 5);
  EXPECT_EQ(wire.search().decisions(), 6);
  EXPECT_TRUE(wire.search().shortcuts().coarsened_view());
  EXPECT_FALSE(wire.search().shortcuts().partial_replay());
  EXPECT_TRUE(wire.search().shortcuts().symmetry());
  EXPECT_EQ(wire.cost_source(), "a table");
  EXPECT_EQ(wire.lower_bound_seconds(), 0.25);
  EXPECT_EQ(wire.no_bound_because(), "why");
  EXPECT_TRUE(wire.is_chains_best());
  EXPECT_EQ(wire.reason(), "reason");
  EXPECT_EQ(wire.warnings(0).message(), "careful");
  EXPECT_EQ(wire.simulation().simulated_operations(), 13);
  EXPECT_EQ(wire.simulation().engine_seconds(), 1.5);
  EXPECT_EQ(wire.options().seed(), 42U);
  EXPECT_EQ(wire.profile_digest(), "digest");
  EXPECT_EQ(wire.engine_version(), kEngineVersion);
  StrategyAnswer without = SomeStrategy();
  without.memory.reset();
  without.lower_bound_seconds.reset();
  const v1::OptimizeJobResponse bare = ToWire(OptimizeJobAnswer{.answer = without});
  EXPECT_FALSE(bare.has_memory());
  EXPECT_FALSE(bare.has_lower_bound_seconds());
  EXPECT_EQ(bare.strategy().memory_pass(), v1::JobStrategy::NONE);
}

}  // namespace
}  // namespace stepcast::server::strategy_convert_test
