// The cluster to predict for.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "absl/status/statusor.h"

#include "core/model/all_reduce.h"
#include "core/model/job_change.h"
#include "core/model/parameter_servers.h"
#include "core/model/pipeline.h"
#include "core/model/profile.h"

namespace stepcast {

// `count` workers that are alike.
struct WorkerGroup {
  int32_t count = 0;
  std::optional<double> compute_speed_factor;
  std::optional<double> bandwidth_bytes_per_second;

  friend bool operator==(const WorkerGroup&, const WorkerGroup&) = default;
};

// Empty: as the profile was recorded.
using CommunicationDraft = std::variant<std::monostate, ParameterServersDraft, AllReduceDraft>;

// Paths of what the caller set in the communication, `all_reduce.threads`: a fault of its kind is
// told there, or, where they are none, at the communication. They are not part of what is asked.
struct SetFields {
  std::vector<std::string> paths;

  friend bool operator==(const SetFields&, const SetFields&) { return true; }
};

// Machines and the network between them, as asked for: figures for what a draft leaves empty.
struct ClusterDraft {
  double bandwidth_bytes_per_second = 0;  // required
  std::optional<int32_t> workers_per_node;
  std::optional<double> intra_node_bandwidth_bytes_per_second;  // required with several to a node
  std::optional<double> latency_seconds;
  std::optional<double> intra_node_latency_seconds;
  std::optional<CollectiveAlgorithm> algorithm;  // not kMeasured

  friend bool operator==(const ClusterDraft&, const ClusterDraft&) = default;
};

// A scenario as asked for: what is empty is as in the cluster, or as in the profile. Only parameter
// servers with a number of them, and collectives, may be another kind of communication than the
// profile's.
struct ScenarioDraft {
  std::optional<int32_t> workers;
  std::optional<double> bandwidth_bytes_per_second;
  std::optional<double> other_traffic_fraction;  // of every link between nodes
  std::optional<ClusterDraft> cluster;
  std::optional<int32_t> nodes_per_worker;
  CommunicationDraft communication;
  std::vector<int64_t> start_offsets_ns;
  std::vector<WorkerGroup> worker_groups;
  // Refuse a communication of another kind than the profile's, whatever it has.
  bool recorded_kind_only = false;
  bool bandwidth_is_measured = false;
  std::optional<PipelineDraft> pipeline;  // workers are replicas of it, and meet in collectives
  SetFields set_fields;

  // The draft of parameter servers: empty, where something else was asked for.
  const ParameterServersDraft& servers() const {
    static const ParameterServersDraft kNothing;
    const auto* asked = std::get_if<ParameterServersDraft>(&communication);
    return asked != nullptr ? *asked : kNothing;
  }
  // REQUIRES: no collectives were asked for.
  ParameterServersDraft& servers() {
    if (std::holds_alternative<std::monostate>(communication))
      communication = ParameterServersDraft{};
    return std::get<ParameterServersDraft>(communication);
  }

  friend bool operator==(const ScenarioDraft&, const ScenarioDraft&) = default;
};

using Communication = std::variant<ParameterServers, AllReduce>;

// The values of a scenario that were neither recorded nor asked for and move the answer; and a
// change of kind, which was asked for and moves all of it.
enum class Assumed : uint8_t {
  kKind,
  kTransferOrder,
  kLinkSharing,
  kMultiplexing,
  kSynchronization,
  kAlgorithm,
  kLatency,
  kIntraNodeLatency,
  kBuckets,
  kLinkRate,  // given, but neither measured nor said to be
  kPipelineSchedule,
  kPipelineCuts,
  kPipelineReceives,
  kPipelineLinks,  // the rate of links between stages
  kPipelineReduction,
  kNothingToSend,    // between stages: the profile has no output_bytes
  kNothingToReduce,  // replicas of a pipeline whose profile has no gradients
  kOneDevice,        // computes what was recorded of a pipeline's stages
  kRecordedTimes,    // of collectives, which are those of the recorded workers
  kNoServerWork,     // in the place of what servers computed
  kUnfused,          // gradients, of which there are several
  kNodeLinks,        // for each of the workers of a node, with servers
  kLinksUnused,      // by collectives, whose times were measured
};

// A set of them. All sets are equal: a scenario is the same whoever chose its values.
class AssumedValues {
 public:
  void Add(Assumed value) { bits_ |= BitOf(value); }
  bool Has(Assumed value) const { return (bits_ & BitOf(value)) != 0; }

  friend bool operator==(const AssumedValues&, const AssumedValues&) { return true; }

 private:
  static uint32_t BitOf(Assumed value) { return uint32_t{1} << static_cast<uint32_t>(value); }

  uint32_t bits_ = 0;
};

// The kinds of jobs, by how workers meet and what a worker is.
enum class JobKind : uint8_t { kParameterServers, kAllReduce, kPipeline };

// A scenario with every default filled in, checked against its profile.
struct Scenario {
  int32_t workers = 1;
  // Bandwidth of a server's link, or of a link between nodes, in each direction.
  double bandwidth_bytes_per_second = 0;
  Communication communication;
  std::vector<int64_t> start_offsets_ns;   // empty, or one a worker
  std::vector<WorkerGroup> worker_groups;  // empty: all as recorded; else every field is set
  std::optional<Pipeline> pipeline;        // with collectives only
  AssumedValues assumed;
  std::shared_ptr<const AppliedChange> change;  // the profile's
  int32_t nodes_per_worker = 1;                 // whose devices lie on several; of no pipeline

  bool has_servers() const { return std::holds_alternative<ParameterServers>(communication); }
  // 0 where workers meet in collectives.
  int32_t server_count() const { return has_servers() ? servers().servers : 0; }
  // REQUIRES: the job has parameter servers.
  const ParameterServers& servers() const { return std::get<ParameterServers>(communication); }
  ParameterServers& servers() { return std::get<ParameterServers>(communication); }
  // REQUIRES: it has not.
  const AllReduce& all_reduce() const { return std::get<AllReduce>(communication); }
  // The fusing of its gradients: nothing, where there are servers.
  const Fusion& fusion() const {
    static const Fusion kNothing;
    return has_servers() ? kNothing : all_reduce().fusion;
  }
  // The bytes of the parts that transfers or collectives are cut into; 0: nothing is cut.
  int64_t partition_bytes() const {
    return has_servers() ? servers().partition_bytes : all_reduce().partition_bytes;
  }
  JobKind kind() const {
    if (pipeline.has_value()) return JobKind::kPipeline;
    return has_servers() ? JobKind::kParameterServers : JobKind::kAllReduce;
  }
  // Workers that share a node and its link to others: 1 where that makes no difference.
  int32_t workers_per_node() const { return has_servers() ? 1 : all_reduce().workers_per_node; }
  // Nodes that so many workers are on.
  int64_t NodesOf(int32_t count) const {
    const int64_t nodes = pipeline.has_value() ? pipeline->nodes_per_replica : nodes_per_worker;
    if (nodes > 1) return count * nodes;
    return (count - 1) / workers_per_node() + 1;
  }
  // By worker; empty: all compute as recorded.
  std::vector<double> compute_speeds() const {
    std::vector<double> speeds;
    for (const WorkerGroup& group : worker_groups)
      speeds.insert(speeds.end(), static_cast<size_t>(group.count),
                    group.compute_speed_factor.value_or(1));
    return speeds;
  }
  // True if computation takes longer beside collectives.
  bool slows_computation() const {
    return !has_servers() &&
           (all_reduce().overlap_slowdown > 1 || all_reduce().contention.has_value());
  }
  // True if it could have so many workers.
  bool Allows(int32_t count) const { return has_servers() || CanMeet(count, all_reduce()); }
  // Devices that a worker is made of. `profile`: the one that the scenario is of.
  int64_t DevicesPerWorker(const Profile& profile) const {
    return int64_t{pipeline.has_value() ? pipeline->layout.devices : 1} *
           profile.devices_per_worker();
  }
  // Examples that a worker computes in a step. `profile`: likewise.
  int64_t ExamplesPerStep(const Profile& profile) const {
    return int64_t{pipeline.has_value() ? pipeline->layout.micro_batches : 1} *
           profile.batch_size();
  }
  // True if so many workers can have equal shares of so many examples, all of which the one worker
  // of this scenario has: a pipeline's replica in micro-batches that its schedule can order.
  bool CanShare(int64_t examples, int32_t count) const;
  // The scenario of so many workers that share what this one's has. REQUIRES: CanShare(.., count).
  Scenario SharedAmong(int32_t count) const;
  // True if workers wait for each other in every step.
  bool is_synchronous() const {
    return !has_servers() || servers().synchronization != Synchronization::kAsynchronous;
  }
  // True if workers may go on to lie in time as they started: there are several, and no step that
  // all begin together. Workers whose uploads are added up wait for each sum, not for the next
  // step.
  bool RemembersStart() const { return workers > 1 && (sums() || !is_synchronous()); }
  // True if servers add up what the workers upload before they send it on.
  bool sums() const {
    return has_servers() && servers().synchronization == Synchronization::kSummed;
  }

  friend bool operator==(const Scenario&, const Scenario&) = default;
};

// Bounds of compute_speed_factor: beyond them a unit was mistaken.
inline constexpr double kMinComputeSpeedFactor = 1e-6;
inline constexpr double kMaxComputeSpeedFactor = 1e6;

struct ScenarioLimits {
  int32_t max_workers = 4096;
  int32_t max_parameter_servers = 256;
  int64_t max_start_offset_ns = 86'400'000'000'000;  // one day
  // Pipelines are asked for by some methods only, and refused by the others.
  bool pipelines = false;
  // Services after the first, of all transfers of a step, where there is a quantum; and parts,
  // where tensors are cut.
  int64_t max_turns = 1'000'000;
};

// The collectives that are asked for, with the cluster's figures where they leave theirs empty.
AllReduceDraft WithCluster(AllReduceDraft asked, const std::optional<ClusterDraft>& cluster);

// True if the workers of such a scenario meet in collectives.
bool AsksForCollectives(const Profile& profile, const ScenarioDraft& draft);

// The reason why gradients of several micro-batches (JobChange::accumulate) cannot add up in such a
// scenario, after their number; empty: they can.
std::string WhyNotAccumulated(const Profile& profile, const ScenarioDraft& draft);

// Fails with INVALID_ARGUMENT, reason SCENARIO_INVALID, and every fault, its path relative to the
// scenario: an input is never silently ignored.
absl::StatusOr<Scenario> ResolveScenario(const Profile& profile, const ScenarioDraft& draft,
                                         const ScenarioLimits& limits = {});

// Values assumed in the scenario that it still has and that move its answer: what is between
// workers does not with one; and those of the job's change. The change of kind is the first.
std::vector<Assumption> AssumptionsOf(const Scenario& scenario);

// Adds those that are not among `told`.
void AddAssumptions(const Scenario& scenario, std::vector<Assumption>& told);

}  // namespace stepcast
