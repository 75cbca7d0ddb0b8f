// The places of a pipeline's devices on the nodes of a cluster.
#pragma once

#include <algorithm>
#include <cstdint>

#include "core/model/pipeline.h"

namespace stepcast {

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
