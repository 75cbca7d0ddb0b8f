#include "core/model/scenario.h"

#include <algorithm>
#include <optional>
#include <string>
#include <utility>
#include <variant>

#include "absl/strings/str_cat.h"

#include "core/base/bandwidth.h"
#include "core/base/error.h"
#include "core/base/index.h"
#include "core/base/message_text.h"
#include "core/model/job_change.h"
#include "core/model/multi_rank_recording.h"
#include "core/model/pipeline.h"
#include "core/model/stage_map.h"
#include "core/model/validate_profile.h"

namespace stepcast {

namespace {

// More would leave the job next to nothing.
constexpr double kMaxOtherTraffic = 0.99;

// Resolves one draft; its methods are in the order of the fields.
class ScenarioResolver {
 public:
  ScenarioResolver(const Profile& profile, const ScenarioDraft& draft, const ScenarioLimits& limits)
      : profile_(profile), draft_(draft), asked_(draft.servers()), limits_(limits) {}

  absl::StatusOr<Scenario> Run() && {
    scenario_.workers = draft_.workers.value_or(1);
    workers_known_ = scenario_.workers >= 1 && scenario_.workers <= limits_.max_workers;
    faults_.AddIf(!workers_known_, "workers", scenario_.workers, " is not from 1 to ",
                  limits_.max_workers);
    CheckCluster();
    scenario_.bandwidth_bytes_per_second = draft_.bandwidth_bytes_per_second.value_or(
        cluster_.has_value() ? cluster_->bandwidth_bytes_per_second
                             : profile_.platform().bandwidth_bytes_per_second);
    ResolveNodes();
    PlaceOnNodes();
    CheckBandwidth("bandwidth_bytes_per_second", scenario_.bandwidth_bytes_per_second, faults_);
    ResolveOtherTraffic();
    CheckLeftOf(scenario_.bandwidth_bytes_per_second);
    scenario_.bandwidth_bytes_per_second *= left_of_links_;
    // All other faults would follow from one of these.
    if (!CheckPipelineAsked() || !CheckKind())
      return FaultsError("SCENARIO_INVALID", std::move(faults_).Take());
    if (MeetsInCollectives()) {
      ResolveCollectives();
    } else {
      ResolveServers();
    }
    if (!LinkRateIsMeasured()) scenario_.assumed.Add(Assumed::kLinkRate);
    ResolveStartOffsets();
    ResolveWorkerGroups();
    scenario_.change = profile_.change();
    if (draft_.pipeline.has_value()) ResolveOfPipeline();
    if (Accumulated() != 1) {
      const std::string why = WhyNotAccumulated(profile_, draft_);
      faults_.AddIf(!why.empty(), "change.accumulate", Accumulated(), why);
    }
    if (!faults_.empty()) return FaultsError("SCENARIO_INVALID", std::move(faults_).Take());
    return std::move(scenario_);
  }

 private:
  // The steps of the recorded kind whose gradients one step adds up.
  int32_t Accumulated() const {
    const auto& change = profile_.change();
    return change == nullptr ? 1 : change->change.accumulate.value_or(1);
  }

  bool MeetsInCollectives() const { return AsksForCollectives(profile_, draft_); }

  void ResolveOtherTraffic() {
    const double taken = draft_.other_traffic_fraction.value_or(0);
    const bool is_valid = taken >= 0 && taken <= kMaxOtherTraffic;
    if (is_valid) left_of_links_ = 1 - taken;
    faults_.AddIf(!is_valid, "other_traffic_fraction", taken, " is not from 0 to ",
                  kMaxOtherTraffic);
  }

  // A fault where other traffic leaves next to nothing of a link's rate.
  void CheckLeftOf(double rate) {
    const double left = rate * left_of_links_;
    constexpr double kMin = Bandwidth::kMinBytesPerSecond;
    faults_.AddIf(rate >= kMin && left < kMin, "other_traffic_fraction",
                  draft_.other_traffic_fraction, " leaves ", left,
                  " bytes per second of a link, less than ", kMin);
  }

  // False, with a fault, where no pipeline can be had.
  bool CheckPipelineAsked() {
    if (!draft_.pipeline.has_value()) return true;
    if (!limits_.pipelines) {
      faults_.Add("pipeline",
                  "this method changes what one worker does and does not answer about pipelines; "
                  "PredictThroughput, RecommendWorkers, AllocateWorkers, CompareModels, "
                  "DiagnoseJob, GenerateTrace and RecommendLayout do");
    } else if (!MeetsInCollectives()) {
      faults_.Add("pipeline",
                  "given beside parameter_servers, and the replicas of a pipeline meet "
                  "in collectives");
    } else {
      return true;
    }
    return false;
  }

  void ResolveNodes() {
    if (!draft_.nodes_per_worker.has_value()) return;
    const int32_t nodes = *draft_.nodes_per_worker;
    const int32_t devices = profile_.devices_per_worker();
    if (draft_.pipeline.has_value()) {
      faults_.Add("nodes_per_worker",
                  "given beside a pipeline, whose own nodes_per_replica says it");
    } else if (!MeetsInCollectives()) {
      faults_.Add("nodes_per_worker",
                  "belongs to collectives, and workers meet at parameter servers: leave it out, or "
                  "ask about a job with collectives (--all-reduce; in a request, all_reduce)");
    } else if (nodes < 1 || nodes > devices) {
      faults_.Add("nodes_per_worker",
                  absl::StrCat(nodes, " is not from 1 to the ", devices,
                               devices == 1 ? " device" : " devices", " of a worker"));
    } else {
      scenario_.nodes_per_worker = nodes;
    }
  }

  // Workers of several devices on the nodes of a cluster, whose network these have in equal shares:
  // each is in a ring of its own.
  void PlaceOnNodes() {
    const bool has_replicas =
        draft_.pipeline.has_value() || (MeetsInCollectives() && profile_.devices_per_worker() > 1);
    if (!cluster_.has_value() || !has_replicas) return;
    const PipelineDraft asked =
        draft_.pipeline.value_or(PipelineDraft{.nodes_per_replica = scenario_.nodes_per_worker});
    placement_ =
        PlaceReplicas(asked, profile_.devices_per_worker(), cluster_->workers_per_node.value_or(1));
    if (!draft_.pipeline.has_value()) scenario_.nodes_per_worker = placement_->nodes_per_replica;
    if (!draft_.bandwidth_bytes_per_second.has_value())
      scenario_.bandwidth_bytes_per_second /= placement_->rings_of_node;
  }

  // The network between stages: links inside a node where one holds a replica.
  PipelineNetwork NetworkOfStages() const {
    PipelineNetwork network{.bandwidth_bytes_per_second = scenario_.bandwidth_bytes_per_second,
                            .latency_seconds = scenario_.all_reduce().latency_seconds};
    if (!placement_.has_value()) return network;
    network.nodes_per_replica = placement_->nodes_per_replica;
    if (network.nodes_per_replica > 1 && !draft_.bandwidth_bytes_per_second.has_value() &&
        placement_->rings_of_node > placement_->senders_of_node) {
      network.is_scenarios = false;
      network.bandwidth_bytes_per_second *=
          static_cast<double>(placement_->rings_of_node) / placement_->senders_of_node;
    } else if (network.nodes_per_replica == 1 && cluster_->workers_per_node.value_or(1) > 1) {
      network.is_scenarios = false;
      network.bandwidth_bytes_per_second = *cluster_->intra_node_bandwidth_bytes_per_second;
      network.latency_seconds =
          cluster_->intra_node_latency_seconds.value_or(kTypicalIntraNodeLatencySeconds);
    }
    return network;
  }

  void ResolveOfPipeline() {
    const PipelineDraft& asked = *draft_.pipeline;
    AllReduce& job = std::get<AllReduce>(scenario_.communication);
    RefuseOfPipeline(job);
    Pipeline pipeline = ResolvePipeline(profile_, asked, NetworkOfStages(), faults_);
    const auto* fusing = std::get_if<AllReduceDraft>(&draft_.communication);
    const bool is_unfused = fusing != nullptr && std::holds_alternative<Unfused>(fusing->fusion);
    const bool asks_for_buckets =
        is_unfused || (fusing != nullptr && std::holds_alternative<Buckets>(fusing->fusion));
    constexpr PipelineReduction kBuckets = PipelineReduction::kBuckets;
    faults_.AddIf(asks_for_buckets && asked.reduction.value_or(kBuckets) != kBuckets,
                  "pipeline.reduction", "is not BUCKETS, and all_reduce.",
                  is_unfused ? "unfused is" : "buckets are", " given: which of both?");
    if (asks_for_buckets) pipeline.reduction = kBuckets;
    if (pipeline.reduction == kBuckets && !is_unfused &&
        std::holds_alternative<std::monostate>(job.fusion)) {
      job.fusion = Buckets{};
      scenario_.assumed.Add(Assumed::kBuckets);
    }
    // Gradients that a device reduces as one are in no buckets: how they would be plays no part.
    if (pipeline.reduction != kBuckets) job.fusion = RecordedBuckets{};
    AssumedValues& assumed = scenario_.assumed;
    const auto hands_on = [](const Operation& each) { return each.output_bytes > 0; };
    if (std::ranges::none_of(profile_.operations(), hands_on)) assumed.Add(Assumed::kNothingToSend);
    if (std::ranges::none_of(profile_.operations(), IsAcrossWorkers))
      assumed.Add(Assumed::kNothingToReduce);
    if (!asked.reduction.has_value() && !asks_for_buckets) assumed.Add(Assumed::kPipelineReduction);
    if (!asked.schedule.has_value()) assumed.Add(Assumed::kPipelineSchedule);
    if (asked.cuts.empty()) assumed.Add(Assumed::kPipelineCuts);
    if (!asked.receives.has_value()) assumed.Add(Assumed::kPipelineReceives);
    if (!asked.bandwidth_bytes_per_second.has_value()) assumed.Add(Assumed::kPipelineLinks);
    scenario_.pipeline = std::move(pipeline);
  }

  // Faults for fields that the replicas of a pipeline cannot have yet.
  void RefuseOfPipeline(const AllReduce& job) {
    constexpr char kWhy[] = " is not of pipelines";
    const auto refuse = [&](bool asked, const char* field) {
      faults_.AddIf(asked, field, "given, and", kWhy);
    };
    refuse(std::holds_alternative<Horovod>(job.fusion), "all_reduce.horovod");
    refuse(std::holds_alternative<ByteScheduler>(job.fusion), "all_reduce.byte_scheduler");
    refuse(std::holds_alternative<GradientGroups>(job.fusion), "all_reduce.groups");
    refuse(job.contention.has_value(), "all_reduce.contention");
    refuse(job.partition_bytes > 0, "all_reduce.partition_bytes");
    refuse(job.workers_per_rack > 0, "all_reduce.workers_per_rack");
    refuse(job.overlap_slowdown != 1, "all_reduce.overlap_slowdown");
    refuse(job.collective_slowdown != 1, "all_reduce.collective_slowdown");
    refuse(job.concurrent_collectives > 1, "all_reduce.concurrent_collectives");
    refuse(!draft_.start_offsets_ns.empty(), "start_offsets_ns");
    faults_.AddIf(job.fidelity == Fidelity::kExpanded, "all_reduce.fidelity", "EXPANDED", kWhy);
    faults_.AddIf(
        job.sharding == Sharding::kFull, "all_reduce.sharding", "FULL", kWhy,
        ": each micro-batch would gather the parameters anew. GRADIENTS (--sharding gradients) "
        "shards all but them, a pipeline's stages do that, and without --pipeline FULL is "
        "answered");
    for (size_t i = 0; i < draft_.worker_groups.size(); ++i)
      if (draft_.worker_groups[i].bandwidth_bytes_per_second.has_value())
        faults_.Add(absl::StrCat("worker_groups[", i, "].bandwidth_bytes_per_second"),
                    absl::StrCat("given, and unlike links are", kWhy + 3));
  }

  // Measured points are of the links themselves, and so is a recording of real transfers.
  bool LinkRateIsMeasured() const {
    const bool as_recorded =
        !draft_.bandwidth_bytes_per_second.has_value() && !draft_.cluster.has_value();
    return draft_.bandwidth_is_measured ||
           (scenario_.has_servers() ? as_recorded && profile_.knows_transfer_order()
                                    : !scenario_.all_reduce().measured.empty());
  }

  // The cluster as the ring of a stage's replicas sees it, which has fewer members on a node.
  std::optional<ClusterDraft> ClusterOfRings() const {
    std::optional<ClusterDraft> cluster = cluster_;
    if (placement_.has_value()) cluster->workers_per_node = placement_->replicas_of_node;
    return cluster;
  }

  // False, with a fault, where a communication is asked for that the profile was not recorded with,
  // but by nothing that may ask for it.
  bool CheckKind() {
    if (std::holds_alternative<std::monostate>(draft_.communication)) return true;
    const bool collectives = MeetsInCollectives();
    if (collectives == profile_.has_collectives() || draft_.pipeline.has_value()) return true;
    scenario_.assumed.Add(Assumed::kKind);
    if (collectives && std::ranges::any_of(profile_.operations(), [](const Operation& operation) {
          return operation.resource == Resource::kParameterServer;
        }))
      scenario_.assumed.Add(Assumed::kNoServerWork);
    const bool asked = collectives || asked_.servers.has_value();
    if (asked && !draft_.recorded_kind_only) return true;
    const char* const own = collectives ? "all_reduce" : "parameter_servers";
    const std::string why =
        collectives
            ? "belongs to collectives, and the profile was recorded with parameter "
              "servers: leave it out, or ask about a job with collectives (--all-reduce; in a "
              "request, all_reduce without recorded_kind_only)"
            : "belongs to parameter servers, and the profile was recorded with "
              "collectives: leave it out, or ask about a job with servers (--servers N; in a "
              "request, parameter_servers.servers)";
    if (draft_.set_fields.paths.empty()) faults_.Add(own, why);
    for (const std::string& field : draft_.set_fields.paths) faults_.Add(field, why);
    return false;
  }

  // Keeps the cluster where nothing is wrong with it, so that no figure of it is told twice.
  void CheckCluster() {
    if (!draft_.cluster.has_value()) return;
    const ClusterDraft& asked = *draft_.cluster;
    FaultList faults;
    const AllReduceLimits limits;
    const auto check = [&](const char* path, auto value, auto least, auto most) {
      if (!(value >= least && value <= most))
        faults.Add(path, absl::StrCat(value, " is not from ", least, " to ", most));
    };
    CheckBandwidth("cluster.bandwidth_bytes_per_second", asked.bandwidth_bytes_per_second, faults);
    check("cluster.workers_per_node", asked.workers_per_node.value_or(1), 1, INT32_MAX);
    constexpr char kInner[] = "cluster.intra_node_bandwidth_bytes_per_second";
    if (asked.intra_node_bandwidth_bytes_per_second.has_value()) {
      CheckBandwidth(kInner, *asked.intra_node_bandwidth_bytes_per_second, faults);
    } else if (asked.workers_per_node.value_or(1) > 1) {
      faults.Add(kInner,
                 absl::StrCat("not given, and workers_per_node is ", *asked.workers_per_node));
    }
    check("cluster.latency_seconds", asked.latency_seconds.value_or(0), 0,
          limits.max_latency_seconds);
    check("cluster.intra_node_latency_seconds", asked.intra_node_latency_seconds.value_or(0), 0,
          limits.max_latency_seconds);
    faults.AddIf(asked.algorithm == CollectiveAlgorithm::kMeasured, "cluster.algorithm",
                 "MEASURED needs the points of all_reduce.measured, which choose it by themselves");
    if (faults.empty()) cluster_ = asked;
    for (Fault& fault : std::move(faults).Take())
      faults_.Add(std::move(fault.field), std::move(fault.description));
  }

  void ResolveCollectives() {
    const auto* asked = std::get_if<AllReduceDraft>(&draft_.communication);
    const AllReduceDraft draft =
        WithCluster(asked != nullptr ? *asked : AsRecorded(), ClusterOfRings());
    AllReduce job = ResolveAllReduce(profile_, draft, scenario_.bandwidth_bytes_per_second, faults_,
                                     {.needs_gradients = !draft_.pipeline.has_value()});
    faults_.AddIf(profile_.recorded_workers() > 1 && job.fidelity == Fidelity::kExpanded,
                  "all_reduce.fidelity",
                  "EXPANDED is of workers that are alike, and the profile is a recording of ",
                  profile_.recorded_workers());
    if (workers_known_) CheckWorkers("workers", scenario_.workers, job, faults_);
    CheckLeftOf(job.rack_bandwidth_bytes_per_second);
    job.rack_bandwidth_bytes_per_second *= left_of_links_;
    faults_.AddIf(
        left_of_links_ < 1 && !job.measured.empty(), "other_traffic_fraction",
        draft_.other_traffic_fraction,
        " given, and collectives take measured times, which had whatever traffic there was: "
        "leave it out, or give a bandwidth in place of measured times");
    CheckLinksInsideNodes(draft, job);
    faults_.AddIf(scenario_.nodes_per_worker > 1 && job.workers_per_node > 1, "nodes_per_worker",
                  scenario_.nodes_per_worker, ", and all_reduce.workers_per_node is ",
                  job.workers_per_node, ": which of both?");
    AssumeOfCollectives(draft, job);
    if (!draft_.pipeline.has_value() && RecordedRanksOf(profile_) > 0)
      scenario_.assumed.Add(Assumed::kOneDevice);
    if (asked == nullptr && !job.measured.empty()) scenario_.assumed.Add(Assumed::kRecordedTimes);
    if (asked != nullptr && !job.measured.empty() && !draft_.pipeline.has_value() &&
        HasFiguresOfLinks(*asked))
      scenario_.assumed.Add(Assumed::kLinksUnused);
    scenario_.communication = std::move(job);
  }

  // The outer rate is none of theirs. Of a number of workers that is not given yet, any may come.
  void CheckLinksInsideNodes(const AllReduceDraft& asked, const AllReduce& job) {
    if (asked.intra_node_bandwidth_bytes_per_second.has_value()) return;
    if (!UsesLinksInsideNodes(draft_.workers.value_or(job.workers_per_node), job)) return;
    faults_.Add("all_reduce.intra_node_bandwidth_bytes_per_second",
                absl::StrCat("not given, and ", job.workers_per_node,
                             " workers share a node (workers_per_node): its links are not those "
                             "between nodes; give their rate (--intra-bandwidth), or a cluster "
                             "preset that has it (--cluster)"));
  }

  void AssumeOfCollectives(const AllReduceDraft& asked, const AllReduce& job) {
    AssumedValues& assumed = scenario_.assumed;
    if (!asked.algorithm.has_value() && job.algorithm == CollectiveAlgorithm::kRing)
      assumed.Add(Assumed::kAlgorithm);
    if (!asked.latency_seconds.has_value()) assumed.Add(Assumed::kLatency);
    if (!asked.intra_node_latency_seconds.has_value()) assumed.Add(Assumed::kIntraNodeLatency);
    if (std::holds_alternative<std::monostate>(asked.fusion) &&
        !profile_.content().buckets.has_value())
      assumed.Add(Assumed::kBuckets);
    const auto is_gradient = [&](const Operation& each) {
      return IsUploadedOrSummed(profile_, each);
    };
    if (assumed.Has(Assumed::kBuckets) && !draft_.pipeline.has_value() &&
        std::holds_alternative<std::monostate>(job.fusion) && profile_.recording() == nullptr &&
        std::ranges::count_if(profile_.operations(), is_gradient) > 1)
      assumed.Add(Assumed::kUnfused);
  }

  // True if figures of links were given that differ from those that no collective needs.
  bool HasFiguresOfLinks(const AllReduceDraft& asked) const {
    const double rate = scenario_.bandwidth_bytes_per_second;
    return cluster_.has_value() ||
           asked.intra_node_bandwidth_bytes_per_second.value_or(rate) != rate ||
           asked.intra_node_latency_seconds.value_or(0) != 0 ||
           asked.reduction_seconds_per_byte.value_or(0) != 0 ||
           std::ranges::any_of(draft_.worker_groups,
                               [&](const WorkerGroup& group) { return RateOf(group) != rate; });
  }

  // Times that collectives took in a recording of several workers, and as many of them at once,
  // unless links are asked for.
  AllReduceDraft AsRecorded() const {
    const JobRecording* const recording = profile_.recording();
    const bool asks_for_links =
        draft_.bandwidth_bytes_per_second.has_value() || draft_.cluster.has_value() ||
        std::any_of(
            draft_.worker_groups.begin(), draft_.worker_groups.end(),
            [](const WorkerGroup& group) { return group.bandwidth_bytes_per_second.has_value(); });
    if (recording == nullptr || asks_for_links) return {};
    std::vector<MeasuredCollective> points = MeasuredCollectivesOf(*recording);
    const bool has_all_reduce = std::any_of(
        points.begin(), points.end(),
        [](const MeasuredCollective& point) { return point.kind == Collective::kAllReduce; });
    if (!has_all_reduce || points.size() > Index(AllReduceLimits().max_measured)) return {};
    return {.measured = std::move(points),
            .concurrent_collectives = std::min(CollectivesAtOnce(*recording, NeverStop).value(),
                                               AllReduceLimits().max_concurrent_collectives)};
  }

  void ResolveServers() {
    const bool has_slow_links = std::any_of(
        draft_.worker_groups.begin(), draft_.worker_groups.end(), [&](const WorkerGroup& group) {
          return RateOf(group) < scenario_.bandwidth_bytes_per_second;
        });
    scenario_.communication = ResolveParameterServers(
        profile_, asked_, {.are_given = !draft_.worker_groups.empty(), .are_slow = has_slow_links},
        {.max_parameter_servers = limits_.max_parameter_servers, .max_turns = limits_.max_turns},
        faults_);
    AssumedValues& assumed = scenario_.assumed;
    if (cluster_.has_value() && cluster_->workers_per_node.value_or(1) > 1)
      assumed.Add(Assumed::kNodeLinks);
    if (!asked_.synchronization.has_value()) assumed.Add(Assumed::kSynchronization);
    if (!asked_.multiplexing.has_value() && profile_.platform().window_bytes == 0)
      assumed.Add(Assumed::kMultiplexing);
    if (!asked_.link_sharing.has_value()) assumed.Add(Assumed::kLinkSharing);
    if (!asked_.transfer_order.has_value() && asked_.transfer_priorities.empty())
      assumed.Add(Assumed::kTransferOrder);
  }

  void ResolveStartOffsets() {
    const std::vector<int64_t>& offsets = draft_.start_offsets_ns;
    if (offsets.empty() || !workers_known_) return;
    if (offsets.size() != static_cast<size_t>(scenario_.workers)) {
      faults_.Add("start_offsets_ns",
                  absl::StrCat(offsets.size(), " given for ", scenario_.workers, " workers"));
      return;
    }
    for (size_t i = 0; i < offsets.size(); ++i) {
      if (offsets[i] >= 0 && offsets[i] <= limits_.max_start_offset_ns) continue;
      faults_.Add(absl::StrCat("start_offsets_ns[", i, "]"),
                  absl::StrCat(DurationText(offsets[i]), " is not from 0 to ",
                               DurationText(limits_.max_start_offset_ns)));
    }
    scenario_.start_offsets_ns = offsets;
  }

  void ResolveWorkerGroups() {
    const std::vector<WorkerGroup>& groups = draft_.worker_groups;
    if (groups.empty() || !workers_known_) return;
    if (groups.size() > static_cast<size_t>(scenario_.workers)) {
      faults_.Add("worker_groups",
                  absl::StrCat(groups.size(), " groups for ", scenario_.workers, " workers"));
      return;
    }
    int64_t workers = 0;
    bool counts_known = true;
    for (size_t i = 0; i < groups.size(); ++i) {
      ResolveWorkerGroup(absl::StrCat("worker_groups[", i, "]"), groups[i]);
      counts_known = counts_known && groups[i].count >= 1;
      workers += groups[i].count;
    }
    faults_.AddIf(counts_known && workers != scenario_.workers, "worker_groups",
                  "their counts add up to ", workers, ", not to ", scenario_.workers, " workers");
  }

  // Rate that other traffic leaves of the group's links.
  double RateOf(const WorkerGroup& group) const {
    return group.bandwidth_bytes_per_second.has_value()
               ? *group.bandwidth_bytes_per_second * left_of_links_
               : scenario_.bandwidth_bytes_per_second;
  }

  void ResolveWorkerGroup(const std::string& path, const WorkerGroup& group) {
    const double factor = group.compute_speed_factor.value_or(1);
    const double bandwidth = RateOf(group);
    CheckLeftOf(group.bandwidth_bytes_per_second.value_or(0));
    if (group.count < 1) faults_.Add(path + ".count", absl::StrCat(group.count, " is below 1"));
    faults_.AddIf(!(factor >= kMinComputeSpeedFactor && factor <= kMaxComputeSpeedFactor),
                  path + ".compute_speed_factor", factor, " is not from ", kMinComputeSpeedFactor,
                  " to ", kMaxComputeSpeedFactor);
    if (group.bandwidth_bytes_per_second.has_value())
      CheckBandwidth(path + ".bandwidth_bytes_per_second", *group.bandwidth_bytes_per_second,
                     faults_);
    scenario_.worker_groups.push_back({.count = group.count,
                                       .compute_speed_factor = factor,
                                       .bandwidth_bytes_per_second = bandwidth});
  }

  const Profile& profile_;
  const ScenarioDraft& draft_;
  const ParameterServersDraft& asked_;
  const ScenarioLimits& limits_;
  Scenario scenario_;
  double left_of_links_ = 1;    // by other traffic
  bool workers_known_ = false;  // else nothing can be compared with their number
  std::optional<ClusterDraft> cluster_;
  std::optional<ReplicaPlacement> placement_;  // of workers of several devices on it
  FaultList faults_;
};

}  // namespace

AllReduceDraft WithCluster(AllReduceDraft asked, const std::optional<ClusterDraft>& cluster) {
  if (!cluster.has_value()) return asked;
  const auto fill = [](auto& field, const auto& figure) {
    if (!field.has_value()) field = figure;
  };
  fill(asked.latency_seconds, cluster->latency_seconds);
  fill(asked.workers_per_node, cluster->workers_per_node);
  if (asked.workers_per_node.value_or(1) > 1) {
    fill(asked.intra_node_bandwidth_bytes_per_second,
         cluster->intra_node_bandwidth_bytes_per_second);
    fill(asked.intra_node_latency_seconds, cluster->intra_node_latency_seconds);
  }
  if (asked.measured.empty()) fill(asked.algorithm, cluster->algorithm);
  return asked;
}

absl::StatusOr<Scenario> ResolveScenario(const Profile& profile, const ScenarioDraft& draft,
                                         const ScenarioLimits& limits) {
  return ScenarioResolver(profile, draft, limits).Run();
}

}  // namespace stepcast
