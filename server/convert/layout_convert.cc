#include <algorithm>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"

#include "server/convert/enum_table.h"
#include "server/convert/prediction_convert.h"
#include "server/convert/scenario_convert.h"

namespace stepcast::server {

namespace {

constexpr size_t kToldRefused = 100;

}  // namespace

RecommendLayoutCall FromWire(const v1::RecommendLayoutRequest& wire) {
  RecommendLayoutCall call;
  FaultList faults;
  call.source = SourceOf(wire);
  LayoutDraft& draft = call.draft;
  if (wire.has_scenario()) draft.scenario = FromWire(wire.scenario(), "scenario", faults);
  draft.devices = wire.devices();
  draft.memory_bytes = wire.memory_bytes();
  if (wire.has_micro_batches()) draft.micro_batches = wire.micro_batches();
  if (wire.has_examples_per_step()) draft.examples_per_step = wire.examples_per_step();
  for (int i = 0; i < wire.schedules_size(); ++i) {
    const auto schedule =
        CoreOf(kPipelineSchedules, wire.schedules(i), absl::StrCat("schedules[", i, "]"), faults);
    if (schedule.has_value()) draft.schedules.push_back(*schedule);
  }
  draft.objective = CoreOf(kLayoutObjectives, wire.objective(), "objective", faults);
  if (wire.has_max_layouts()) draft.max_layouts = wire.max_layouts();
  draft.options = FromWire(wire.options(), "options", faults);
  call.faults = std::move(faults).Take();
  return call;
}

v1::RecommendLayoutResponse ToWire(const RecommendLayoutAnswer& answer) {
  v1::RecommendLayoutResponse wire;
  for (const LayoutAnswer::Layout& from : answer.answer.layouts) {
    v1::RecommendLayoutResponse::Layout& layout = *wire.add_layouts();
    *layout.mutable_prediction() = ToWire(from.prediction);
    *layout.mutable_pipeline() = layout.prediction().scenario().pipeline();
    layout.set_workers(from.prediction.scenario.workers);
    layout.set_sharding(layout.prediction().scenario().all_reduce().sharding());
    layout.set_memory_bytes(from.memory_bytes);
    layout.set_probability_best(from.probability_best);
  }
  const std::vector<RefusedLayout>& all = answer.answer.refused;
  for (size_t i = 0; i < std::min(all.size(), kToldRefused); ++i) {
    v1::RecommendLayoutResponse::Refused& refused = *wire.add_refused();
    *refused.mutable_pipeline() = ToWire(all[i].pipeline);
    refused.set_workers(all[i].workers);
    if (all[i].sharding != Sharding::kNone)
      refused.set_sharding(WireOf(kShardings, all[i].sharding));
    refused.set_reason(all[i].reason);
  }
  wire.set_refused_count(static_cast<int32_t>(all.size()));
  wire.set_pruned_count(answer.answer.pruned);
  wire.set_untried_count(answer.answer.untried);
  wire.set_expected_loss(answer.answer.expected_loss);
  for (const Warning& warning : answer.answer.warnings) *wire.add_warnings() = ToWire(warning);
  *wire.mutable_simulation() = ToWire(answer.answer.simulation, answer.context.engine_seconds);
  *wire.mutable_options() = ToWire(answer.context.options);
  wire.set_profile_digest(answer.context.profile_digest);
  wire.set_engine_version(kEngineVersion);
  return wire;
}

FitRunsCall FromWire(const v1::FitRunsRequest& wire) {
  FitRunsCall call;
  FaultList faults;
  for (const v1::MeasuredRun& from : wire.runs()) {
    MeasuredRun& run = call.draft.runs.emplace_back();
    run.name = from.name();
    run.devices = from.devices();
    run.stages = from.pipeline().stages();
    if (from.pipeline().has_chunks()) run.chunks = from.pipeline().chunks();
    run.micro_batches = from.pipeline().micro_batches();
    if (from.has_step_seconds()) run.step_seconds = from.step_seconds();
  }
  call.draft.basis = CoreOf(kRunBases, wire.basis(), "basis", faults);
  if (wire.has_confidence_level()) call.draft.confidence_level = wire.confidence_level();
  call.faults = std::move(faults).Take();
  return call;
}

v1::FitRunsResponse ToWire(const FitRunsAnswer& answer) {
  const RunFit& fit = answer.answer;
  v1::FitRunsResponse wire;
  wire.set_seconds_per_micro_batch(fit.seconds_per_micro_batch);
  *wire.mutable_seconds_per_micro_batch_interval() = ToWire(fit.seconds_per_micro_batch_interval);
  wire.set_rest_seconds(fit.rest_seconds);
  *wire.mutable_rest_seconds_interval() = ToWire(fit.rest_interval);
  for (const RunFit::Run& from : fit.runs) {
    v1::FitRunsResponse::Run& run = *wire.add_runs();
    run.set_step_seconds(from.step_seconds);
    *run.mutable_step_interval() = ToWire(from.step_interval);
    run.set_linear_step_seconds(from.linear_step_seconds);
    run.set_fitted(from.fitted);
    if (from.relative_error.has_value()) run.set_relative_error(*from.relative_error);
    if (from.linear_relative_error.has_value())
      run.set_linear_relative_error(*from.linear_relative_error);
  }
  for (const Warning& warning : fit.warnings) *wire.add_warnings() = ToWire(warning);
  wire.set_engine_version(kEngineVersion);
  return wire;
}

}  // namespace stepcast::server
