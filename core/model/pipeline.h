// A job whose model is spread over the devices of a pipeline, in replicas, as asked for and as
// checked against its profile.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/base/error.h"
#include "core/model/profile.h"
#include "core/model/stage_map.h"
#include "core/pipeline/schedule.h"
#include "core/pipeline/simulation.h"

namespace stepcast {

// Megatron-LM reduces gradients in single precision unless told otherwise.
inline constexpr int32_t kGradientElementBytes = 4;
inline constexpr int32_t kMaxGradientElementBytes = 8;
inline constexpr int32_t kMaxNodesPerReplica = 1 << 20;

// A pipeline as it is asked for: an empty field has its default.
struct PipelineDraft {
  std::optional<int32_t> stages;         // p, the devices of a replica; required
  std::optional<int32_t> micro_batches;  // of a replica and step; required
  std::optional<PipelineSchedule> schedule;
  std::optional<int32_t> chunks;  // of a device
  std::optional<int32_t> group;
  std::optional<PipelineVariant> variant;
  // Names of the first forward operation of each of the p x chunks stages but the first; empty:
  // found.
  std::vector<std::string> cuts;
  std::optional<PipelineReceives> receives;
  std::optional<PipelineTransport> transport;
  std::optional<PipelineLinks> links;
  std::optional<double> bandwidth_bytes_per_second;
  std::optional<double> latency_seconds;
  std::optional<PipelineReduction> reduction;
  bool step_barrier = false;
  std::optional<int32_t> gradient_element_bytes;  // of kMegatronBuckets
  std::optional<int32_t> nodes_per_replica;

  friend bool operator==(const PipelineDraft&, const PipelineDraft&) = default;
};

// Every default filled in.
struct Pipeline {
  PipelineLayout layout;
  std::vector<std::string> cuts;  // of layout.stages() - 1 stages
  PipelineReceives receives = PipelineReceives::kEager;
  PipelineTransport transport = PipelineTransport::kIdeal;
  PipelineLinks links = PipelineLinks::kPair;
  double bandwidth_bytes_per_second = 0;
  double latency_seconds = 0;
  PipelineReduction reduction = PipelineReduction::kAtEnd;
  bool step_barrier = false;
  bool has_network_links = false;  // at the scenario's bandwidth, since no other was asked for
  // Reductions go over the links of transfers, too (kDevice).
  bool shares_links = false;
  int32_t gradient_element_bytes = kGradientElementBytes;
  int32_t nodes_per_replica = 1;

  friend bool operator==(const Pipeline&, const Pipeline&) = default;
};

// The network that transfers between stages have unless they are given another.
struct PipelineNetwork {
  double bandwidth_bytes_per_second = 0;
  double latency_seconds = 0;
  bool is_scenarios = true;  // else of links inside nodes
  int32_t nodes_per_replica = 1;
};

inline constexpr double kMaxPipelineLatencySeconds = 10;

// Adds every fault, its path below `pipeline.`. Cost: linear in the profile, and where no cuts are
// given stages x (forward operations)^2 at most, of 2,048 of them.
Pipeline ResolvePipeline(const Profile& profile, const PipelineDraft& draft,
                         const PipelineNetwork& network, FaultList& faults);

// The first link of each stage in the profile's chain. REQUIRES: the pipeline was resolved for this
// profile, whose map that is.
std::vector<int32_t> FirstLinksOf(const Profile& profile, const StageMap& map,
                                  const Pipeline& pipeline);

// The places of the devices of replicas, pipelines or others, on the nodes of a cluster.

// The devices of a replica fill nodes; a node with room for several replicas has whole ones.
struct ReplicaPlacement {
  int32_t nodes_per_replica = 1;
  int32_t replicas_of_node = 1;
  // A replica's devices on one node: each is in the ring of its own stage, and all of these rings
  // leave the node by its network.
  int32_t rings_of_node = 1;
  // Devices of one stage, which send to the next one at once.
  int32_t senders_of_node = 1;
};

inline ReplicaPlacement PlaceReplicas(const PipelineDraft& asked, int32_t devices_per_worker,
                                      int32_t devices_of_node) {
  const int64_t devices = int64_t{std::max(1, asked.stages.value_or(1))} * devices_per_worker;
  const int64_t room = std::max(1, devices_of_node);
  const int64_t nodes =
      std::clamp<int64_t>((devices - 1) / room + 1, asked.nodes_per_replica.value_or(1), INT32_MAX);
  const int64_t together = (devices - 1) / nodes + 1;
  return {.nodes_per_replica = static_cast<int32_t>(nodes),
          .replicas_of_node = static_cast<int32_t>(nodes > 1 ? 1 : room / devices),
          .rings_of_node = static_cast<int32_t>(together),
          .senders_of_node = static_cast<int32_t>(std::min<int64_t>(together, devices_per_worker))};
}

}  // namespace stepcast
