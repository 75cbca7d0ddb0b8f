#include "client/src/convert/prediction_proto.h"

#include "client/src/convert/duration_proto.h"
#include "client/src/convert/repeated.h"
#include "client/src/convert/scenario_proto.h"

namespace stepcast::client {

void ToProto(const ConfidenceInterval& from, v1::ConfidenceInterval& to) {
  to.set_lower(from.lower);
  to.set_upper(from.upper);
  to.set_level(from.level);
}

void FromProto(const v1::ConfidenceInterval& from, ConfidenceInterval& to) {
  to.lower = from.lower();
  to.upper = from.upper();
  to.level = from.level();
}

void ToProto(const Regime& from, v1::Regime& to) {
  to.set_examples_per_second(from.examples_per_second);
  to.set_replications(from.replications);
  to.set_other_start_replications(from.other_start_replications);
}

void FromProto(const v1::Regime& from, Regime& to) {
  to.examples_per_second = from.examples_per_second();
  to.replications = from.replications();
  to.other_start_replications = from.other_start_replications();
}

void ToProto(const StepTime& from, v1::StepTime& to) {
  ToProto(from.mean, *to.mutable_mean());
  ToProto(from.p50, *to.mutable_p50());
  ToProto(from.p95, *to.mutable_p95());
  ToProto(from.p99, *to.mutable_p99());
}

void FromProto(const v1::StepTime& from, StepTime& to) {
  FromProto(from.mean(), to.mean);
  FromProto(from.p50(), to.p50);
  FromProto(from.p95(), to.p95);
  FromProto(from.p99(), to.p99);
}

void ToProto(const ResourceUtilization& from, v1::ResourceUtilization& to) {
  to.set_resource(static_cast<v1::Operation::Resource>(from.resource));
  to.set_parameter_server(from.parameter_server);
  to.set_fraction(from.fraction);
}

void FromProto(const v1::ResourceUtilization& from, ResourceUtilization& to) {
  to.resource = static_cast<Resource>(from.resource());
  to.parameter_server = from.parameter_server();
  to.fraction = from.fraction();
}

void ToProto(const SimulationStatistics& from, v1::SimulationStatistics& to) {
  to.set_simulated_operations(from.simulated_operations);
  to.set_engine_seconds(from.engine_seconds);
  to.set_engine_path(from.engine_path);
  to.set_cached(from.cached);
}

void FromProto(const v1::SimulationStatistics& from, SimulationStatistics& to) {
  to.simulated_operations = from.simulated_operations();
  to.engine_seconds = from.engine_seconds();
  to.engine_path = from.engine_path();
  to.cached = from.cached();
}

void ToProto(const Prediction& from, v1::Prediction& to) {
  ToProto(from.scenario, *to.mutable_scenario());
  to.set_examples_per_second(from.examples_per_second);
  to.set_steps_per_second(from.steps_per_second);
  ToProto(from.confidence_interval, *to.mutable_confidence_interval());
  ToProto(from.step_time, *to.mutable_step_time());
  to.set_speedup(from.speedup);
  to.set_scaling_efficiency(from.scaling_efficiency);
  ToProto(from.utilization, *to.mutable_utilization());
  to.set_bottleneck(static_cast<v1::Operation::Resource>(from.bottleneck));
  to.set_bottleneck_parameter_server(from.bottleneck_parameter_server);
  to.set_exposed_communication_fraction(from.exposed_communication_fraction);
  to.set_steady_state(from.steady_state);
  to.set_warning(from.warning);
  to.set_replications(from.replications);
  ToProto(from.run_interval, *to.mutable_run_interval());
  ToProto(from.regimes, *to.mutable_regimes());
}

void FromProto(const v1::Prediction& from, Prediction& to) {
  FromProto(from.scenario(), to.scenario);
  to.examples_per_second = from.examples_per_second();
  to.steps_per_second = from.steps_per_second();
  FromProto(from.confidence_interval(), to.confidence_interval);
  FromProto(from.step_time(), to.step_time);
  to.speedup = from.speedup();
  to.scaling_efficiency = from.scaling_efficiency();
  FromProto(from.utilization(), to.utilization);
  to.bottleneck = static_cast<Resource>(from.bottleneck());
  to.bottleneck_parameter_server = from.bottleneck_parameter_server();
  to.exposed_communication_fraction = from.exposed_communication_fraction();
  to.steady_state = from.steady_state();
  to.warning = from.warning();
  to.replications = from.replications();
  FromProto(from.run_interval(), to.run_interval);
  FromProto(from.regimes(), to.regimes);
}

void ToProto(const PredictThroughputRequest& from, v1::PredictThroughputRequest& to) {
  ToProto(from.source, to);
  ToProto(from.scenarios, *to.mutable_scenarios());
  ToProto(from.worker_counts, *to.mutable_worker_counts());
  if (from.scenario) ToProto(*from.scenario, *to.mutable_scenario());
  ToProto(from.options, *to.mutable_options());
}

void ToProto(const PredictThroughputResponse& from, v1::PredictThroughputResponse& to) {
  ToProto(from.predictions, *to.mutable_predictions());
  ToProto(from.simulation, *to.mutable_simulation());
  ToProto(from.options, *to.mutable_options());
  to.set_seed(from.seed);
  to.set_profile_digest(from.profile_digest);
  to.set_engine_version(from.engine_version);
}

void FromProto(const v1::PredictThroughputResponse& from, PredictThroughputResponse& to) {
  FromProto(from.predictions(), to.predictions);
  FromProto(from.simulation(), to.simulation);
  FromProto(from.options(), to.options);
  to.seed = from.seed();
  to.profile_digest = from.profile_digest();
  to.engine_version = from.engine_version();
}

}  // namespace stepcast::client
