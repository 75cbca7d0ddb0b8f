#include "server/convert/profile_convert.h"

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"

#include "core/base/error.h"
#include "core/base/message_text.h"
#include "server/convert/enum_table.h"
#include "server/convert/operation_convert.h"

namespace stepcast::server {

namespace {

Operation OperationFromWire(const v1::Operation& wire, size_t index, FaultList& faults) {
  Operation operation;
  operation.name = wire.name();
  // The path is only written where it is needed: there may be a million operations.
  if (wire.resource() != v1::Operation::RESOURCE_UNSPECIFIED) {
    const std::string path = v1::Operation::Resource_IsValid(wire.resource())
                                 ? ""
                                 : absl::StrCat("operations[", index, "].resource");
    operation.resource =
        CoreOf(kResources, wire.resource(), path, faults).value_or(Resource::kUnspecified);
  }
  operation.parameter_server = wire.parameter_server();
  operation.size_bytes = wire.size_bytes();
  operation.waiting_for.assign(wire.waiting_for().begin(), wire.waiting_for().end());
  operation.parameter = wire.parameter();
  if (wire.collective() != v1::Operation::COLLECTIVE_UNSPECIFIED) {
    const std::string path = v1::Operation::Collective_IsValid(wire.collective())
                                 ? ""
                                 : absl::StrCat("operations[", index, "].collective");
    operation.collective =
        CoreOf(kCollectives, wire.collective(), path, faults).value_or(Collective::kUnspecified);
  }
  operation.stream = wire.stream();
  operation.kept_bytes = wire.kept_bytes();
  if (wire.pass() != v1::Operation::PASS_UNSPECIFIED) {
    const std::string path = v1::Operation::Pass_IsValid(wire.pass())
                                 ? ""
                                 : absl::StrCat("operations[", index, "].pass");
    operation.pass = CoreOf(kPasses, wire.pass(), path, faults).value_or(Pass::kUnspecified);
  }
  operation.output_bytes = wire.output_bytes();
  operation.group = wire.group();
  return operation;
}

v1::Operation OperationToWire(const Operation& operation) {
  v1::Operation wire;
  wire.set_name(operation.name);
  wire.set_resource(WireOf(kResources, operation.resource));
  wire.set_parameter_server(operation.parameter_server);
  wire.set_size_bytes(operation.size_bytes);
  wire.mutable_waiting_for()->Add(operation.waiting_for.begin(), operation.waiting_for.end());
  wire.set_parameter(operation.parameter);
  if (operation.collective != Collective::kUnspecified)
    wire.set_collective(WireOf(kCollectives, operation.collective));
  wire.set_stream(operation.stream);
  wire.set_kept_bytes(operation.kept_bytes);
  if (operation.pass != Pass::kUnspecified) wire.set_pass(WireOf(kPasses, operation.pass));
  wire.set_output_bytes(operation.output_bytes);
  wire.set_group(operation.group);
  return wire;
}

RecordedStep StepFromWire(const v1::Step& step) {
  return {.start_ns = {step.start_ns().begin(), step.start_ns().end()},
          .end_ns = {step.end_ns().begin(), step.end_ns().end()}};
}

v1::Step StepToWire(const RecordedStep& recorded) {
  v1::Step step;
  step.mutable_start_ns()->Add(recorded.start_ns.begin(), recorded.start_ns.end());
  step.mutable_end_ns()->Add(recorded.end_ns.begin(), recorded.end_ns.end());
  return step;
}

JobRecording RecordingFromWire(const v1::JobRecording& wire, FaultList& faults) {
  JobRecording recording;
  if (wire.overlap_slowdown() != 0) recording.overlap_slowdown = wire.overlap_slowdown();
  if (wire.collective_slowdown() != 0) recording.collective_slowdown = wire.collective_slowdown();
  recording.computing_ns = {wire.computing_ns().begin(), wire.computing_ns().end()};
  recording.job_workers = wire.job_workers();
  for (const v1::LaunchedCollective& collective : wire.collectives()) {
    const std::string path =
        absl::StrCat("recording.collectives[", recording.collectives.size(), "].kind");
    recording.collectives.push_back({.kind = CoreOf(kCollectives, collective.kind(), path, faults)
                                                 .value_or(Collective::kUnspecified),
                                     .size_bytes = collective.size_bytes()});
  }
  for (const v1::WorkerRecording& from : wire.workers()) {
    const std::string path = absl::StrCat("recording.workers[", recording.workers.size(), "]");
    WorkerRecording& worker = recording.workers.emplace_back();
    worker.name = from.name();
    for (const v1::Step& step : from.steps()) worker.steps.push_back(StepFromWire(step));
    worker.step_begins_ns = {from.step_begins_ns().begin(), from.step_begins_ns().end()};
    worker.step_ends_ns = {from.step_ends_ns().begin(), from.step_ends_ns().end()};
    if (from.run_starts_ns_size() != from.run_ends_ns_size()) {
      faults.Add(path + ".run_ends_ns", absl::StrCat(from.run_ends_ns_size(), " ends for ",
                                                     from.run_starts_ns_size(), " starts"));
    }
    for (int i = 0; i < std::min(from.run_starts_ns_size(), from.run_ends_ns_size()); ++i)
      worker.runs.push_back({.start_ns = from.run_starts_ns(i), .end_ns = from.run_ends_ns(i)});
    worker.server_shifts_ns = {from.server_shifts_ns().begin(), from.server_shifts_ns().end()};
  }
  return recording;
}

v1::JobRecording RecordingToWire(const JobRecording& recording) {
  v1::JobRecording wire;
  if (recording.overlap_slowdown != 1) wire.set_overlap_slowdown(recording.overlap_slowdown);
  if (recording.collective_slowdown != 1)
    wire.set_collective_slowdown(recording.collective_slowdown);
  wire.mutable_computing_ns()->Add(recording.computing_ns.begin(), recording.computing_ns.end());
  wire.set_job_workers(recording.job_workers);
  for (const LaunchedCollective& collective : recording.collectives) {
    v1::LaunchedCollective& to = *wire.add_collectives();
    to.set_kind(WireOf(kCollectives, collective.kind));
    to.set_size_bytes(collective.size_bytes);
  }
  for (const WorkerRecording& worker : recording.workers) {
    v1::WorkerRecording& to = *wire.add_workers();
    to.set_name(worker.name);
    for (const RecordedStep& step : worker.steps) *to.add_steps() = StepToWire(step);
    to.mutable_step_begins_ns()->Add(worker.step_begins_ns.begin(), worker.step_begins_ns.end());
    to.mutable_step_ends_ns()->Add(worker.step_ends_ns.begin(), worker.step_ends_ns.end());
    for (const CollectiveRun& run : worker.runs) {
      to.add_run_starts_ns(run.start_ns);
      to.add_run_ends_ns(run.end_ns);
    }
    to.mutable_server_shifts_ns()->Add(worker.server_shifts_ns.begin(),
                                       worker.server_shifts_ns.end());
  }
  return wire;
}

}  // namespace

google::protobuf::Timestamp TimestampOf(int64_t since_epoch_ns) {
  constexpr int64_t kNsPerTimestampSecond = 1'000'000'000;
  google::protobuf::Timestamp wire;
  wire.set_seconds(since_epoch_ns / kNsPerTimestampSecond);
  wire.set_nanos(static_cast<int32_t>(since_epoch_ns % kNsPerTimestampSecond));
  return wire;
}

Buckets FromWire(const v1::Buckets& wire) {
  Buckets buckets{.cap_bytes = wire.cap_bytes()};
  if (wire.has_first_bytes()) buckets.first_bytes = wire.first_bytes();
  return buckets;
}

v1::Buckets ToWire(const Buckets& buckets) {
  v1::Buckets wire;
  wire.set_first_bytes(buckets.first_bytes);
  wire.set_cap_bytes(buckets.cap_bytes);
  return wire;
}

ParsingOverhead FromWire(const v1::ParsingOverhead& wire) {
  return {.seconds_per_byte = wire.seconds_per_byte(), .seconds = wire.seconds()};
}

v1::ParsingOverhead ToWire(const ParsingOverhead& overhead) {
  v1::ParsingOverhead wire;
  wire.set_seconds_per_byte(overhead.seconds_per_byte);
  wire.set_seconds(overhead.seconds);
  return wire;
}

Platform FromWire(const v1::Platform& wire) {
  return {.bandwidth_bytes_per_second = wire.bandwidth_bytes_per_second(),
          .parsing_overhead = FromWire(wire.parsing_overhead()),
          .window_bytes = wire.window_bytes()};
}

ProfileInput FromWire(const v1::Profile& wire) {
  ProfileInput input;
  FaultList faults;
  ProfileDraft& draft = input.draft;
  draft.display_name = wire.display_name();
  draft.model = wire.model();
  draft.framework = wire.framework();
  draft.labels = {wire.labels().begin(), wire.labels().end()};
  draft.batch_size = wire.batch_size();
  draft.platform = FromWire(wire.platform());
  draft.parameter_servers = wire.parameter_servers() == 0 ? 1 : wire.parameter_servers();
  draft.operations.reserve(static_cast<size_t>(wire.operations_size()));
  for (const v1::Operation& operation : wire.operations())
    draft.operations.push_back(OperationFromWire(operation, draft.operations.size(), faults));
  draft.steps.reserve(static_cast<size_t>(wire.steps_size()));
  for (const v1::Step& step : wire.steps()) draft.steps.push_back(StepFromWire(step));
  if (wire.has_buckets()) {
    RecordedBuckets& buckets = draft.buckets.emplace();
    if (wire.buckets().has_sent_share()) buckets.sent_share = wire.buckets().sent_share();
    buckets.sizes_bytes = {wire.buckets().sizes_bytes().begin(),
                           wire.buckets().sizes_bytes().end()};
    if (wire.buckets().has_rule()) buckets.rule = FromWire(wire.buckets().rule());
  }
  if (wire.has_device_idle_fraction()) draft.device_idle_fraction = wire.device_idle_fraction();
  if (wire.has_recording()) draft.recording = RecordingFromWire(wire.recording(), faults);
  if (wire.devices_per_worker() != 0) draft.devices_per_worker = wire.devices_per_worker();
  input.faults = std::move(faults).Take();
  return input;
}

v1::Profile ToWire(const ProfileDraft& draft) {
  v1::Profile wire;
  wire.set_display_name(draft.display_name);
  wire.set_model(draft.model);
  wire.set_framework(draft.framework);
  wire.mutable_labels()->insert(draft.labels.begin(), draft.labels.end());
  wire.set_batch_size(draft.batch_size);
  v1::Platform& platform = *wire.mutable_platform();
  platform.set_bandwidth_bytes_per_second(draft.platform.bandwidth_bytes_per_second);
  *platform.mutable_parsing_overhead() = ToWire(draft.platform.parsing_overhead);
  platform.set_window_bytes(draft.platform.window_bytes);
  wire.set_parameter_servers(draft.parameter_servers);
  wire.mutable_operations()->Reserve(static_cast<int>(draft.operations.size()));
  for (const Operation& operation : draft.operations)
    *wire.add_operations() = OperationToWire(operation);
  wire.mutable_steps()->Reserve(static_cast<int>(draft.steps.size()));
  for (const RecordedStep& recorded : draft.steps) *wire.add_steps() = StepToWire(recorded);
  if (draft.buckets.has_value()) {
    v1::RecordedBuckets& buckets = *wire.mutable_buckets();
    if (draft.buckets->sent_share != 1) buckets.set_sent_share(draft.buckets->sent_share);
    buckets.mutable_sizes_bytes()->Add(draft.buckets->sizes_bytes.begin(),
                                       draft.buckets->sizes_bytes.end());
    if (draft.buckets->rule.has_value()) *buckets.mutable_rule() = ToWire(*draft.buckets->rule);
  }
  if (draft.device_idle_fraction) wire.set_device_idle_fraction(*draft.device_idle_fraction);
  if (draft.recording) *wire.mutable_recording() = RecordingToWire(*draft.recording);
  // Unset where it is the default: so profiles from before there was any have the same bytes.
  if (draft.devices_per_worker != 1) wire.set_devices_per_worker(draft.devices_per_worker);
  return wire;
}

v1::Profile ToWire(const ProfileSummary& summary) {
  return ToWire(ProfileAnswer{.summary = summary, .content = std::nullopt});
}

v1::Profile ToWire(const ProfileAnswer& answer) {
  const ProfileSummary& summary = answer.summary;
  v1::Profile wire = answer.content ? ToWire(*answer.content) : v1::Profile();
  wire.set_name(absl::StrCat("profiles/", summary.id));
  wire.set_display_name(summary.display_name);
  wire.set_model(summary.model);
  wire.set_framework(summary.framework);
  wire.mutable_labels()->clear();
  wire.mutable_labels()->insert(summary.labels.begin(), summary.labels.end());
  wire.set_batch_size(summary.batch_size);
  wire.set_parameter_servers(summary.parameter_servers);
  wire.set_digest(summary.digest);
  wire.set_etag(summary.etag);
  if (summary.create_time_ns != 0) {
    *wire.mutable_create_time() = TimestampOf(summary.create_time_ns);
    *wire.mutable_update_time() = TimestampOf(summary.update_time_ns);
  }
  wire.set_size_bytes(summary.size_bytes);
  wire.set_operation_count(summary.operation_count);
  wire.set_step_count(summary.step_count);
  wire.set_owner(summary.owner);
  return wire;
}

namespace {

// Placement by any message that stores a profile under an id, whose three fields are the same.
template <typename Message>
ProfilePlacement PlacementOf(const Message& wire) {
  return {.profile_id = wire.profile_id(),
          .request_id = RequestIdFromWire(wire.request_id()),
          .validate_only = wire.validate_only()};
}

// Placement by those headers that may also replace one.
template <typename Header>
ProfilePlacement ReplacingPlacementOf(const Header& wire) {
  ProfilePlacement placement = PlacementOf(wire);
  placement.allow_replace = wire.allow_replace();
  placement.etag = wire.etag();
  return placement;
}

// True of the fields that the server sets (their comments begin with "Output only").
bool IsOutputOnly(std::string_view field) {
  constexpr std::string_view kFields[] = {"name",        "digest",     "etag",
                                          "create_time", "size_bytes", "operation_count",
                                          "step_count",  "owner",      "update_time"};
  return std::find(std::begin(kFields), std::end(kFields), field) != std::end(kFields);
}

// True of the fields that are people's, and say nothing of the recording.
bool IsAbout(std::string_view field) { return field == "display_name" || field == "labels"; }

// The fields that an update takes whose mask does not say: those that are set, of which all that
// describe the recording are one.
std::vector<std::string> FieldsThatAreSet(const v1::Profile& profile) {
  const google::protobuf::Descriptor& type = *v1::Profile::descriptor();
  std::vector<const google::protobuf::FieldDescriptor*> set;
  profile.GetReflection()->ListFields(profile, &set);
  const bool has_recording = std::any_of(set.begin(), set.end(), [](const auto* field) {
    return !IsOutputOnly(field->name()) && !IsAbout(field->name());
  });
  std::vector<std::string> fields;
  for (int i = 0; i < type.field_count(); ++i) {
    const google::protobuf::FieldDescriptor* field = type.field(i);
    if (IsOutputOnly(field->name())) continue;
    const bool is_set = std::find(set.begin(), set.end(), field) != set.end();
    if (IsAbout(field->name()) ? is_set : has_recording) fields.push_back(field->name());
  }
  return fields;
}

// The fields of a mask; empty: all.
std::vector<std::string> FieldsOf(const google::protobuf::FieldMask& mask, FaultList& faults) {
  std::vector<std::string> fields;
  for (int i = 0; i < mask.paths_size(); ++i) {
    const std::string& path = mask.paths(i);
    if (path == "*" && mask.paths_size() == 1) return {};
    if (IsOutputOnly(path)) continue;
    if (v1::Profile::descriptor()->FindFieldByName(path) != nullptr) {
      fields.push_back(path);
    } else {
      faults.Add(absl::StrCat("update_mask.paths[", i, "]"),
                 absl::StrCat(Quoted(path),
                              " is not a field of the profile's first level, nor * "
                              "alone"));
    }
  }
  if (fields.empty() && faults.empty())
    faults.Add("update_mask", "names only fields that the server sets");
  return fields;
}

// Variation by the options of a format that has one step or none, whose four fields are the same.
template <typename Message>
StepVariationDraft VariationOf(const Message& wire) {
  StepVariationDraft variation;
  if (wire.has_step_time_variation()) variation.own = wire.step_time_variation();
  if (wire.has_common_time_variation()) variation.common = wire.common_time_variation();
  if (wire.has_steps()) variation.steps = wire.steps();
  if (wire.has_seed()) variation.seed = wire.seed();
  return variation;
}

LayerProfileOptions LayerOptionsOf(const v1::LayerProfileOptions& wire) {
  LayerProfileOptions options;
  options.model = wire.model();
  options.batch_size = wire.batch_size();
  options.platform = FromWire(wire.platform());
  options.variation = VariationOf(wire);
  options.tensor_parallel = wire.tensor_parallel();
  return options;
}

// Options of a recording, whose first fields are the same.
template <typename Message>
RecordingOptions RecordingOptionsOf(const Message& wire) {
  return {.model = wire.model(),
          .batch_size = wire.batch_size(),
          .platform = FromWire(wire.platform())};
}

ZooImport ZooImportOf(const v1::ModelZooOptions& wire, FaultList& faults) {
  ZooImport import{.model = wire.model()};
  ZooOptions& options = import.options;
  if (wire.has_batch_size()) options.batch_size = wire.batch_size();
  options.platform = FromWire(wire.platform());
  if (wire.has_device_flops_per_second())
    options.device_flops_per_second = wire.device_flops_per_second();
  options.variation = VariationOf(wire);
  options.communication =
      CoreOf(kZooCommunications, wire.communication(), "header.model_zoo.communication", faults)
          .value_or(ZooCommunication::kParameterServers);
  return import;
}

}  // namespace

CreateProfileCall FromWire(const v1::CreateProfileRequest& wire) {
  CreateProfileCall call{.placement = PlacementOf(wire)};
  if (wire.has_profile()) call.profile = FromWire(wire.profile());
  return call;
}

UpdateProfileCall FromWire(const v1::UpdateProfileRequest& wire) {
  UpdateProfileCall call{.name = wire.profile().name(),
                         .etag = wire.profile().etag(),
                         .allow_missing = wire.allow_missing(),
                         .placement = {.request_id = RequestIdFromWire(wire.request_id()),
                                       .validate_only = wire.validate_only()}};
  if (!wire.has_profile()) return call;
  call.profile = FromWire(wire.profile());
  FaultList faults;
  const bool is_told = wire.update_mask().paths_size() > 0;
  call.fields = is_told ? FieldsOf(wire.update_mask(), faults) : FieldsThatAreSet(wire.profile());
  if (!is_told && call.fields.empty())
    faults.Add("profile", "has nothing but what the server sets: what is to be updated?");
  call.faults = std::move(faults).Take();
  return call;
}

UploadProfileCall FromWire(const v1::UploadProfileRequest::Header& wire) {
  UploadProfileCall call{.placement = ReplacingPlacementOf(wire)};
  FaultList faults;
  call.encoding = CoreOf(kProfileEncodings, wire.encoding(), "header.encoding", faults)
                      .value_or(ProfileEncoding::kBinary);
  call.faults = std::move(faults).Take();
  return call;
}

ImportProfileCall FromWire(const v1::ImportProfileRequest::Header& wire) {
  ImportProfileCall call{.placement = ReplacingPlacementOf(wire),
                         .display_name = wire.display_name(),
                         .labels = {wire.labels().begin(), wire.labels().end()}};
  if (wire.has_overlap_slowdown()) call.overlap_slowdown = wire.overlap_slowdown();
  if (wire.has_collective_slowdown()) call.collective_slowdown = wire.collective_slowdown();
  if (wire.has_layer_profile()) call.format = LayerOptionsOf(wire.layer_profile());
  FaultList faults;
  if (wire.has_model_zoo()) call.format = ZooImportOf(wire.model_zoo(), faults);
  call.faults = std::move(faults).Take();
  if (wire.has_run_metadata()) call.format = RecordingOptionsOf(wire.run_metadata());
  if (wire.has_timeline()) {
    const auto& sizes = wire.timeline().variable_bytes();
    call.format = TimelineOptions{.recording = RecordingOptionsOf(wire.timeline()),
                                  .variable_bytes = {sizes.begin(), sizes.end()},
                                  .variation = VariationOf(wire.timeline())};
  }
  if (wire.has_chakra()) {
    call.format = ChakraTraceOptions{.recording = RecordingOptionsOf(wire.chakra()),
                                     .variation = VariationOf(wire.chakra())};
  }
  if (wire.has_horovod())
    call.format = HorovodTimelineOptions{.recording = RecordingOptionsOf(wire.horovod())};
  if (wire.has_pytorch()) {
    PyTorchTraceOptions options{.recording = RecordingOptionsOf(wire.pytorch())};
    if (wire.pytorch().has_step_seconds()) options.step_seconds = wire.pytorch().step_seconds();
    options.data_parallel_group = wire.pytorch().data_parallel_group();
    call.format = std::move(options);
  }
  return call;
}

GetProfileCall FromWire(const v1::GetProfileRequest& wire) {
  GetProfileCall call{.name = wire.name()};
  FaultList faults;
  call.view = CoreOf(kProfileViews, wire.view(), "view", faults).value_or(ProfileView::kFull);
  call.faults = std::move(faults).Take();
  return call;
}

ListProfilesCall FromWire(const v1::ListProfilesRequest& wire) {
  ListProfilesCall call{
      .page_size = wire.page_size(), .page_token = wire.page_token(), .filter = wire.filter()};
  FaultList faults;
  call.view = CoreOf(kProfileViews, wire.view(), "view", faults).value_or(ProfileView::kBasic);
  call.faults = std::move(faults).Take();
  return call;
}

DeleteProfileCall FromWire(const v1::DeleteProfileRequest& wire) {
  return {.name = wire.name(), .etag = wire.etag()};
}

namespace {

// To a worker's or a server's report, which have the same fields of it.
template <typename Report>
void ClockToWire(const NodeClock& clock, Report& to) {
  to.set_clock_offset_ns(clock.offset_ns);
  if (clock.least_offset_ns != -kUnboundedOffset)
    to.set_least_clock_offset_ns(clock.least_offset_ns);
  if (clock.most_offset_ns != kUnboundedOffset) to.set_most_clock_offset_ns(clock.most_offset_ns);
  if (clock.drift_is_known) to.set_clock_drift(clock.drift);
  if (!clock.drift_is_bounded) return;
  to.set_least_clock_drift(clock.least_drift);
  to.set_most_clock_drift(clock.most_drift);
}

}  // namespace

v1::RecordingReport ToWire(const JobRecordingReport& report) {
  v1::RecordingReport wire;
  for (const WorkerReport& worker : report.workers) {
    v1::RecordedWorkerReport& to = *wire.add_workers();
    to.set_name(worker.name);
    ClockToWire(worker.clock, to);
    to.set_recorded_step_seconds(worker.recorded_step_seconds);
    to.set_replayed_step_seconds(worker.replayed_step_seconds);
  }
  for (const ServerReport& server : report.servers) {
    v1::RecordedServerReport& to = *wire.add_servers();
    to.set_name(server.name);
    ClockToWire(server.clock, to);
  }
  wire.set_job_workers(report.job_workers);
  if (report.beyond_shortest_seconds)
    wire.set_beyond_shortest_seconds(*report.beyond_shortest_seconds);
  wire.set_steps(report.steps);
  wire.set_collectives(report.collectives);
  wire.set_recorded_step_seconds(report.recorded_step_seconds);
  wire.set_replayed_step_seconds(report.replayed_step_seconds);
  if (report.unaligned_step_seconds)
    wire.set_unaligned_step_seconds(*report.unaligned_step_seconds);
  wire.set_waiting_seconds(report.waiting_seconds);
  wire.set_between_steps_seconds(report.between_steps_seconds);
  wire.set_unexplained_seconds(report.unexplained_seconds);
  return wire;
}

v1::ImportProfileResponse ToWire(const ImportProfileAnswer& answer) {
  v1::ImportProfileResponse wire;
  *wire.mutable_profile() = ToWire(answer.profile);
  for (const std::string& note : answer.notes) wire.add_notes(note);
  if (answer.recording) *wire.mutable_recording() = ToWire(*answer.recording);
  return wire;
}

v1::ListProfilesResponse ToWire(const ListProfilesAnswer& answer) {
  v1::ListProfilesResponse wire;
  for (const ProfileSummary& summary : answer.profiles) *wire.add_profiles() = ToWire(summary);
  wire.set_next_page_token(answer.next_page_token);
  return wire;
}

}  // namespace stepcast::server
