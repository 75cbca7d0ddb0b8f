// Edits of a resolved scenario: the same job on other links and servers, or with its gradients
// fused otherwise.
//
// Threads: pure functions.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/model/profile.h"
#include "core/model/scenario.h"

namespace stepcast {

// The links that make collectives faster if they are.
enum class LinkPlace : uint8_t { kBetweenNodes, kInsideNodes };

// The scenario with links of one place `factor` times as fast, racks' with those between nodes.
// Measured times of collectives stay as they are. REQUIRES: inside nodes: workers meet in
// collectives.
Scenario WithLinkRates(Scenario scenario, LinkPlace place, double factor);

// The scenario with links between nodes half as fast.
inline Scenario AtHalfTheRate(const Scenario& scenario) {
  return WithLinkRates(scenario, LinkPlace::kBetweenNodes, 0.5);
}

// A sentence without its end about the links between nodes, whose rates nobody measured: the least
// and the greatest of those in use.
std::string NotMeasuredText(const Scenario& scenario);

// The number of workers that lists with an entry for each, or for some, come to; none: there are no
// lists.
std::optional<int32_t> WorkersByLists(const ScenarioDraft& draft);

// The scenario with gradients fused so. Of this and the next three: REQUIRES: workers meet in
// collectives.
Scenario WithFusion(Scenario scenario, Fusion fusion);
// Fused so, and what is larger than so many bytes cut; 0: nothing.
Scenario WithFusion(Scenario scenario, Fusion fusion, int64_t partition_bytes);
// Collectives and computation that do not slow each other down, at the rates of the links.
Scenario Uncontended(Scenario scenario);
// Computation at its own speed, and collectives at the rates that they have alone. REQUIRES: a
// contention.
Scenario AsIfAlone(Scenario scenario);

// Obstacles to fusing gradients otherwise than a scenario has it.
enum class FusionObstacle : uint8_t {
  kServers,   // gradients go to parameter servers
  kSharding,  // what is reduced are not whole gradients
  kExpanded,  // each grouping would be simulated round by round
};
std::vector<FusionObstacle> FusionObstaclesOf(const Scenario& scenario);

// The scenario with every transfer in the order, and `added_seconds` longer than, it was recorded;
// one of collectives as it is.
Scenario AsTransferred(Scenario scenario, double added_seconds);

// Each edits the scenario, or leaves it and returns the reason why it makes no difference.
std::string MakeLinksTwiceAsFast(Scenario& scenario);  // all of them; measured times are halved
std::string RemoveLatency(Scenario& scenario);
std::string MakeServersTwiceAsFast(const Profile& profile, Scenario& scenario);

}  // namespace stepcast
