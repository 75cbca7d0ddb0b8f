#include "server/convert/prediction_convert.h"

#include <utility>

#include "absl/strings/str_cat.h"

#include "server/convert/enum_table.h"
#include "server/convert/profile_source.h"
#include "server/convert/scenario_convert.h"

namespace stepcast::server {

namespace {

v1::StepTime StepTimeToWire(const StepTime& step_time) {
  v1::StepTime wire;
  *wire.mutable_mean() = DurationOf(step_time.mean);
  *wire.mutable_p50() = DurationOf(step_time.p50);
  *wire.mutable_p95() = DurationOf(step_time.p95);
  *wire.mutable_p99() = DurationOf(step_time.p99);
  return wire;
}

v1::ResourceUtilization UtilizationToWire(const ResourceUtilization& utilization) {
  v1::ResourceUtilization wire;
  wire.set_resource(WireOf(kResources, utilization.resource));
  wire.set_index(utilization.index);
  wire.set_fraction(utilization.fraction);
  return wire;
}

}  // namespace

v1::ConfidenceInterval ToWire(const Interval& interval) {
  v1::ConfidenceInterval wire;
  wire.set_lower(interval.lower);
  wire.set_upper(interval.upper);
  wire.set_level(interval.level);
  return wire;
}

v1::Warning ToWire(const Warning& warning) {
  v1::Warning wire;
  wire.set_reason(WireOf(kWarningReasons, warning.reason));
  wire.set_message(warning.message);
  return wire;
}

v1::SimulationStatistics ToWire(const SimulationStatistics& simulation, double engine_seconds) {
  v1::SimulationStatistics wire;
  wire.set_simulated_operations(simulation.simulated_operations);
  wire.set_engine_seconds(engine_seconds);
  wire.set_engine_path(simulation.engine_path);
  return wire;
}

PredictThroughputCall FromWire(const v1::PredictThroughputRequest& wire) {
  PredictThroughputCall call{.source = SourceOf(wire)};
  FaultList faults;
  ThroughputDraft& draft = call.draft;
  for (const v1::Scenario& scenario : wire.scenarios()) {
    draft.scenarios.push_back(
        FromWire(scenario, absl::StrCat("scenarios[", draft.scenarios.size(), "]"), faults));
  }
  draft.worker_counts = {wire.worker_counts().begin(), wire.worker_counts().end()};
  if (wire.has_scenario()) draft.scenario = FromWire(wire.scenario(), "scenario", faults);
  draft.options = FromWire(wire.options(), "options", faults);
  call.faults = std::move(faults).Take();
  return call;
}

v1::Prediction ToWire(const Prediction& prediction) {
  v1::Prediction wire;
  *wire.mutable_scenario() = ToWire(prediction.scenario);
  wire.set_examples_per_second(prediction.examples_per_second);
  wire.set_steps_per_second(prediction.steps_per_second);
  *wire.mutable_confidence_interval() = ToWire(prediction.confidence_interval);
  *wire.mutable_step_time() = StepTimeToWire(prediction.step_time);
  wire.set_speedup(prediction.speedup);
  wire.set_scaling_efficiency(prediction.scaling_efficiency);
  for (const ResourceUtilization& utilization : prediction.utilization)
    *wire.add_utilization() = UtilizationToWire(utilization);
  wire.set_bottleneck(WireOf(kResources, prediction.bottleneck.resource));
  wire.set_bottleneck_index(prediction.bottleneck.index);
  wire.set_exposed_communication_fraction(prediction.exposed_communication_fraction);
  wire.set_steady_state(prediction.steady_state);
  for (const Warning& warning : prediction.warnings) *wire.add_warnings() = ToWire(warning);
  wire.set_replications(prediction.replications);
  *wire.mutable_run_interval() = ToWire(prediction.run_interval);
  for (const Regime& regime : prediction.regimes) {
    v1::Regime& to = *wire.add_regimes();
    to.set_examples_per_second(regime.examples_per_second);
    to.set_replications(regime.replications);
    to.set_other_start_replications(regime.other_start_replications);
  }
  return wire;
}

v1::PredictThroughputResponse ToWire(const PredictThroughputAnswer& answer) {
  v1::PredictThroughputResponse wire;
  for (const Prediction& prediction : answer.answer.predictions)
    *wire.add_predictions() = ToWire(prediction);
  *wire.mutable_simulation() = ToWire(answer.answer.simulation, answer.context.engine_seconds);
  *wire.mutable_options() = ToWire(answer.context.options);
  wire.set_seed(answer.context.options.seed);
  wire.set_profile_digest(answer.context.profile_digest);
  wire.set_engine_version(kEngineVersion);
  return wire;
}

}  // namespace stepcast::server
