#include "server/convert/prediction_convert.h"

#include <google/protobuf/repeated_field.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <utility>

#include "absl/strings/str_cat.h"

#include "core/base/bandwidth.h"
#include "core/model/scenario.h"
#include "server/convert/enum_table.h"
#include "server/convert/profile_convert.h"
#include "server/convert/scenario_convert.h"

namespace stepcast::server {

v1::StepTime ToWire(const StepTime& step_time) {
  v1::StepTime wire;
  *wire.mutable_mean() = DurationOf(step_time.mean);
  *wire.mutable_p50() = DurationOf(step_time.p50);
  *wire.mutable_p95() = DurationOf(step_time.p95);
  *wire.mutable_p99() = DurationOf(step_time.p99);
  return wire;
}

namespace {

v1::ResourceUtilization UtilizationToWire(const ResourceUtilization& utilization) {
  v1::ResourceUtilization wire;
  wire.set_resource(WireOf(kResources, utilization.resource));
  wire.set_index(utilization.index);
  wire.set_fraction(utilization.fraction);
  return wire;
}

v1::CollectiveReport ReportToWire(const CollectiveReport& report) {
  v1::CollectiveReport wire;
  wire.set_exposed_seconds(report.exposed_seconds);
  wire.set_waiting_seconds(report.waiting_seconds);
  wire.set_computation_seconds(report.computation_seconds);
  wire.set_collective_seconds(report.collective_seconds);
  wire.set_no_overlap_examples_per_second(report.no_overlap_examples_per_second);
  wire.set_bottleneck(WireOf(kCollectiveBottlenecks, report.bottleneck));
  for (const CollectiveTiming& timing : report.collectives) {
    v1::CollectiveTiming& to = *wire.add_collectives();
    for (const std::string& operation : timing.operations) to.add_operations(operation);
    to.set_kind(WireOf(kCollectives, timing.kind));
    to.set_size_bytes(timing.size_bytes);
    to.set_ready_seconds(timing.ready_seconds);
    to.set_start_seconds(timing.start_seconds);
    to.set_end_seconds(timing.end_seconds);
  }
  return wire;
}

TrainingPlan PlanOf(const v1::TrainingPlan& wire, FaultList& faults) {
  TrainingPlan plan{.examples = wire.examples()};
  if (wire.has_worker_hour() || wire.has_parameter_server_hour() || wire.has_node_hour() ||
      wire.has_device_hour() || !wire.currency_code().empty())
    plan.prices = PricesOf(wire);
  if (wire.has_failures()) plan.failures = FailuresOf(wire.failures(), "plan.failures", faults);
  return plan;
}

v1::TrainingForecast ForecastToWire(const TrainingForecast& forecast) {
  v1::TrainingForecast wire;
  if (std::isfinite(forecast.seconds)) *wire.mutable_duration() = DurationOf(forecast.seconds);
  if (std::isfinite(forecast.shortest_seconds))
    *wire.mutable_shortest() = DurationOf(forecast.shortest_seconds);
  if (std::isfinite(forecast.longest_seconds))
    *wire.mutable_longest() = DurationOf(forecast.longest_seconds);
  if (forecast.cost.has_value()) wire.set_cost(*forecast.cost);
  wire.set_currency_code(forecast.currency_code);
  if (!forecast.interval_seconds.has_value()) return wire;
  *wire.mutable_checkpoint_interval() = DurationOf(*forecast.interval_seconds);
  if (!std::isfinite(*forecast.expected_seconds)) return wire;
  wire.set_expected_failures(*forecast.expected_failures);
  *wire.mutable_expected_duration() = DurationOf(*forecast.expected_seconds);
  if (forecast.expected_cost.has_value()) wire.set_expected_cost(*forecast.expected_cost);
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

v1::Assumption ToWire(const Assumption& assumption) {
  v1::Assumption wire;
  wire.set_field("scenario." + assumption.field);
  wire.set_value(assumption.value);
  wire.set_message(assumption.message);
  return wire;
}

v1::SimulationStatistics ToWire(const SimulationStatistics& simulation, double engine_seconds) {
  v1::SimulationStatistics wire;
  wire.set_simulated_operations(simulation.simulated_operations);
  wire.set_engine_seconds(engine_seconds);
  wire.set_engine_path(simulation.engine_path);
  return wire;
}

ProfileSource ChangeOf(const v1::JobChange& wire) {
  ProfileSource source;
  JobChange& change = source.change;
  if (wire.has_batch_size()) change.batch_size = wire.batch_size();
  if (wire.has_fixed_fraction()) change.fixed_fraction = wire.fixed_fraction();
  if (wire.has_accumulate()) change.accumulate = wire.accumulate();
  if (wire.has_compute_speed_factor()) change.compute_speed_factor = wire.compute_speed_factor();
  if (wire.has_gradient_bytes_factor()) change.gradient_bytes_factor = wire.gradient_bytes_factor();
  if (wire.has_global_batch_size()) change.global_batch_size = wire.global_batch_size();
  if (wire.has_second_inline_profile()) {
    source.second = FromWire(wire.second_inline_profile());
  } else if (wire.has_second_profile()) {
    source.second = wire.second_profile();
  }
  return source;
}

Failures FailuresOf(const v1::Failures& wire, const std::string& path, FaultList& faults) {
  const auto seconds = [&](bool given, const google::protobuf::Duration& time, const char* field) {
    return given ? FromWire(time, absl::StrCat(path, ".", field), faults) : std::nullopt;
  };
  return {
      .worker_seconds_between = seconds(wire.has_worker_mean_time_between(),
                                        wire.worker_mean_time_between(), "worker_mean_time_between")
                                    .value_or(0),
      .checkpoint_seconds =
          seconds(wire.has_checkpoint_time(), wire.checkpoint_time(), "checkpoint_time")
              .value_or(0),
      .restart_seconds =
          seconds(wire.has_restart_time(), wire.restart_time(), "restart_time").value_or(0),
      .interval_seconds = seconds(wire.has_checkpoint_interval(), wire.checkpoint_interval(),
                                  "checkpoint_interval")};
}

PredictThroughputCall FromWire(const v1::PredictThroughputRequest& wire) {
  PredictThroughputCall call{.source = SourceOf(wire)};
  FaultList faults;
  ThroughputDraft& draft = call.draft;
  for (const v1::Scenario& scenario : wire.scenarios()) {
    if (scenario.has_change()) {
      faults.Add(absl::StrCat("scenarios[", draft.scenarios.size(), "].change"),
                 "given, but a request is about one job: its change stands in scenario.change");
    }
    draft.scenarios.push_back(
        FromWire(scenario, absl::StrCat("scenarios[", draft.scenarios.size(), "]"), faults));
  }
  draft.worker_counts = {wire.worker_counts().begin(), wire.worker_counts().end()};
  if (wire.has_scenario()) draft.scenario = FromWire(wire.scenario(), "scenario", faults);
  draft.options = FromWire(wire.options(), "options", faults);
  if (wire.has_plan()) draft.plan = PlanOf(wire.plan(), faults);
  draft.series_points = wire.series_points();
  call.faults = std::move(faults).Take();
  return call;
}

namespace {

v1::Memory MemoryToWire(const DeviceMemory& memory) {
  v1::Memory wire;
  wire.set_total_bytes(std::llround(memory.bytes()));
  wire.set_parameter_bytes(std::llround(memory.parameters));
  wire.set_gradient_bytes(std::llround(memory.gradients));
  wire.set_optimizer_bytes(std::llround(memory.optimizer));
  if (memory.kept.has_value()) wire.set_kept_bytes(std::llround(*memory.kept));
  return wire;
}

v1::PipelineReport PipelineReportToWire(const PipelineReport& report) {
  v1::PipelineReport wire;
  wire.set_idle_fraction(report.idle_fraction);
  wire.set_bubble_fraction(report.bubble_fraction);
  wire.set_transfer_fraction(report.transfer_fraction);
  wire.set_reduction_fraction(report.reduction_fraction);
  wire.set_imbalance_fraction(report.imbalance_fraction);
  wire.set_rest_fraction(report.rest_fraction);
  wire.set_bottleneck(WireOf(kPipelineBottlenecks, report.bottleneck));
  wire.set_bottleneck_gain(report.bottleneck_gain);
  wire.set_slowest_device(report.slowest_device);
  for (const PipelineReport::Device& from : report.devices) {
    v1::PipelineDevice& device = *wire.add_devices();
    device.set_utilization(from.utilization);
    device.set_chunks_in_flight(from.chunks_in_flight);
    device.set_memory_bytes(from.memory_bytes);
    device.set_micro_batch_seconds(from.micro_batch_seconds);
    device.set_gradient_bytes(from.gradient_bytes);
    device.mutable_first_operations()->Add(from.first_operations.begin(),
                                           from.first_operations.end());
  }
  return wire;
}

v1::PassTimes PassesToWire(const PassTimes& passes) {
  v1::PassTimes wire;
  wire.set_forward_seconds(passes.forward);
  wire.set_backward_seconds(passes.backward);
  wire.set_optimizer_seconds(passes.optimizer);
  wire.set_other_seconds(passes.other);
  return wire;
}

}  // namespace

v1::Prediction ToWire(const Prediction& prediction) {
  v1::Prediction wire;
  *wire.mutable_scenario() = ToWire(prediction.scenario);
  wire.set_examples_per_second(prediction.examples_per_second);
  wire.set_steps_per_second(prediction.steps_per_second);
  *wire.mutable_confidence_interval() = ToWire(prediction.confidence_interval);
  *wire.mutable_step_time() = ToWire(prediction.step_time);
  wire.set_speedup(prediction.speedup);
  if (prediction.forecast.has_value())
    *wire.mutable_forecast() = ForecastToWire(*prediction.forecast);
  wire.set_scaling_efficiency(prediction.scaling_efficiency);
  for (const ResourceUtilization& utilization : prediction.utilization)
    *wire.add_utilization() = UtilizationToWire(utilization);
  wire.set_bottleneck(WireOf(kResources, prediction.bottleneck.resource));
  wire.set_bottleneck_index(prediction.bottleneck.index);
  wire.set_most_used(WireOf(kResources, prediction.most_used.resource));
  wire.set_most_used_index(prediction.most_used.index);
  if (prediction.bottleneck_gain.has_value()) {
    wire.set_bottleneck_gain(prediction.bottleneck_gain->gain);
    wire.set_bottleneck_change(WireOf(kBottleneckChanges, prediction.bottleneck_gain->change));
  }
  wire.set_exposed_communication_fraction(prediction.exposed_communication_fraction);
  wire.set_steady_state(prediction.steady_state);
  for (const Warning& warning : prediction.warnings) *wire.add_warnings() = ToWire(warning);
  wire.set_replications(prediction.replications);
  *wire.mutable_run_interval() = ToWire(prediction.run_interval);
  *wire.mutable_simulation_interval() = ToWire(prediction.simulation_interval);
  wire.set_input_fraction(prediction.input_fraction);
  wire.set_half_width_with_more_steps(prediction.half_width_with_more_steps);
  wire.mutable_model_error()->set_fraction(prediction.model_error.fraction);
  wire.mutable_model_error()->set_source(prediction.model_error.source);
  if (prediction.at_half_the_rate.has_value())
    wire.set_half_rate_examples_per_second(*prediction.at_half_the_rate);
  wire.set_steps_per_worker(prediction.steps_per_worker);
  for (const Regime& regime : prediction.regimes) {
    v1::Regime& to = *wire.add_regimes();
    to.set_examples_per_second(regime.examples_per_second);
    to.set_replications(regime.replications);
    to.set_other_start_replications(regime.other_start_replications);
  }
  if (prediction.collectives.has_value())
    *wire.mutable_collectives() = ReportToWire(*prediction.collectives);
  if (prediction.pipeline.has_value())
    *wire.mutable_pipeline() = PipelineReportToWire(*prediction.pipeline);
  wire.set_devices(prediction.devices);
  if (prediction.passes.has_value()) *wire.mutable_passes() = PassesToWire(*prediction.passes);
  if (prediction.memory.has_value()) *wire.mutable_memory() = MemoryToWire(*prediction.memory);
  for (const ThroughputPoint& point : prediction.series) {
    v1::ThroughputPoint& to = *wire.add_throughput_over_time();
    to.set_end_seconds(point.end_seconds);
    to.set_examples_per_second(point.examples_per_second);
  }
  for (const Assumption& assumption : AssumptionsOf(prediction.scenario))
    *wire.add_assumptions() = ToWire(assumption);
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

v1::CollectiveInputs WireInputs(const CollectiveInputs& inputs) {
  v1::CollectiveInputs wire;
  wire.set_computation_seconds(inputs.computation_seconds);
  wire.set_size_bytes(inputs.bytes);
  wire.set_pollux_seconds(inputs.pollux.network_seconds);
  wire.set_pollux_seconds_per_worker(inputs.pollux.network_seconds_per_worker);
  wire.set_pollux_exponent(inputs.pollux.exponent);
  return wire;
}

v1::PipelineInputs WireInputs(const PipelineInputs& inputs) {
  v1::PipelineInputs wire;
  wire.set_slowest_seconds(inputs.slowest_seconds);
  wire.set_slowest_weight_seconds(inputs.slowest_weight_seconds);
  wire.set_mean_seconds(inputs.mean_seconds);
  wire.set_transfer_seconds(inputs.transfer_seconds);
  wire.set_rest_seconds(inputs.rest_seconds);
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
  if (answer.answer.pipeline_inputs.has_value()) {
    *wire.mutable_pipeline_inputs() = WireInputs(*answer.answer.pipeline_inputs);
  } else if (answer.answer.collective_inputs.has_value()) {
    *wire.mutable_collective_inputs() = WireInputs(*answer.answer.collective_inputs);
  } else {
    *wire.mutable_inputs() = WireInputs(answer.answer.inputs);
  }
  *wire.mutable_simulation() = ToWire(answer.answer.simulation, answer.context.engine_seconds);
  *wire.mutable_options() = ToWire(answer.context.options);
  wire.set_profile_digest(answer.context.profile_digest);
  wire.set_engine_version(kEngineVersion);
  return wire;
}

namespace {

google::protobuf::RepeatedPtrField<v1::PathTime> WireTimes(const SecondsByKind& seconds) {
  google::protobuf::RepeatedPtrField<v1::PathTime> wire;
  for (size_t kind = 0; kind < kPathKinds; ++kind) {
    if (seconds[kind] <= 0) continue;
    v1::PathTime& time = *wire.Add();
    time.set_kind(WireOf(kPathKindTable, static_cast<PathKind>(kind)));
    time.set_seconds(seconds[kind]);
  }
  return wire;
}

v1::WorkerDiagnosis WireWorker(const WorkerDiagnosis& worker) {
  v1::WorkerDiagnosis wire;
  *wire.mutable_own() = WireTimes(worker.own);
  wire.set_on_path_seconds(worker.on_path_seconds);
  wire.set_waited_for_seconds(worker.waited_for_seconds);
  return wire;
}

v1::PathOperation WireOperation(const PathOperation& operation) {
  v1::PathOperation wire;
  for (const std::string& name : operation.operations) wire.add_operations(name);
  wire.set_kind(WireOf(kPathKindTable, operation.kind));
  wire.set_seconds(operation.seconds);
  return wire;
}

// The fields of a path, which both of its messages have.
template <typename Message>
void FillPath(const PathDiagnosis& path, Message& wire) {
  wire.set_path_steps(path.steps);
  wire.set_path_seconds(path.seconds);
  *wire.mutable_path() = WireTimes(path.by_kind);
  for (const WorkerDiagnosis& worker : path.workers) *wire.add_workers() = WireWorker(worker);
  if (path.straggler >= 0) wire.set_straggler(path.straggler);
  for (const PathOperation& operation : path.operations)
    *wire.add_operations() = WireOperation(operation);
}

v1::WhatIf WireChange(const WhatIfAnswer& answer) {
  v1::WhatIf wire;
  wire.set_change(WireOf(kWhatIfs, answer.change));
  *wire.mutable_prediction() = ToWire(answer.prediction);
  wire.set_ratio(answer.ratio);
  *wire.mutable_ratio_interval() = ToWire(answer.ratio_interval);
  wire.set_setting(answer.setting);
  for (const TunedGroup& group : answer.groups) *wire.add_groups() = ToWire(group);
  return wire;
}

}  // namespace

DiagnoseJobCall FromWire(const v1::DiagnoseJobRequest& wire) {
  DiagnoseJobCall call{.source = SourceOf(wire)};
  FaultList faults;
  call.draft.scenario = FromWire(wire.scenario(), "scenario", faults);
  call.draft.options = FromWire(wire.options(), "options", faults);
  call.faults = std::move(faults).Take();
  return call;
}

v1::DiagnoseJobResponse ToWire(const DiagnoseJobAnswer& answer) {
  const Diagnosis& diagnosis = answer.answer;
  v1::DiagnoseJobResponse wire;
  *wire.mutable_prediction() = ToWire(diagnosis.prediction);
  FillPath(diagnosis.path, wire);
  for (const PipelineFinding& finding : diagnosis.findings) {
    v1::PipelineFinding& to = *wire.add_findings();
    to.set_part(WireOf(kPipelineBottlenecks, finding.part));
    to.set_seconds(finding.seconds);
    to.set_fraction(finding.seconds * diagnosis.prediction.steps_per_second /
                    diagnosis.prediction.scenario.workers);
    if (finding.device >= 0) to.set_device(finding.device);
    if (finding.change.has_value()) to.set_change(WireOf(kWhatIfs, *finding.change));
    to.set_ratio(finding.ratio);
    to.set_text(finding.text);
  }
  for (const WhatIfAnswer& what_if : diagnosis.what_ifs) *wire.add_what_ifs() = WireChange(what_if);
  for (const WhatIfLeftOut& left_out : diagnosis.left_out) {
    v1::LeftOutChange& to = *wire.add_left_out();
    to.set_change(WireOf(kWhatIfs, left_out.change));
    to.set_reason(left_out.reason);
  }
  if (diagnosis.recording) {
    v1::RecordedJobDiagnosis& to = *wire.mutable_recording();
    *to.mutable_report() = ToWire(diagnosis.recording->report);
    FillPath(diagnosis.recording->path, to);
    if (const auto& found = diagnosis.recording->overlap_slowdown; found.has_value()) {
      v1::OverlapSlowdown& slowdown = *to.mutable_overlap_slowdown();
      slowdown.set_slowdown(found->slowdown);
      *slowdown.mutable_interval() = ToWire(found->interval);
      slowdown.set_operations(found->operations);
      slowdown.set_runs_alone(found->runs_alone);
      slowdown.set_runs_beside(found->runs_beside);
    }
    if (const auto& found = diagnosis.recording->collective_slowdown; found.has_value()) {
      v1::CollectiveSlowdown& slowdown = *to.mutable_collective_slowdown();
      slowdown.set_slowdown(found->slowdown);
      *slowdown.mutable_interval() = ToWire(found->interval);
      slowdown.set_collectives(found->collectives);
      slowdown.set_runs(found->runs);
      slowdown.set_computing_fraction(found->computing_fraction);
    }
  }
  *wire.mutable_simulation() = ToWire(diagnosis.simulation, answer.context.engine_seconds);
  *wire.mutable_options() = ToWire(answer.context.options);
  wire.set_profile_digest(answer.context.profile_digest);
  wire.set_engine_version(kEngineVersion);
  return wire;
}

namespace {

v1::ConfidenceInterval WireAround(double value, double half_width, double level) {
  return ToWire(Interval{
      .lower = std::max(0.0, value - half_width), .upper = value + half_width, .level = level});
}

}  // namespace

FitParsingOverheadCall FromWire(const v1::FitParsingOverheadRequest& wire) {
  FitParsingOverheadCall call;
  call.draft.measurements.reserve(static_cast<size_t>(wire.measurements_size()));
  for (const v1::ParsingMeasurement& m : wire.measurements()) {
    call.draft.measurements.push_back({.size_bytes = m.size_bytes(), .seconds = m.seconds()});
  }
  if (wire.has_confidence_level()) call.draft.confidence_level = wire.confidence_level();
  return call;
}

v1::FitParsingOverheadResponse ToWire(const FitParsingOverheadAnswer& answer) {
  const MeasuredLine& fit = answer.answer.fit;
  const double level = answer.answer.confidence_level;
  v1::FitParsingOverheadResponse wire;
  wire.set_seconds_per_byte(fit.line.slope);
  wire.set_seconds(fit.line.offset);
  *wire.mutable_seconds_per_byte_interval() =
      WireAround(fit.line.slope, fit.half_width.slope, level);
  *wire.mutable_seconds_interval() = WireAround(fit.line.offset, fit.half_width.offset, level);
  wire.set_residual_seconds(fit.residual);
  wire.set_relative_residual(fit.relative_residual);
  wire.set_outliers(fit.outliers);
  wire.mutable_least_squares()->set_seconds_per_byte(answer.answer.least_squares.slope);
  wire.mutable_least_squares()->set_seconds(answer.answer.least_squares.offset);
  wire.set_engine_version(kEngineVersion);
  return wire;
}

FitCollectivesCall FromWire(const v1::FitCollectivesRequest& wire) {
  FitCollectivesCall call;
  FaultList faults;
  for (int i = 0; i < wire.measurements_size(); ++i)
    call.draft.measurements.push_back(
        FromWire(wire.measurements(i), absl::StrCat("measurements[", i, "]"), faults));
  call.draft.algorithm = CoreOf(kCollectiveAlgorithms, wire.algorithm(), "algorithm", faults);
  if (wire.has_confidence_level()) call.draft.confidence_level = wire.confidence_level();
  if (wire.has_workers_per_node()) call.draft.workers_per_node = wire.workers_per_node();
  call.faults = std::move(faults).Take();
  return call;
}

namespace {

// Interval of a constant that was fitted, of collectives or of contention.
template <typename Fitted>
v1::ConfidenceInterval WireInterval(const Fitted& fitted, double level) {
  return ToWire(Interval{.lower = fitted.lower, .upper = fitted.upper, .level = level});
}

// A coefficient beyond a scenario's bounds is left out, as a warning says.
v1::Scenario WireScenario(const CollectiveFit& fit) {
  v1::Scenario wire;
  v1::AllReduce& job = *wire.mutable_all_reduce();
  if (fit.workers_per_node > 1) job.set_workers_per_node(fit.workers_per_node);
  if (!fit.points.empty()) {
    job.set_algorithm(v1::AllReduce::MEASURED);
    for (const MeasuredCollective& point : fit.points) *job.add_measured() = ToWire(point);
    return wire;
  }
  job.set_algorithm(WireOf(kCollectiveAlgorithms, fit.algorithm));
  const AllReduceLimits limits;
  const double bandwidth = fit.bandwidth.value;
  if (bandwidth >= Bandwidth::kMinBytesPerSecond && bandwidth <= Bandwidth::kMaxBytesPerSecond) {
    if (fit.is_inside_node) {
      job.set_intra_node_bandwidth_bytes_per_second(bandwidth);
    } else {
      wire.set_bandwidth_bytes_per_second(bandwidth);
    }
  }
  if (fit.latency.value <= limits.max_latency_seconds) {
    if (fit.is_inside_node) {
      job.set_intra_node_latency_seconds(fit.latency.value);
    } else {
      job.set_latency_seconds(fit.latency.value);
    }
  }
  if (fit.reduction.value <= limits.max_reduction_seconds_per_byte)
    job.set_reduction_seconds_per_byte(fit.reduction.value);
  return wire;
}

}  // namespace

v1::FitCollectivesResponse ToWire(const FitCollectivesAnswer& answer) {
  const CollectiveFit& fit = answer.answer;
  const double level = fit.confidence_level;
  v1::FitCollectivesResponse wire;
  wire.set_bandwidth_bytes_per_second(fit.bandwidth.value);
  wire.set_latency_seconds(fit.latency.value);
  wire.set_reduction_seconds_per_byte(fit.reduction.value);
  *wire.mutable_bandwidth_interval() = WireInterval(fit.bandwidth, level);
  if (fit.latency.is_told) *wire.mutable_latency_interval() = WireInterval(fit.latency, level);
  if (fit.reduction.is_told)
    *wire.mutable_reduction_interval() = WireInterval(fit.reduction, level);
  wire.set_relative_residual(fit.relative_residual);
  wire.set_outliers(fit.outliers);
  for (const WorkersResidual& at : fit.by_workers) {
    auto& row = *wire.add_by_workers();
    row.set_workers(at.workers);
    row.set_measurements(at.measurements);
    row.set_outliers(at.outliers);
    row.set_relative_residual(at.relative_residual);
    row.set_bias(at.bias);
  }
  for (const FitWarning& warning : fit.warnings) {
    auto& to = *wire.add_warnings();
    to.set_reason(WireOf(kFitWarningReasons, warning.reason));
    to.set_message(warning.message);
  }
  *wire.mutable_scenario() = WireScenario(fit);
  wire.set_engine_version(kEngineVersion);
  return wire;
}

FitContentionCall FromWire(const v1::FitContentionRequest& wire) {
  FitContentionCall call;
  ContentionMeasurements& measured = call.draft;
  for (const v1::FitContentionRequest::Transfer& transfer : wire.transfers()) {
    measured.transfers.push_back({.threads = transfer.threads(),
                                  .bytes = transfer.size_bytes(),
                                  .seconds = transfer.seconds(),
                                  .overlapped = transfer.overlapped()});
  }
  for (const v1::FitContentionRequest::Slowdown& slowdown : wire.slowdowns()) {
    measured.slowdowns.push_back({.threads = slowdown.threads(), .slowdown = slowdown.slowdown()});
  }
  if (wire.has_workers()) measured.workers = wire.workers();
  measured.latency_seconds = wire.latency_seconds();
  if (wire.has_gamma4()) measured.gamma4 = wire.gamma4();
  if (wire.has_confidence_level()) measured.confidence_level = wire.confidence_level();
  return call;
}

namespace {

v1::FitContentionResponse::Rate WireRate(const FittedRate& rate, double level) {
  v1::FitContentionResponse::Rate wire;
  *wire.mutable_gamma1_interval() = WireInterval(rate.gamma1, level);
  *wire.mutable_gamma2_interval() = WireInterval(rate.gamma2, level);
  *wire.mutable_gamma3_interval() = WireInterval(rate.gamma3, level);
  wire.set_is_told(rate.is_told);
  wire.set_outliers(rate.outliers);
  wire.set_relative_residual(rate.relative_residual);
  return wire;
}

}  // namespace

v1::FitContentionResponse ToWire(const FitContentionAnswer& answer) {
  const ContentionFit& fit = answer.answer;
  const double level = answer.confidence_level;
  v1::FitContentionResponse wire;
  *wire.mutable_contention() = ToWire(fit.contention);
  *wire.mutable_alpha1_interval() = WireInterval(fit.alpha1, level);
  *wire.mutable_alpha2_interval() = WireInterval(fit.alpha2, level);
  wire.set_slowdown_outliers(fit.slowdown_outliers);
  *wire.mutable_overlapped() = WireRate(fit.overlapped, level);
  *wire.mutable_alone() = WireRate(fit.alone, level);
  if (answer.unusable_because.empty()) {
    v1::FitContentionResponse::Assumptions& assumptions = *wire.mutable_assumptions();
    assumptions.set_computation_not_faster(answer.assumptions.computation_not_faster);
    assumptions.set_transfer_not_faster(answer.assumptions.transfer_not_faster);
    assumptions.set_overlap_not_longer(answer.assumptions.overlap_not_longer);
    assumptions.set_guarantee_void_because(answer.assumptions.why);
  }
  wire.set_unusable_because(answer.unusable_because);
  wire.set_engine_version(kEngineVersion);
  return wire;
}

GenerateTraceCall FromWire(const v1::GenerateTraceRequest& wire) {
  GenerateTraceCall call{.source = SourceOf(wire)};
  FaultList faults;
  call.draft.scenario = FromWire(wire.scenario(), "scenario", faults);
  call.draft.options = FromWire(wire.options(), "options", faults);
  call.draft.critical_path = wire.critical_path();
  call.draft.recording = wire.recording();
  call.faults = std::move(faults).Take();
  return call;
}

}  // namespace stepcast::server
