#include "client/src/convert/profile_proto.h"

#include "client/src/convert/duration_proto.h"
#include "client/src/convert/repeated.h"

namespace stepcast::client {

static_assert(static_cast<int>(Resource::kDownlink) == v1::Operation::DOWNLINK);
static_assert(static_cast<int>(Resource::kWorker) == v1::Operation::WORKER);
static_assert(static_cast<int>(Resource::kUplink) == v1::Operation::UPLINK);
static_assert(static_cast<int>(Resource::kParameterServer) == v1::Operation::PARAMETER_SERVER);
static_assert(static_cast<int>(Resource::kParameterServer) == v1::Operation::Resource_MAX);

void ToProto(const ParsingOverhead& from, v1::ParsingOverhead& to) {
  to.set_seconds_per_byte(from.seconds_per_byte);
  to.set_seconds(from.seconds);
}

void FromProto(const v1::ParsingOverhead& from, ParsingOverhead& to) {
  to.seconds_per_byte = from.seconds_per_byte();
  to.seconds = from.seconds();
}

void ToProto(const Platform& from, v1::Platform& to) {
  to.set_bandwidth_bytes_per_second(from.bandwidth_bytes_per_second);
  ToProto(from.parsing_overhead, *to.mutable_parsing_overhead());
  to.set_window_bytes(from.window_bytes);
}

void FromProto(const v1::Platform& from, Platform& to) {
  to.bandwidth_bytes_per_second = from.bandwidth_bytes_per_second();
  FromProto(from.parsing_overhead(), to.parsing_overhead);
  to.window_bytes = from.window_bytes();
}

void ToProto(const Operation& from, v1::Operation& to) {
  to.set_name(from.name);
  to.set_resource(static_cast<v1::Operation::Resource>(from.resource));
  to.set_parameter_server(from.parameter_server);
  to.set_size_bytes(from.size_bytes);
  ToProto(from.waiting_for, *to.mutable_waiting_for());
  to.set_parameter(from.parameter);
}

void FromProto(const v1::Operation& from, Operation& to) {
  to.name = from.name();
  to.resource = static_cast<Resource>(from.resource());
  to.parameter_server = from.parameter_server();
  to.size_bytes = from.size_bytes();
  FromProto(from.waiting_for(), to.waiting_for);
  to.parameter = from.parameter();
}

void ToProto(const Step& from, v1::Step& to) {
  ToProto(from.start_ns, *to.mutable_start_ns());
  ToProto(from.end_ns, *to.mutable_end_ns());
}

void FromProto(const v1::Step& from, Step& to) {
  FromProto(from.start_ns(), to.start_ns);
  FromProto(from.end_ns(), to.end_ns);
}

void ToProto(const Profile& from, v1::Profile& to) {
  to.set_name(from.name);
  to.set_display_name(from.display_name);
  to.set_model(from.model);
  to.set_framework(from.framework);
  ToProto(from.labels, *to.mutable_labels());
  to.set_batch_size(from.batch_size);
  ToProto(from.platform, *to.mutable_platform());
  to.set_parameter_servers(from.parameter_servers);
  ToProto(from.operations, *to.mutable_operations());
  ToProto(from.steps, *to.mutable_steps());
  to.set_digest(from.digest);
  to.set_etag(from.etag);
  if (from.create_time) ToProto(*from.create_time, *to.mutable_create_time());
  to.set_size_bytes(from.size_bytes);
  to.set_operation_count(from.operation_count);
  to.set_step_count(from.step_count);
  to.set_owner(from.owner);
}

void FromProto(const v1::Profile& from, Profile& to) {
  to.name = from.name();
  to.display_name = from.display_name();
  to.model = from.model();
  to.framework = from.framework();
  FromProto(from.labels(), to.labels);
  to.batch_size = from.batch_size();
  FromProto(from.platform(), to.platform);
  to.parameter_servers = from.parameter_servers();
  FromProto(from.operations(), to.operations);
  FromProto(from.steps(), to.steps);
  to.digest = from.digest();
  to.etag = from.etag();
  if (from.has_create_time()) FromProto(from.create_time(), to.create_time.emplace());
  to.size_bytes = from.size_bytes();
  to.operation_count = from.operation_count();
  to.step_count = from.step_count();
  to.owner = from.owner();
}

}  // namespace stepcast::client
