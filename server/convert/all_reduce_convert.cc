#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"

#include "server/convert/enum_table.h"
#include "server/convert/profile_convert.h"
#include "server/convert/scenario_convert.h"

namespace stepcast::server {

namespace {

GradientGroups GroupsFromWire(const v1::AllReduce::Groups& wire) {
  GradientGroups groups;
  groups.groups.reserve(static_cast<size_t>(wire.groups_size()));
  for (const v1::AllReduce::Groups::Group& from : wire.groups()) {
    GradientGroup& group = groups.groups.emplace_back();
    group.operations = {from.operations().begin(), from.operations().end()};
    if (from.has_threads()) group.threads = from.threads();
  }
  return groups;
}

void GroupsToWire(const GradientGroups& groups, v1::AllReduce::Groups& wire) {
  for (const GradientGroup& from : groups.groups) {
    v1::AllReduce::Groups::Group& group = *wire.add_groups();
    group.mutable_operations()->Add(from.operations.begin(), from.operations.end());
    if (from.threads.has_value()) group.set_threads(*from.threads);
  }
}

FusionDraft FusionFromWire(const v1::AllReduce& wire) {
  switch (wire.fusion_case()) {
    case v1::AllReduce::kBuckets:
      return FromWire(wire.buckets());
    case v1::AllReduce::kHorovod: {
      HorovodDraft horovod;
      if (wire.horovod().has_fusion_bytes()) horovod.fusion_bytes = wire.horovod().fusion_bytes();
      if (wire.horovod().has_cycle_seconds())
        horovod.cycle_seconds = wire.horovod().cycle_seconds();
      return horovod;
    }
    case v1::AllReduce::kGroups:
      return GroupsFromWire(wire.groups());
    case v1::AllReduce::kByteScheduler: {
      ByteSchedulerDraft scheduler;
      if (wire.byte_scheduler().has_credit_bytes())
        scheduler.credit_bytes = wire.byte_scheduler().credit_bytes();
      return scheduler;
    }
    case v1::AllReduce::kUnfused:
      return Unfused{};
    case v1::AllReduce::FUSION_NOT_SET:
      break;
  }
  return {};
}

TransferRate RateFromWire(const v1::AllReduce::Contention::TransferRate& wire) {
  return {.gamma1 = wire.gamma1(), .gamma2 = wire.gamma2(), .gamma3 = wire.gamma3()};
}

void RateToWire(const TransferRate& rate, v1::AllReduce::Contention::TransferRate& wire) {
  wire.set_gamma1(rate.gamma1);
  wire.set_gamma2(rate.gamma2);
  wire.set_gamma3(rate.gamma3);
}

}  // namespace

Contention FromWire(const v1::AllReduce::Contention& wire) {
  Contention contention{.alpha2 = wire.alpha2(),
                        .overlapped = RateFromWire(wire.overlapped()),
                        .alone = RateFromWire(wire.alone())};
  if (wire.has_alpha1()) contention.alpha1 = wire.alpha1();
  if (wire.has_gamma4()) contention.gamma4 = wire.gamma4();
  return contention;
}

v1::AllReduce::Contention ToWire(const Contention& contention) {
  v1::AllReduce::Contention wire;
  wire.set_alpha1(contention.alpha1);
  wire.set_alpha2(contention.alpha2);
  RateToWire(contention.overlapped, *wire.mutable_overlapped());
  RateToWire(contention.alone, *wire.mutable_alone());
  wire.set_gamma4(contention.gamma4);
  return wire;
}

MeasuredCollective FromWire(const v1::AllReduce::MeasuredCollective& wire, const std::string& path,
                            FaultList& faults) {
  return {.kind = CoreOf(kCollectives, wire.kind(), path + ".kind", faults)
                      .value_or(Collective::kUnspecified),
          .workers = wire.workers(),
          .size_bytes = wire.size_bytes(),
          .seconds = wire.seconds()};
}

v1::AllReduce::MeasuredCollective ToWire(const MeasuredCollective& point) {
  v1::AllReduce::MeasuredCollective wire;
  wire.set_kind(WireOf(kCollectives, point.kind));
  wire.set_workers(point.workers);
  wire.set_size_bytes(point.size_bytes);
  wire.set_seconds(point.seconds);
  return wire;
}

AllReduceDraft FromWire(const v1::AllReduce& wire, const std::string& path, FaultList& faults) {
  const auto at = [&](const char* field) { return absl::StrCat(path, ".", field); };
  AllReduceDraft draft;
  draft.algorithm = CoreOf(kCollectiveAlgorithms, wire.algorithm(), at("algorithm"), faults);
  if (wire.has_latency_seconds()) draft.latency_seconds = wire.latency_seconds();
  if (wire.has_workers_per_node()) draft.workers_per_node = wire.workers_per_node();
  if (wire.has_intra_node_bandwidth_bytes_per_second())
    draft.intra_node_bandwidth_bytes_per_second = wire.intra_node_bandwidth_bytes_per_second();
  if (wire.has_intra_node_latency_seconds())
    draft.intra_node_latency_seconds = wire.intra_node_latency_seconds();
  if (wire.has_reduction_seconds_per_byte())
    draft.reduction_seconds_per_byte = wire.reduction_seconds_per_byte();
  if (wire.has_launch_seconds()) draft.launch_seconds = wire.launch_seconds();
  draft.fusion = FusionFromWire(wire);
  for (int i = 0; i < wire.measured_size(); ++i) {
    draft.measured.push_back(
        FromWire(wire.measured(i), absl::StrCat(at("measured"), "[", i, "]"), faults));
  }
  if (wire.has_concurrent_collectives())
    draft.concurrent_collectives = wire.concurrent_collectives();
  if (wire.has_partition_bytes()) draft.partition_bytes = wire.partition_bytes();
  draft.sharding = CoreOf(kShardings, wire.sharding(), at("sharding"), faults);
  if (wire.has_overlap_slowdown()) draft.overlap_slowdown = wire.overlap_slowdown();
  if (wire.has_collective_slowdown()) draft.collective_slowdown = wire.collective_slowdown();
  if (wire.has_nccl()) {
    const v1::AllReduce::Nccl& from = wire.nccl();
    Nccl& nccl = draft.nccl.emplace();
    nccl.architecture =
        CoreOf(kNcclArchitectures, from.architecture(), at("nccl.architecture"), faults)
            .value_or(nccl.architecture);
    nccl.intra_node_path =
        CoreOf(kNcclPaths, from.intra_node_path(), at("nccl.intra_node_path"), faults)
            .value_or(nccl.intra_node_path);
    if (from.has_channels()) nccl.channels = from.channels();
    if (from.has_channel_bandwidth_bytes_per_second())
      nccl.channel_bandwidth_bytes_per_second = from.channel_bandwidth_bytes_per_second();
    nccl.amd = from.amd();
  }
  draft.fidelity = CoreOf(kFidelities, wire.fidelity(), at("fidelity"), faults);
  if (wire.has_workers_per_rack()) draft.workers_per_rack = wire.workers_per_rack();
  if (wire.has_rack_bandwidth_bytes_per_second())
    draft.rack_bandwidth_bytes_per_second = wire.rack_bandwidth_bytes_per_second();
  if (wire.has_contention()) draft.contention = FromWire(wire.contention());
  if (wire.has_threads()) draft.threads = wire.threads();
  return draft;
}

v1::AllReduce ToWire(const AllReduce& job) {
  v1::AllReduce wire;
  wire.set_algorithm(WireOf(kCollectiveAlgorithms, job.algorithm));
  wire.set_latency_seconds(job.latency_seconds);
  wire.set_workers_per_node(job.workers_per_node);
  wire.set_intra_node_bandwidth_bytes_per_second(job.intra_node_bandwidth_bytes_per_second);
  wire.set_intra_node_latency_seconds(job.intra_node_latency_seconds);
  wire.set_reduction_seconds_per_byte(job.reduction_seconds_per_byte);
  wire.set_launch_seconds(job.launch_seconds);
  if (const auto* buckets = std::get_if<Buckets>(&job.fusion)) {
    *wire.mutable_buckets() = ToWire(*buckets);
  } else if (const auto* horovod = std::get_if<Horovod>(&job.fusion)) {
    wire.mutable_horovod()->set_fusion_bytes(horovod->fusion_bytes);
    wire.mutable_horovod()->set_cycle_seconds(horovod->cycle_seconds);
  } else if (const auto* scheduler = std::get_if<ByteScheduler>(&job.fusion)) {
    wire.mutable_byte_scheduler()->set_credit_bytes(scheduler->credit_bytes);
  } else if (const auto* groups = std::get_if<GradientGroups>(&job.fusion)) {
    GroupsToWire(*groups, *wire.mutable_groups());
  } else if (std::holds_alternative<std::monostate>(job.fusion)) {
    wire.mutable_unfused();
  }
  for (const MeasuredCollective& point : job.measured) *wire.add_measured() = ToWire(point);
  wire.set_concurrent_collectives(job.concurrent_collectives);
  if (job.partition_bytes > 0) wire.set_partition_bytes(job.partition_bytes);
  if (job.sharding != Sharding::kNone) wire.set_sharding(WireOf(kShardings, job.sharding));
  wire.set_overlap_slowdown(job.overlap_slowdown);
  wire.set_collective_slowdown(job.collective_slowdown);
  if (job.algorithm == CollectiveAlgorithm::kNccl) {
    v1::AllReduce::Nccl& nccl = *wire.mutable_nccl();
    nccl.set_architecture(WireOf(kNcclArchitectures, job.nccl.architecture));
    nccl.set_intra_node_path(WireOf(kNcclPaths, job.nccl.intra_node_path));
    nccl.set_channels(job.nccl.channels);
    if (job.nccl.channel_bandwidth_bytes_per_second > 0) {
      nccl.set_channel_bandwidth_bytes_per_second(job.nccl.channel_bandwidth_bytes_per_second);
    }
    nccl.set_amd(job.nccl.amd);
  }
  wire.set_fidelity(WireOf(kFidelities, job.fidelity));
  if (job.workers_per_rack > 0) {
    wire.set_workers_per_rack(job.workers_per_rack);
    wire.set_rack_bandwidth_bytes_per_second(job.rack_bandwidth_bytes_per_second);
  }
  if (job.contention.has_value()) *wire.mutable_contention() = ToWire(*job.contention);
  if (job.threads > 0) wire.set_threads(job.threads);
  return wire;
}

}  // namespace stepcast::server
