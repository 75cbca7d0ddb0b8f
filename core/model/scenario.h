// The cluster to predict for, and how precisely.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

#include "core/model/profile.h"

namespace stepcast {

enum class Synchronization : uint8_t { kAsynchronous, kSynchronous };
enum class Multiplexing : uint8_t { kWindow, kWholeStream, kRoundRobin };
enum class LinkSharing : uint8_t { kEqual, kFirstCome, kTurns };
enum class TransferOrder : uint8_t { kGraph, kRecorded, kRandom, kReverse, kTic, kTac, kExplicit };

// `count` workers that are alike.
struct WorkerGroup {
  int32_t count = 0;
  std::optional<double> compute_speed_factor;
  std::optional<double> bandwidth_bytes_per_second;

  friend bool operator==(const WorkerGroup&, const WorkerGroup&) = default;
};

// A scenario as asked for: what is empty is as in the profile.
struct ScenarioDraft {
  std::optional<int32_t> workers;
  std::optional<int32_t> parameter_servers;
  std::optional<double> bandwidth_bytes_per_second;
  std::optional<ParsingOverhead> parsing_overhead;
  std::optional<Synchronization> synchronization;
  std::optional<Multiplexing> multiplexing;
  std::optional<int64_t> window_bytes;
  std::optional<int64_t> quantum_bytes;
  std::optional<LinkSharing> link_sharing;
  std::optional<int64_t> turn_bytes;
  std::optional<TransferOrder> transfer_order;
  std::map<std::string, int32_t> transfer_priorities;
  std::vector<int64_t> start_offsets_ns;
  std::vector<WorkerGroup> worker_groups;

  friend bool operator==(const ScenarioDraft&, const ScenarioDraft&) = default;
};

// A scenario with every default filled in, checked against its profile.
struct Scenario {
  int32_t workers = 1;
  int32_t parameter_servers = 1;
  double bandwidth_bytes_per_second = 0;
  ParsingOverhead parsing_overhead;
  Synchronization synchronization = Synchronization::kAsynchronous;
  Multiplexing multiplexing = Multiplexing::kWholeStream;
  int64_t window_bytes = 0;  // 0 with kWholeStream
  int64_t quantum_bytes =
      0;  // of each service after the first; 0: all the rest in one, and with kWholeStream
  LinkSharing link_sharing = LinkSharing::kEqual;
  int64_t turn_bytes = 0;  // of one worker at a time, with kTurns; else 0
  TransferOrder transfer_order = TransferOrder::kGraph;
  std::map<std::string, int32_t> transfer_priorities;
  std::vector<int64_t> start_offsets_ns;   // empty, or one a worker
  std::vector<WorkerGroup> worker_groups;  // empty: all as recorded; else every field is set

  friend bool operator==(const Scenario&, const Scenario&) = default;
};

// Bounds of compute_speed_factor: beyond them a unit was mistaken.
inline constexpr double kMinComputeSpeedFactor = 1e-6;
inline constexpr double kMaxComputeSpeedFactor = 1e6;

// What kRoundRobin stands for where neither the scenario nor the profile says it, as measured of
// gRPC 1.51 with bandwidth probing off.
inline constexpr int64_t kRoundRobinWindowBytes = 65'536;
inline constexpr int64_t kRoundRobinQuantumBytes = 1'048'576;

// What kTurns stands for where the scenario does not say it: the payload of the largest segment
// that Linux hands to a queue as one, 45 packets of 1,448 bytes.
inline constexpr int64_t kTurnBytes = 65'160;

struct ScenarioLimits {
  int32_t max_workers = 4096;
  int32_t max_parameter_servers = 256;
  int64_t max_start_offset_ns = 86'400'000'000'000;  // one day
  int64_t max_turns =
      1'000'000;  // services after the first, of all transfers of a step, where there is a quantum
};

// Fails with INVALID_ARGUMENT, reason SCENARIO_INVALID, and every fault, its path relative to the
// scenario. What would have no effect is a fault: an input is never silently ignored.
absl::StatusOr<Scenario> ResolveScenario(const Profile& profile, const ScenarioDraft& draft,
                                         const ScenarioLimits& limits = {});

}  // namespace stepcast
