#include <utility>

#include "server/convert/enum_table.h"
#include "server/convert/prediction_convert.h"
#include "server/convert/scenario_convert.h"

namespace stepcast::server {

namespace {

StrategyDraft::Memory MemoryOf(const v1::StrategyMemory& wire) {
  StrategyDraft::Memory memory;
  if (wire.has_budget_bytes()) memory.budget_bytes = wire.budget_bytes();
  for (const v1::KeptOutput& output : wire.kept_outputs())
    memory.kept_outputs.push_back({.operation = output.operation(), .bytes = output.bytes()});
  if (wire.has_parameter_copies()) memory.parameter_copies = wire.parameter_copies();
  if (wire.has_half_batch_share()) memory.half_batch_share = wire.half_batch_share();
  return memory;
}

ProfileOrigin SecondOf(const v1::StrategyMemory& wire) {
  if (wire.has_second_inline_profile()) return FromWire(wire.second_inline_profile());
  if (wire.has_second_profile()) return wire.second_profile();
  return {};
}

SearchShortcuts ShortcutsOf(const v1::SearchShortcuts& wire) {
  const auto is_on = [](bool has, bool value) { return !has || value; };
  return {.coarsened_view = is_on(wire.has_coarsened_view(), wire.coarsened_view()),
          .partial_replay = is_on(wire.has_partial_replay(), wire.partial_replay()),
          .symmetry = is_on(wire.has_symmetry(), wire.symmetry())};
}

v1::JobStrategy WireJobStrategy(const StrategyAnswer& answer) {
  v1::JobStrategy wire;
  for (const NamedFusedOperations& group : answer.fused) {
    v1::FusedOperations& fused = *wire.add_fused_operations();
    for (const std::string& name : group.operations) fused.add_operations(name);
    fused.set_seconds_apart(group.seconds_apart);
    fused.set_seconds(group.seconds);
    fused.set_is_estimate(group.is_estimate);
  }
  for (const NamedTensors& group : answer.tensors) {
    v1::FusedTensors& tensors = *wire.add_tensors();
    for (const std::string& name : group.operations) tensors.add_operations(name);
    tensors.set_size_bytes(group.size_bytes);
    tensors.set_partitions(group.partitions);
  }
  wire.set_memory_pass(
      WireOf(kMemoryPasses, answer.memory.has_value() ? answer.memory->pass : MemoryPass::kNone));
  if (answer.memory.has_value()) {
    for (const std::string& name : answer.memory->recomputed) wire.add_recomputed(name);
  }
  wire.set_setting(answer.setting);
  return wire;
}

v1::ComparedStrategy WireCompared(const ComparedStrategy& compared) {
  v1::ComparedStrategy wire;
  wire.set_name(compared.name);
  wire.set_step_seconds(compared.step_seconds);
  wire.set_examples_per_second(compared.examples_per_second);
  wire.set_gain(compared.gain.mean);
  *wire.mutable_gain_interval() = ToWire(compared.gain.confidence_interval);
  wire.set_no_difference(compared.gain.is_none);
  wire.set_rests_on_fused_share(compared.rests_on_share);
  return wire;
}

v1::MemoryReport WireMemory(const MemoryReport& report) {
  v1::MemoryReport wire;
  wire.set_before_bytes(report.before.bytes());
  wire.set_after_bytes(report.after.bytes());
  wire.set_parameter_bytes(report.before.parameter_bytes);
  for (const TriedMemoryPass& tried : report.tried) {
    v1::TriedMemoryPass& to = *wire.add_tried();
    to.set_pass(WireOf(kMemoryPasses, tried.pass));
    to.set_bytes(tried.memory.bytes());
    to.set_step_seconds(tried.step_seconds);
    to.set_why_not(tried.why_not);
    to.set_recomputes(tried.recomputes);
  }
  for (const std::string& assumption : report.assumptions) wire.add_assumptions(assumption);
  return wire;
}

v1::SearchReport WireSearch(const SearchStatistics& search, const SearchShortcuts& shortcuts) {
  v1::SearchReport wire;
  wire.set_rounds(search.rounds);
  wire.set_accepted(search.accepted);
  wire.set_replays(search.replays);
  wire.set_replayed_operations(search.replayed_operations);
  wire.set_partial_replays(search.partial_replays);
  wire.set_decisions(search.decisions);
  wire.mutable_shortcuts()->set_coarsened_view(shortcuts.coarsened_view);
  wire.mutable_shortcuts()->set_partial_replay(shortcuts.partial_replay);
  wire.mutable_shortcuts()->set_symmetry(shortcuts.symmetry);
  return wire;
}

}  // namespace

OptimizeJobCall FromWire(const v1::OptimizeJobRequest& wire) {
  OptimizeJobCall call{.source = SourceOf(wire)};
  FaultList faults;
  StrategyDraft& draft = call.draft;
  draft.scenario = FromWire(wire.scenario(), "scenario", faults);
  draft.options = FromWire(wire.options(), "options", faults);
  for (const v1::FusedCost& cost : wire.fused_costs()) {
    draft.fused_costs.push_back({.operations = {cost.operations().begin(), cost.operations().end()},
                                 .seconds = cost.seconds()});
  }
  if (wire.has_fused_share()) draft.fused_share = wire.fused_share();
  if (wire.has_max_partitions()) draft.max_partitions = wire.max_partitions();
  draft.shortcuts = ShortcutsOf(wire.shortcuts());
  if (wire.has_memory()) draft.memory = MemoryOf(wire.memory());
  call.second = SecondOf(wire.memory());
  if (wire.has_time_budget())
    call.time_budget_seconds = FromWire(wire.time_budget(), "time_budget", faults);
  call.faults = std::move(faults).Take();
  return call;
}

v1::OptimizeJobResponse ToWire(const OptimizeJobAnswer& answer) {
  const StrategyAnswer& found = answer.answer;
  v1::OptimizeJobResponse wire;
  *wire.mutable_strategy() = WireJobStrategy(found);
  *wire.mutable_as_recorded() = ToWire(found.as_recorded);
  *wire.mutable_prediction() = ToWire(found.prediction);
  wire.set_gain(found.gain.mean);
  *wire.mutable_gain_interval() = ToWire(found.gain.confidence_interval);
  wire.set_no_difference(found.gain.is_none);
  for (const ComparedStrategy& compared : found.compared)
    *wire.add_compared() = WireCompared(compared);
  wire.set_reason(found.reason);
  wire.set_cost_source(found.cost_source);
  if (found.lower_bound_seconds.has_value())
    wire.set_lower_bound_seconds(*found.lower_bound_seconds);
  wire.set_no_bound_because(found.why_no_bound);
  wire.set_is_chains_best(found.is_chains_best);
  wire.set_probability_best(found.settled.probability_best);
  wire.set_expected_loss(found.settled.expected_loss);
  if (found.memory.has_value()) *wire.mutable_memory() = WireMemory(*found.memory);
  *wire.mutable_search() = WireSearch(found.search, found.shortcuts);
  for (const Warning& warning : found.warnings) *wire.add_warnings() = ToWire(warning);
  *wire.mutable_simulation() = ToWire(found.simulation, answer.context.engine_seconds);
  *wire.mutable_options() = ToWire(answer.context.options);
  wire.set_profile_digest(answer.context.profile_digest);
  wire.set_engine_version(kEngineVersion);
  wire.set_rests_on_fused_share(found.rests_on_share);
  return wire;
}

}  // namespace stepcast::server
