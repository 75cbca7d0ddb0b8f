#include "server/convert/allocation_convert.h"

#include <utility>

#include "server/convert/enum_table.h"
#include "server/convert/prediction_convert.h"
#include "server/convert/profile_source.h"
#include "server/convert/scenario_convert.h"
#include "server/convert/wire_error.h"

namespace stepcast::server {

namespace {

AllocationJobCall JobOf(const v1::AllocationJob& wire) {
  AllocationJobCall call{.source = SourceOf(wire)};
  FaultList faults;
  AllocationJobDraft& draft = call.draft;
  draft.scenario = FromWire(wire.scenario(), "scenario", faults);
  if (wire.has_weight()) draft.weight = wire.weight();
  if (wire.has_min_workers()) draft.min_workers = wire.min_workers();
  if (wire.has_max_workers()) draft.max_workers = wire.max_workers();
  if (wire.has_gang()) draft.gang = wire.gang();
  if (wire.has_max_parameter_servers()) draft.max_parameter_servers = wire.max_parameter_servers();
  if (wire.has_remaining_examples()) draft.remaining_examples = wire.remaining_examples();
  if (wire.has_current()) {
    draft.current = {.workers = wire.current().workers(),
                     .rescale_seconds = wire.current().rescale_seconds()};
    if (wire.current().has_parameter_servers())
      draft.current->servers = wire.current().parameter_servers();
  }
  call.faults = std::move(faults).Take();
  return call;
}

v1::JobAllocation WireJob(const JobAllocation& job) {
  v1::JobAllocation wire;
  if (!job.status.ok()) wire.mutable_error()->ParseFromString(ToWireError(job.status).details);
  wire.set_workers(job.share.workers);
  wire.set_parameter_servers(job.share.servers);
  wire.set_utility(job.share.utility);
  wire.set_speedup(job.share.speedup);
  wire.set_examples_per_second(job.share.examples_per_second);
  wire.set_interpolated(job.share.interpolated);
  if (job.share.duration_seconds)
    *wire.mutable_duration() = DurationOf(*job.share.duration_seconds);
  for (const CurvePoint& point : job.curve) {
    v1::CurvePoint& simulated = *wire.add_curve();
    simulated.set_workers(point.workers);
    simulated.set_parameter_servers(point.servers);
    simulated.set_examples_per_second(point.examples_per_second);
    *simulated.mutable_confidence_interval() = ToWire(point.confidence_interval);
  }
  for (const Warning& warning : job.warnings) *wire.add_warnings() = ToWire(warning);
  return wire;
}

v1::OneMoreWorker WireMore(const OneMoreWorker& more, const std::vector<std::string>& job_ids) {
  v1::OneMoreWorker wire;
  wire.set_utility_gain(more.utility_gain);
  wire.set_objective_gain(more.objective_gain);
  for (const OneMoreWorker::Change& change : more.changes) {
    v1::AllocationChange& changed = *wire.add_changes();
    changed.set_id(job_ids[change.job]);
    changed.set_workers(change.workers);
    changed.set_parameter_servers(change.servers);
  }
  return wire;
}

}  // namespace

AllocateWorkersCall FromWire(const v1::AllocateWorkersRequest& wire) {
  AllocateWorkersCall call;
  FaultList faults;
  for (const v1::AllocationJob& job : wire.jobs()) {
    call.draft.job_ids.push_back(job.id());
    call.jobs.push_back(JobOf(job));
  }
  if (wire.has_capacity()) {
    call.draft.capacity = ClusterCapacity{.workers = wire.capacity().workers()};
    if (wire.capacity().has_parameter_servers())
      call.draft.capacity->servers = wire.capacity().parameter_servers();
  }
  call.draft.objective = CoreOf(kAllocationObjectives, wire.objective(), "objective", faults)
                             .value_or(AllocationObjective::kTotalUtility);
  call.draft.options = FromWire(wire.options(), "options", faults);
  call.faults = std::move(faults).Take();
  return call;
}

v1::AllocateWorkersResponse ToWire(const AllocateWorkersAnswer& answer) {
  v1::AllocateWorkersResponse wire;
  for (size_t i = 0; i < answer.answer.jobs.size(); ++i) {
    v1::JobAllocation& job = *wire.add_allocations();
    job = WireJob(answer.answer.jobs[i]);
    job.set_id(answer.job_ids[i]);
    job.set_profile_digest(answer.profile_digests[i]);
  }
  wire.set_total_utility(answer.answer.total_utility);
  wire.set_objective_value(answer.answer.objective_value);
  wire.set_workers(answer.answer.workers);
  wire.set_parameter_servers(answer.answer.servers);
  *wire.mutable_one_more_worker() = WireMore(answer.answer.one_more_worker, answer.job_ids);
  wire.set_infeasible_reason(answer.answer.infeasible_reason);
  *wire.mutable_simulation() = ToWire(answer.answer.simulation, answer.context.engine_seconds);
  *wire.mutable_options() = ToWire(answer.context.options);
  wire.set_engine_version(kEngineVersion);
  return wire;
}

}  // namespace stepcast::server
