#include "server/convert/scenario_convert.h"

#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <utility>
#include <variant>

#include "absl/strings/str_cat.h"

#include "server/convert/enum_table.h"
#include "server/convert/profile_convert.h"

namespace stepcast::server {

namespace {

constexpr int64_t kMaxDurationSeconds = 315'576'000'000;
constexpr int32_t kNanosPerSecond = 1'000'000'000;

WorkerGroup GroupFromWire(const v1::WorkerGroup& wire) {
  WorkerGroup group;
  group.count = wire.count();
  if (wire.has_compute_speed_factor()) group.compute_speed_factor = wire.compute_speed_factor();
  if (wire.has_bandwidth_bytes_per_second())
    group.bandwidth_bytes_per_second = wire.bandwidth_bytes_per_second();
  return group;
}

v1::WorkerGroup GroupToWire(const WorkerGroup& group) {
  v1::WorkerGroup wire;
  wire.set_count(group.count);
  if (group.compute_speed_factor) wire.set_compute_speed_factor(*group.compute_speed_factor);
  if (group.bandwidth_bytes_per_second)
    wire.set_bandwidth_bytes_per_second(*group.bandwidth_bytes_per_second);
  return wire;
}

ParameterServersDraft ServersFromWire(const v1::ParameterServers& wire, const std::string& path,
                                      FaultList& faults) {
  const auto at = [&](const char* field) { return absl::StrCat(path, ".", field); };
  ParameterServersDraft draft;
  if (wire.has_servers()) draft.servers = wire.servers();
  if (wire.has_parsing_overhead()) draft.parsing_overhead = FromWire(wire.parsing_overhead());
  draft.synchronization =
      CoreOf(kSynchronizations, wire.synchronization(), at("synchronization"), faults);
  if (wire.has_whole_stream()) {
    draft.multiplexing = WholeStream{};
  } else if (wire.has_window()) {
    WindowDraft window;
    if (wire.window().has_bytes()) window.bytes = wire.window().bytes();
    if (wire.window().has_quantum_bytes()) window.quantum_bytes = wire.window().quantum_bytes();
    draft.multiplexing = window;
  } else if (wire.has_round_robin()) {
    const v1::ParameterServers::RoundRobin& from = wire.round_robin();
    RoundRobinDraft robin;
    if (from.has_window_bytes()) robin.window_bytes = from.window_bytes();
    if (from.has_quantum_bytes()) robin.quantum_bytes = from.quantum_bytes();
    draft.multiplexing = robin;
  }
  if (wire.has_equal()) {
    draft.link_sharing = EqualShares{};
  } else if (wire.has_first_come()) {
    draft.link_sharing = FirstCome{};
  } else if (wire.has_turns()) {
    TurnsDraft turns;
    if (wire.turns().has_bytes()) turns.bytes = wire.turns().bytes();
    draft.link_sharing = turns;
  }
  draft.transfer_order =
      CoreOf(kTransferOrders, wire.transfer_order(), at("transfer_order"), faults);
  draft.transfer_priorities = {wire.transfer_priorities().begin(),
                               wire.transfer_priorities().end()};
  if (wire.has_partition_bytes()) draft.partition_bytes = wire.partition_bytes();
  return draft;
}

v1::ParameterServers ServersToWire(const ParameterServers& servers) {
  v1::ParameterServers wire;
  wire.set_servers(servers.servers);
  *wire.mutable_parsing_overhead() = ToWire(servers.parsing_overhead);
  wire.set_synchronization(WireOf(kSynchronizations, servers.synchronization));
  if (const auto* window = std::get_if<Window>(&servers.multiplexing)) {
    wire.mutable_window()->set_bytes(window->bytes);
    if (window->quantum_bytes > 0) wire.mutable_window()->set_quantum_bytes(window->quantum_bytes);
  } else if (const auto* robin = std::get_if<RoundRobin>(&servers.multiplexing)) {
    wire.mutable_round_robin()->set_window_bytes(robin->window_bytes);
    wire.mutable_round_robin()->set_quantum_bytes(robin->quantum_bytes);
  } else {
    wire.mutable_whole_stream();
  }
  if (const auto* turns = std::get_if<Turns>(&servers.link_sharing)) {
    wire.mutable_turns()->set_bytes(turns->bytes);
  } else if (std::holds_alternative<FirstCome>(servers.link_sharing)) {
    wire.mutable_first_come();
  } else {
    wire.mutable_equal();
  }
  wire.set_transfer_order(WireOf(kTransferOrders, servers.transfer_order));
  wire.mutable_transfer_priorities()->insert(servers.transfer_priorities.begin(),
                                             servers.transfer_priorities.end());
  if (servers.partition_bytes > 0) wire.set_partition_bytes(servers.partition_bytes);
  return wire;
}

ClusterDraft ClusterFromWire(const v1::Cluster& wire, const std::string& path, FaultList& faults) {
  ClusterDraft draft{.bandwidth_bytes_per_second = wire.bandwidth_bytes_per_second()};
  if (wire.has_workers_per_node()) draft.workers_per_node = wire.workers_per_node();
  if (wire.has_intra_node_bandwidth_bytes_per_second())
    draft.intra_node_bandwidth_bytes_per_second = wire.intra_node_bandwidth_bytes_per_second();
  if (wire.has_latency_seconds()) draft.latency_seconds = wire.latency_seconds();
  if (wire.has_intra_node_latency_seconds())
    draft.intra_node_latency_seconds = wire.intra_node_latency_seconds();
  draft.algorithm = CoreOf(kCollectiveAlgorithms, wire.algorithm(), path + ".algorithm", faults);
  return draft;
}

// Adds the fields that are set in the message, which lies at `path` of a scenario: of a message in
// it those that are set there, as `window.bytes` is set by hand and `window` is not.
void AddSetFields(const google::protobuf::Message& message, const std::string& path,
                  std::vector<std::string>& paths) {
  using google::protobuf::FieldDescriptor;
  const google::protobuf::Reflection& reflection = *message.GetReflection();
  std::vector<const FieldDescriptor*> set;
  reflection.ListFields(message, &set);
  for (const FieldDescriptor* field : set) {
    const std::string field_path = absl::StrCat(path, ".", std::string(field->name()));
    const size_t before = paths.size();
    if (field->cpp_type() == FieldDescriptor::CPPTYPE_MESSAGE && !field->is_repeated())
      AddSetFields(reflection.GetMessage(message, field), field_path, paths);
    if (paths.size() == before) paths.push_back(field_path);
  }
}

v1::JobChange ChangeToWire(const JobChange& change) {
  v1::JobChange wire;
  if (change.batch_size.has_value()) wire.set_batch_size(*change.batch_size);
  if (change.fixed_fraction.has_value()) wire.set_fixed_fraction(*change.fixed_fraction);
  if (change.accumulate.has_value()) wire.set_accumulate(*change.accumulate);
  if (change.compute_speed_factor.has_value())
    wire.set_compute_speed_factor(*change.compute_speed_factor);
  if (change.gradient_bytes_factor.has_value())
    wire.set_gradient_bytes_factor(*change.gradient_bytes_factor);
  if (change.global_batch_size.has_value()) wire.set_global_batch_size(*change.global_batch_size);
  return wire;
}

}  // namespace

PipelineDraft FromWire(const v1::Pipeline& wire, const std::string& path, FaultList& faults) {
  const auto at = [&](const char* field) { return absl::StrCat(path, ".", field); };
  PipelineDraft draft;
  if (wire.stages() != 0) draft.stages = wire.stages();
  if (wire.micro_batches() != 0) draft.micro_batches = wire.micro_batches();
  draft.schedule = CoreOf(kPipelineSchedules, wire.schedule(), at("schedule"), faults);
  if (wire.has_chunks()) draft.chunks = wire.chunks();
  if (wire.has_group()) draft.group = wire.group();
  draft.variant = CoreOf(kPipelineVariants, wire.variant(), at("variant"), faults);
  draft.cuts = {wire.cuts().begin(), wire.cuts().end()};
  draft.receives = CoreOf(kPipelineReceives, wire.receives(), at("receives"), faults);
  draft.transport = CoreOf(kPipelineTransports, wire.transport(), at("transport"), faults);
  draft.links = CoreOf(kPipelineLinks, wire.links(), at("links"), faults);
  if (wire.has_bandwidth_bytes_per_second())
    draft.bandwidth_bytes_per_second = wire.bandwidth_bytes_per_second();
  if (wire.has_latency_seconds()) draft.latency_seconds = wire.latency_seconds();
  draft.reduction = CoreOf(kPipelineReductions, wire.reduction(), at("reduction"), faults);
  draft.step_barrier = wire.step_barrier();
  if (wire.has_gradient_element_bytes())
    draft.gradient_element_bytes = wire.gradient_element_bytes();
  if (wire.has_nodes_per_replica()) draft.nodes_per_replica = wire.nodes_per_replica();
  return draft;
}

v1::Pipeline ToWire(const Pipeline& pipeline) {
  v1::Pipeline wire;
  wire.set_stages(pipeline.layout.devices);
  wire.set_micro_batches(pipeline.layout.micro_batches);
  wire.set_schedule(WireOf(kPipelineSchedules, pipeline.layout.schedule));
  wire.set_chunks(pipeline.layout.chunks);
  if (pipeline.layout.group != 0) wire.set_group(pipeline.layout.group);
  wire.set_variant(WireOf(kPipelineVariants, pipeline.layout.variant));
  wire.mutable_cuts()->Add(pipeline.cuts.begin(), pipeline.cuts.end());
  wire.set_receives(WireOf(kPipelineReceives, pipeline.receives));
  wire.set_transport(WireOf(kPipelineTransports, pipeline.transport));
  wire.set_links(WireOf(kPipelineLinks, pipeline.links));
  // The network's own, which reductions share, is left unset, or asked for again it would be
  // another.
  if (!pipeline.has_network_links)
    wire.set_bandwidth_bytes_per_second(pipeline.bandwidth_bytes_per_second);
  wire.set_latency_seconds(pipeline.latency_seconds);
  wire.set_reduction(WireOf(kPipelineReductions, pipeline.reduction));
  wire.set_step_barrier(pipeline.step_barrier);
  if (pipeline.reduction == PipelineReduction::kMegatronBuckets)
    wire.set_gradient_element_bytes(pipeline.gradient_element_bytes);
  if (pipeline.nodes_per_replica > 1) wire.set_nodes_per_replica(pipeline.nodes_per_replica);
  return wire;
}

v1::Pipeline ToWire(const PipelineDraft& draft) {
  v1::Pipeline wire;
  wire.set_stages(draft.stages.value_or(0));
  wire.set_micro_batches(draft.micro_batches.value_or(0));
  if (draft.schedule.has_value()) wire.set_schedule(WireOf(kPipelineSchedules, *draft.schedule));
  if (draft.chunks.has_value()) wire.set_chunks(*draft.chunks);
  return wire;
}

std::optional<double> FromWire(const google::protobuf::Duration& wire, const std::string& path,
                               FaultList& faults) {
  const bool same_sign =
      wire.seconds() == 0 || wire.nanos() == 0 || (wire.seconds() < 0) == (wire.nanos() < 0);
  const bool in_range = wire.seconds() >= -kMaxDurationSeconds &&
                        wire.seconds() <= kMaxDurationSeconds &&
                        std::abs(int64_t{wire.nanos()}) < kNanosPerSecond;
  if (!same_sign || !in_range) {
    faults.Add(path, absl::StrCat(wire.seconds(), " seconds and ", wire.nanos(),
                                  " nanos are not a valid duration"));
    return std::nullopt;
  }
  return static_cast<double>(wire.seconds()) + static_cast<double>(wire.nanos()) * 1e-9;
}

google::protobuf::Duration DurationOf(double seconds) {
  const double whole = std::trunc(seconds);
  auto nanos = static_cast<int32_t>(std::llround((seconds - whole) * kNanosPerSecond));
  auto whole_seconds = static_cast<int64_t>(whole);
  if (std::abs(nanos) == kNanosPerSecond) {
    whole_seconds += nanos / kNanosPerSecond;
    nanos = 0;
  }
  google::protobuf::Duration wire;
  wire.set_seconds(whole_seconds);
  wire.set_nanos(nanos);
  return wire;
}

ScenarioDraft FromWire(const v1::Scenario& wire, const std::string& path, FaultList& faults) {
  ScenarioDraft draft;
  if (wire.workers() != 0) draft.workers = wire.workers();
  if (wire.has_bandwidth_bytes_per_second())
    draft.bandwidth_bytes_per_second = wire.bandwidth_bytes_per_second();
  if (wire.has_parameter_servers()) {
    draft.communication =
        ServersFromWire(wire.parameter_servers(), absl::StrCat(path, ".parameter_servers"), faults);
    AddSetFields(wire.parameter_servers(), "parameter_servers", draft.set_fields.paths);
  } else if (wire.has_all_reduce()) {
    draft.communication = FromWire(wire.all_reduce(), absl::StrCat(path, ".all_reduce"), faults);
    AddSetFields(wire.all_reduce(), "all_reduce", draft.set_fields.paths);
  }
  draft.recorded_kind_only = wire.recorded_kind_only();
  draft.bandwidth_is_measured = wire.bandwidth_is_measured();
  if (wire.has_other_traffic_fraction())
    draft.other_traffic_fraction = wire.other_traffic_fraction();
  if (wire.has_nodes_per_worker()) draft.nodes_per_worker = wire.nodes_per_worker();
  if (wire.has_cluster())
    draft.cluster = ClusterFromWire(wire.cluster(), path + ".cluster", faults);
  draft.start_offsets_ns = {wire.start_offsets_ns().begin(), wire.start_offsets_ns().end()};
  if (wire.has_pipeline()) draft.pipeline = FromWire(wire.pipeline(), path + ".pipeline", faults);
  for (const v1::WorkerGroup& group : wire.worker_groups())
    draft.worker_groups.push_back(GroupFromWire(group));
  return draft;
}

v1::Scenario ToWire(const Scenario& scenario) {
  v1::Scenario wire;
  if (scenario.change != nullptr) *wire.mutable_change() = ChangeToWire(scenario.change->change);
  wire.set_workers(scenario.workers);
  wire.set_bandwidth_bytes_per_second(scenario.bandwidth_bytes_per_second);
  if (scenario.has_servers()) {
    *wire.mutable_parameter_servers() = ServersToWire(scenario.servers());
  } else {
    *wire.mutable_all_reduce() = ToWire(scenario.all_reduce());
  }
  wire.mutable_start_offsets_ns()->Add(scenario.start_offsets_ns.begin(),
                                       scenario.start_offsets_ns.end());
  if (scenario.pipeline.has_value()) *wire.mutable_pipeline() = ToWire(*scenario.pipeline);
  if (scenario.nodes_per_worker > 1) wire.set_nodes_per_worker(scenario.nodes_per_worker);
  for (const WorkerGroup& group : scenario.worker_groups)
    *wire.add_worker_groups() = GroupToWire(group);
  return wire;
}

SimulationOptionsDraft FromWire(const v1::SimulationOptions& wire, const std::string& path,
                                FaultList& faults) {
  const auto at = [&](const char* field) { return absl::StrCat(path, ".", field); };
  SimulationOptionsDraft draft;
  if (wire.has_steps_per_worker()) draft.steps_per_worker = wire.steps_per_worker();
  if (wire.has_warmup_steps()) draft.warmup_steps = wire.warmup_steps();
  if (wire.has_seed()) draft.seed = wire.seed();
  if (wire.has_replications()) draft.replications = wire.replications();
  if (wire.has_relative_precision()) draft.relative_precision = wire.relative_precision();
  if (wire.has_time_budget())
    draft.time_budget_seconds = FromWire(wire.time_budget(), at("time_budget"), faults);
  draft.start = CoreOf(kStarts, wire.start(), at("start"), faults);
  draft.horizon = CoreOf(kHorizons, wire.horizon(), at("horizon"), faults);
  if (wire.has_horizon_steps()) draft.horizon_steps = wire.horizon_steps();
  if (wire.has_horizon_seconds()) draft.horizon_seconds = wire.horizon_seconds();
  if (wire.has_confidence_level()) draft.confidence_level = wire.confidence_level();
  draft.step_variation =
      CoreOf(kStepVariations, wire.step_variation(), at("step_variation"), faults);
  if (!draft.step_variation.has_value() &&
      draft.horizon.value_or(Horizon::kSteadyState) == Horizon::kSteadyState)
    draft.step_variation = StepSource::kModelled;
  if (wire.has_model_error_fraction()) draft.model_error_fraction = wire.model_error_fraction();
  return draft;
}

v1::SimulationOptions ToWire(const SimulationOptions& options) {
  v1::SimulationOptions wire;
  // Options that nobody asked for, nor has to ask for to get the same answer, are left out.
  if (options.horizon == Horizon::kSteadyState) {
    if (!options.automatic_steps) wire.set_steps_per_worker(options.steps_per_worker);
    if (!options.automatic_warmup) wire.set_warmup_steps(options.warmup_steps);
  }
  wire.set_seed(options.seed);
  if (!options.automatic_replications) wire.set_replications(options.replications);
  wire.set_relative_precision(options.relative_precision);
  if (options.time_budget_seconds > 0)
    *wire.mutable_time_budget() = DurationOf(options.time_budget_seconds);
  wire.set_start(WireOf(kStarts, options.start));
  wire.set_horizon(WireOf(kHorizons, options.horizon));
  if (options.horizon == Horizon::kFirstSteps) wire.set_horizon_steps(options.horizon_steps);
  if (options.horizon == Horizon::kFirstSeconds) wire.set_horizon_seconds(options.horizon_seconds);
  wire.set_confidence_level(options.confidence_level);
  wire.set_step_variation(WireOf(kStepVariations, options.step_variation));
  if (options.model_error_fraction.has_value())
    wire.set_model_error_fraction(*options.model_error_fraction);
  return wire;
}

}  // namespace stepcast::server
