#include "client/src/convert/comparison_proto.h"

#include "client/src/convert/prediction_proto.h"
#include "client/src/convert/repeated.h"
#include "client/src/convert/scenario_proto.h"

namespace stepcast::client {

static_assert(static_cast<int>(ComparedModel::kQueueing) == v1::ModelPrediction::QUEUEING);
static_assert(static_cast<int>(ComparedModel::kCynthia) == v1::ModelPrediction::CYNTHIA);
static_assert(static_cast<int>(ComparedModel::kCynthiaHalved) ==
              v1::ModelPrediction::CYNTHIA_HALVED);
static_assert(static_cast<int>(ComparedModel::kCoarseTensors) ==
              v1::ModelPrediction::COARSE_TENSORS);

namespace {

void ToProto(const CoarseProfile& from, v1::CoarseProfile& to) {
  to.set_downlink_phase_seconds(from.downlink_phase_seconds);
  to.set_worker_phase_seconds(from.worker_phase_seconds);
  to.set_uplink_phase_seconds(from.uplink_phase_seconds);
  to.set_parameter_server_phase_seconds(from.parameter_server_phase_seconds);
  to.set_computation_seconds(from.computation_seconds);
  to.set_transfer_seconds(from.transfer_seconds);
  to.set_network_utilization(from.network_utilization);
  to.set_halved_network_utilization(from.halved_network_utilization);
}

void FromProto(const v1::CoarseProfile& from, CoarseProfile& to) {
  to.downlink_phase_seconds = from.downlink_phase_seconds();
  to.worker_phase_seconds = from.worker_phase_seconds();
  to.uplink_phase_seconds = from.uplink_phase_seconds();
  to.parameter_server_phase_seconds = from.parameter_server_phase_seconds();
  to.computation_seconds = from.computation_seconds();
  to.transfer_seconds = from.transfer_seconds();
  to.network_utilization = from.network_utilization();
  to.halved_network_utilization = from.halved_network_utilization();
}

}  // namespace

void ToProto(const CompareModelsRequest& from, v1::CompareModelsRequest& to) {
  ToProto(from.source, to);
  ToProto(from.worker_counts, *to.mutable_worker_counts());
  ToProto(from.scenario, *to.mutable_scenario());
  ToProto(from.options, *to.mutable_options());
}

void ToProto(const ModelPrediction& from, v1::ModelPrediction& to) {
  to.set_model(static_cast<v1::ModelPrediction::Model>(from.model));
  to.set_examples_per_second(from.examples_per_second);
  to.set_steps_per_second(from.steps_per_second);
  to.set_relative_difference(from.relative_difference);
  to.set_within_interval(from.within_interval);
  to.set_unavailable_reason(from.unavailable_reason);
}

void FromProto(const v1::ModelPrediction& from, ModelPrediction& to) {
  to.model = static_cast<ComparedModel>(from.model());
  to.examples_per_second = from.examples_per_second();
  to.steps_per_second = from.steps_per_second();
  to.relative_difference = from.relative_difference();
  to.within_interval = from.within_interval();
  to.unavailable_reason = from.unavailable_reason();
}

void ToProto(const ModelComparison& from, v1::ModelComparison& to) {
  to.set_workers(from.workers);
  ToProto(from.prediction, *to.mutable_prediction());
  ToProto(from.models, *to.mutable_models());
}

void FromProto(const v1::ModelComparison& from, ModelComparison& to) {
  to.workers = from.workers();
  FromProto(from.prediction(), to.prediction);
  FromProto(from.models(), to.models);
}

void ToProto(const CompareModelsResponse& from, v1::CompareModelsResponse& to) {
  ToProto(from.comparisons, *to.mutable_comparisons());
  ToProto(from.inputs, *to.mutable_inputs());
  ToProto(from.simulation, *to.mutable_simulation());
  ToProto(from.options, *to.mutable_options());
  to.set_profile_digest(from.profile_digest);
  to.set_engine_version(from.engine_version);
}

void FromProto(const v1::CompareModelsResponse& from, CompareModelsResponse& to) {
  FromProto(from.comparisons(), to.comparisons);
  FromProto(from.inputs(), to.inputs);
  FromProto(from.simulation(), to.simulation);
  FromProto(from.options(), to.options);
  to.profile_digest = from.profile_digest();
  to.engine_version = from.engine_version();
}

}  // namespace stepcast::client
