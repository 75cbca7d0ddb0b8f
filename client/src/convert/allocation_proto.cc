#include "client/src/convert/allocation_proto.h"

#include <google/protobuf/util/json_util.h>

#include <string>

#include "absl/strings/str_cat.h"
#include "client/src/convert/duration_proto.h"
#include "client/src/convert/prediction_proto.h"
#include "client/src/convert/repeated.h"
#include "client/src/convert/scenario_proto.h"
#include "client/src/convert/status_proto.h"
#include "client/src/local_error.h"

namespace stepcast::client {

static_assert(static_cast<int>(AllocationObjective::kTotalUtility) ==
              v1::AllocateWorkersRequest::TOTAL_UTILITY);
static_assert(static_cast<int>(AllocationObjective::kMaxMinFair) ==
              v1::AllocateWorkersRequest::MAX_MIN_FAIR);
static_assert(static_cast<int>(AllocationObjective::kMinMakespan) ==
              v1::AllocateWorkersRequest::MIN_MAKESPAN);

namespace {

void ToProto(const ClusterCapacity& from, v1::ClusterCapacity& to) {
  to.set_workers(from.workers);
  if (from.parameter_servers) to.set_parameter_servers(*from.parameter_servers);
}

void FromProto(const v1::ClusterCapacity& from, ClusterCapacity& to) {
  to.workers = from.workers();
  if (from.has_parameter_servers()) to.parameter_servers = from.parameter_servers();
}

void ToProto(const OneMoreWorker& from, v1::OneMoreWorker& to) {
  to.set_utility_gain(from.utility_gain);
  to.set_objective_gain(from.objective_gain);
  ToProto(from.changes, *to.mutable_changes());
}

void FromProto(const v1::OneMoreWorker& from, OneMoreWorker& to) {
  to.utility_gain = from.utility_gain();
  to.objective_gain = from.objective_gain();
  FromProto(from.changes(), to.changes);
}

}  // namespace

void ToProto(const AllocationJob& from, v1::AllocationJob& to) {
  to.set_id(from.id);
  ToProto(from.source, to);
  ToProto(from.scenario, *to.mutable_scenario());
  if (from.weight) to.set_weight(*from.weight);
  if (from.min_workers) to.set_min_workers(*from.min_workers);
  if (from.max_workers) to.set_max_workers(*from.max_workers);
  if (from.gang) to.set_gang(*from.gang);
  if (from.max_parameter_servers) to.set_max_parameter_servers(*from.max_parameter_servers);
  if (from.remaining_examples) to.set_remaining_examples(*from.remaining_examples);
  if (!from.current) return;
  to.mutable_current()->set_workers(from.current->workers);
  to.mutable_current()->set_rescale_seconds(from.current->rescale_seconds);
  if (from.current->parameter_servers)
    to.mutable_current()->set_parameter_servers(*from.current->parameter_servers);
}

void FromProto(const v1::AllocationJob& from, AllocationJob& to) {
  to.id = from.id();
  to.source = from.profile();
  if (from.has_inline_profile()) FromProto(from.inline_profile(), to.source.emplace<Profile>());
  FromProto(from.scenario(), to.scenario);
  if (from.has_weight()) to.weight = from.weight();
  if (from.has_min_workers()) to.min_workers = from.min_workers();
  if (from.has_max_workers()) to.max_workers = from.max_workers();
  if (from.has_gang()) to.gang = from.gang();
  if (from.has_max_parameter_servers()) to.max_parameter_servers = from.max_parameter_servers();
  if (from.has_remaining_examples()) to.remaining_examples = from.remaining_examples();
  if (!from.has_current()) return;
  to.current = {.workers = from.current().workers(),
                .rescale_seconds = from.current().rescale_seconds()};
  if (from.current().has_parameter_servers())
    to.current->parameter_servers = from.current().parameter_servers();
}

void ToProto(const AllocateWorkersRequest& from, v1::AllocateWorkersRequest& to) {
  ToProto(from.jobs, *to.mutable_jobs());
  if (from.capacity) ToProto(*from.capacity, *to.mutable_capacity());
  to.set_objective(static_cast<v1::AllocateWorkersRequest::Objective>(from.objective));
  ToProto(from.options, *to.mutable_options());
}

void FromProto(const v1::AllocateWorkersRequest& from, AllocateWorkersRequest& to) {
  FromProto(from.jobs(), to.jobs);
  if (from.has_capacity()) FromProto(from.capacity(), to.capacity.emplace());
  to.objective = static_cast<AllocationObjective>(from.objective());
  FromProto(from.options(), to.options);
}

absl::StatusOr<AllocateWorkersRequest> ParseAllocateWorkersRequest(std::string_view json) {
  v1::AllocateWorkersRequest message;
  const auto status = google::protobuf::util::JsonStringToMessage(std::string(json), &message);
  if (!status.ok()) {
    const std::string why(status.message().data(), status.message().size());
    return MakeLocalError(absl::StatusCode::kInvalidArgument, "REQUEST_UNREADABLE",
                          absl::StrCat("not an AllocateWorkersRequest in JSON: ", why), {});
  }
  AllocateWorkersRequest request;
  FromProto(message, request);
  return request;
}

void ToProto(const CurvePoint& from, v1::CurvePoint& to) {
  to.set_workers(from.workers);
  to.set_parameter_servers(from.parameter_servers);
  to.set_examples_per_second(from.examples_per_second);
  ToProto(from.confidence_interval, *to.mutable_confidence_interval());
}

void FromProto(const v1::CurvePoint& from, CurvePoint& to) {
  to.workers = from.workers();
  to.parameter_servers = from.parameter_servers();
  to.examples_per_second = from.examples_per_second();
  FromProto(from.confidence_interval(), to.confidence_interval);
}

void ToProto(const JobAllocation& from, v1::JobAllocation& to) {
  to.set_id(from.id);
  if (!from.status.ok()) ToProto(from.status, *to.mutable_error());
  to.set_workers(from.workers);
  to.set_parameter_servers(from.parameter_servers);
  to.set_utility(from.utility);
  to.set_speedup(from.speedup);
  to.set_examples_per_second(from.examples_per_second);
  to.set_interpolated(from.interpolated);
  if (from.duration) ToProto(*from.duration, *to.mutable_duration());
  ToProto(from.curve, *to.mutable_curve());
  to.set_profile_digest(from.profile_digest);
  for (const std::string& warning : from.warnings) to.add_warnings(warning);
}

void FromProto(const v1::JobAllocation& from, JobAllocation& to) {
  to.id = from.id();
  if (from.has_error()) FromProto(from.error(), to.status);
  to.workers = from.workers();
  to.parameter_servers = from.parameter_servers();
  to.utility = from.utility();
  to.speedup = from.speedup();
  to.examples_per_second = from.examples_per_second();
  to.interpolated = from.interpolated();
  if (from.has_duration()) FromProto(from.duration(), to.duration.emplace());
  FromProto(from.curve(), to.curve);
  to.profile_digest = from.profile_digest();
  to.warnings.assign(from.warnings().begin(), from.warnings().end());
}

void ToProto(const AllocationChange& from, v1::AllocationChange& to) {
  to.set_id(from.id);
  to.set_workers(from.workers);
  to.set_parameter_servers(from.parameter_servers);
}

void FromProto(const v1::AllocationChange& from, AllocationChange& to) {
  to.id = from.id();
  to.workers = from.workers();
  to.parameter_servers = from.parameter_servers();
}

void ToProto(const AllocateWorkersResponse& from, v1::AllocateWorkersResponse& to) {
  ToProto(from.allocations, *to.mutable_allocations());
  to.set_total_utility(from.total_utility);
  to.set_objective_value(from.objective_value);
  to.set_workers(from.workers);
  to.set_parameter_servers(from.parameter_servers);
  ToProto(from.one_more_worker, *to.mutable_one_more_worker());
  to.set_infeasible_reason(from.infeasible_reason);
  ToProto(from.simulation, *to.mutable_simulation());
  ToProto(from.options, *to.mutable_options());
  to.set_engine_version(from.engine_version);
}

void FromProto(const v1::AllocateWorkersResponse& from, AllocateWorkersResponse& to) {
  FromProto(from.allocations(), to.allocations);
  to.total_utility = from.total_utility();
  to.objective_value = from.objective_value();
  to.workers = from.workers();
  to.parameter_servers = from.parameter_servers();
  FromProto(from.one_more_worker(), to.one_more_worker);
  to.infeasible_reason = from.infeasible_reason();
  FromProto(from.simulation(), to.simulation);
  FromProto(from.options(), to.options);
  to.engine_version = from.engine_version();
}

}  // namespace stepcast::client
