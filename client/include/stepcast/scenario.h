// The cluster to predict for.
//
// Fields, units, defaults and bounds are those of proto/stepcast/v1/scenario.proto. What is empty
// or kUnspecified is as in the profile.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "stepcast/profile.h"

namespace stepcast::client {

// When a worker's next step begins: when its own has ended, or when every worker's has.
enum class Synchronization : int32_t { kUnspecified = 0, kAsynchronous = 1, kSynchronous = 2 };

// How the streams of one worker and server take turns: up to the window first and all the rest
// later, whole, or in turns of a quantum.
enum class Multiplexing : int32_t {
  kUnspecified = 0,
  kWindow = 1,
  kWholeStream = 2,
  kRoundRobin = 3
};

// How workers share a server's link: all at once in equal shares, chunk by chunk, or in turns.
enum class LinkSharing : int32_t { kUnspecified = 0, kEqual = 1, kFirstCome = 2, kTurns = 3 };

// Which waiting stream a connection serves next.
enum class TransferOrder : int32_t {
  kUnspecified = 0,
  kGraph = 1,
  kRecorded = 2,
  kRandom = 3,
  kReverse = 4,
  kTic = 5,
  kTac = 6,
  kExplicit = 7
};

// Workers that are alike.
struct WorkerGroup {
  int32_t count = 0;
  std::optional<double>
      compute_speed_factor;  // their computations take the recorded time divided by this
  std::optional<double> bandwidth_bytes_per_second;  // of each one's own link, in each direction

  friend bool operator==(const WorkerGroup&, const WorkerGroup&) = default;
};

struct Scenario {
  int32_t workers = 0;  // in PredictThroughput 0 means 1
  std::optional<int32_t> parameter_servers;
  std::optional<double> bandwidth_bytes_per_second;  // payload, of each link, in each direction
  std::optional<ParsingOverhead> parsing_overhead;
  Synchronization synchronization = Synchronization::kUnspecified;
  Multiplexing multiplexing = Multiplexing::kUnspecified;
  std::optional<int64_t> window_bytes;
  std::optional<int64_t> quantum_bytes;
  LinkSharing link_sharing = LinkSharing::kUnspecified;
  std::optional<int64_t> turn_bytes;
  TransferOrder transfer_order = TransferOrder::kUnspecified;
  std::map<std::string, int32_t> transfer_priorities;  // name of a transfer -> rank, lowest first
  std::vector<int64_t> start_offsets_ns;               // one a worker
  std::vector<WorkerGroup> worker_groups;              // their counts add up to `workers`

  friend bool operator==(const Scenario&, const Scenario&) = default;
};

}  // namespace stepcast::client
