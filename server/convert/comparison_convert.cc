#include "server/convert/comparison_convert.h"

#include <utility>

#include "server/convert/enum_table.h"
#include "server/convert/prediction_convert.h"
#include "server/convert/profile_source.h"
#include "server/convert/scenario_convert.h"

namespace stepcast::server {

namespace {

v1::ModelPrediction WireRival(const ComparedPrediction& rival) {
  v1::ModelPrediction wire;
  wire.set_model(WireOf(kComparedModels, rival.model));
  wire.set_examples_per_second(rival.examples_per_second);
  wire.set_steps_per_second(rival.steps_per_second);
  wire.set_relative_difference(rival.relative_difference);
  wire.set_within_interval(rival.within_interval);
  wire.set_unavailable_reason(rival.unavailable_reason);
  return wire;
}

v1::CoarseProfile WireInputs(const CoarseProfile& inputs) {
  v1::CoarseProfile wire;
  wire.set_downlink_phase_seconds(inputs.phases.downlink);
  wire.set_worker_phase_seconds(inputs.phases.worker);
  wire.set_uplink_phase_seconds(inputs.phases.uplink);
  wire.set_parameter_server_phase_seconds(inputs.phases.parameter_server);
  wire.set_computation_seconds(inputs.cynthia.computation_seconds);
  wire.set_transfer_seconds(inputs.cynthia.transfer_seconds);
  if (inputs.cynthia.computation_seconds + inputs.cynthia.transfer_seconds > 0) {
    wire.set_network_utilization(inputs.cynthia.NetworkUtilization());
    wire.set_halved_network_utilization(inputs.cynthia.Halved().NetworkUtilization());
  }
  return wire;
}

}  // namespace

CompareModelsCall FromWire(const v1::CompareModelsRequest& wire) {
  CompareModelsCall call{.source = SourceOf(wire)};
  FaultList faults;
  call.draft.worker_counts.assign(wire.worker_counts().begin(), wire.worker_counts().end());
  call.draft.scenario = FromWire(wire.scenario(), "scenario", faults);
  call.draft.options = FromWire(wire.options(), "options", faults);
  call.faults = std::move(faults).Take();
  return call;
}

v1::CompareModelsResponse ToWire(const CompareModelsAnswer& answer) {
  v1::CompareModelsResponse wire;
  for (const ModelComparison& comparison : answer.answer.comparisons) {
    v1::ModelComparison& beside = *wire.add_comparisons();
    beside.set_workers(comparison.prediction.scenario.workers);
    *beside.mutable_prediction() = ToWire(comparison.prediction);
    for (const ComparedPrediction& rival : comparison.rivals)
      *beside.add_models() = WireRival(rival);
  }
  *wire.mutable_inputs() = WireInputs(answer.answer.inputs);
  *wire.mutable_simulation() = ToWire(answer.answer.simulation, answer.context.engine_seconds);
  *wire.mutable_options() = ToWire(answer.context.options);
  wire.set_profile_digest(answer.context.profile_digest);
  wire.set_engine_version(kEngineVersion);
  return wire;
}

}  // namespace stepcast::server
