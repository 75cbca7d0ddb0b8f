// A job whose workers meet at parameter servers: how tensors travel, and when servers pass them on.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <variant>

#include "core/base/error.h"
#include "core/model/profile.h"

namespace stepcast {

// kSummed: a parameter is downloaded when the uploads of all workers have been added up.
enum class Synchronization : uint8_t { kAsynchronous, kSynchronous, kSummed };
enum class TransferOrder : uint8_t { kGraph, kRecorded, kRandom, kReverse, kTic, kTac, kExplicit };

// The window and the quantum of round robin where neither the scenario nor the profile says them,
// as measured of gRPC 1.51 with bandwidth probing off.
inline constexpr int64_t kRoundRobinWindowBytes = 65'536;
inline constexpr int64_t kRoundRobinQuantumBytes = 1'048'576;

// The turn where the scenario does not say it: the payload of the largest segment that Linux hands
// to a queue as one, 45 packets of 1,448 bytes.
inline constexpr int64_t kTurnBytes = 65'160;

// The ways in which the streams of one worker and server share their connection.
// Every stream whole.
struct WholeStream {
  friend bool operator==(const WholeStream&, const WholeStream&) = default;
};
// Up to the window first, then the rest: whole, or in services of a quantum.
struct Window {
  int64_t bytes = 0;          // at least 1
  int64_t quantum_bytes = 0;  // 0: all the rest in one

  friend bool operator==(const Window&, const Window&) = default;
};
// Up to the window first, then services of a quantum in turn: gRPC with bandwidth probing off.
struct RoundRobin {
  int64_t window_bytes = kRoundRobinWindowBytes;    // at least 1
  int64_t quantum_bytes = kRoundRobinQuantumBytes;  // at least 1

  friend bool operator==(const RoundRobin&, const RoundRobin&) = default;
};
using Multiplexing = std::variant<WholeStream, Window, RoundRobin>;

// The ways in which workers share a server's link.
struct EqualShares {
  friend bool operator==(const EqualShares&, const EqualShares&) = default;
};
struct FirstCome {
  friend bool operator==(const FirstCome&, const FirstCome&) = default;
};
// One worker at a time sends so much.
struct Turns {
  int64_t bytes = kTurnBytes;  // at least 1

  friend bool operator==(const Turns&, const Turns&) = default;
};
using LinkSharing = std::variant<EqualShares, FirstCome, Turns>;

// The same as asked for: what is empty is as in the profile, or as stated there.
struct WindowDraft {
  std::optional<int64_t> bytes;
  std::optional<int64_t> quantum_bytes;

  friend bool operator==(const WindowDraft&, const WindowDraft&) = default;
};
struct RoundRobinDraft {
  std::optional<int64_t> window_bytes;
  std::optional<int64_t> quantum_bytes;

  friend bool operator==(const RoundRobinDraft&, const RoundRobinDraft&) = default;
};
struct TurnsDraft {
  std::optional<int64_t> bytes;

  friend bool operator==(const TurnsDraft&, const TurnsDraft&) = default;
};

struct ParameterServersDraft {
  std::optional<int32_t> servers;
  std::optional<ParsingOverhead> parsing_overhead;
  std::optional<Synchronization> synchronization;
  std::optional<std::variant<WholeStream, WindowDraft, RoundRobinDraft>> multiplexing;
  std::optional<std::variant<EqualShares, FirstCome, TurnsDraft>> link_sharing;
  std::optional<TransferOrder> transfer_order;
  std::map<std::string, int32_t> transfer_priorities;
  std::optional<int64_t> partition_bytes;

  friend bool operator==(const ParameterServersDraft&, const ParameterServersDraft&) = default;
};
// Workers that get the parameters from servers and send them gradients.
struct ParameterServers {
  int32_t servers = 1;
  ParsingOverhead parsing_overhead;
  Synchronization synchronization = Synchronization::kAsynchronous;
  Multiplexing multiplexing;
  LinkSharing link_sharing;
  TransferOrder transfer_order = TransferOrder::kGraph;
  std::map<std::string, int32_t> transfer_priorities;  // of kExplicit
  // Tensors that are larger travel in parts of so much, the last of them smaller; 0: whole.
  int64_t partition_bytes = 0;
  // The speed at which servers compute, and parse; a what-if (core/predict/what_if.h): nobody asks
  // for another than 1.
  double compute_speed_factor = 1;

  friend bool operator==(const ParameterServers&, const ParameterServers&) = default;
};
// The way in which workers share servers' links where nothing says so: in turns if the recording is
// of a real link, which takes segments from one worker after the other, else equally. On two links,
// a server's and a worker's own, every turn is simulated: then a turn is a 512th of what a step
// sends in one direction where that is more than a segment. Up to there the size of turns hardly
// matters (tests/testbed/several-servers.md).
LinkSharing UsualSharing(const Profile& profile, bool on_two_links);

struct ParameterServersLimits {
  int32_t max_parameter_servers = 256;
  // Services after the first, of all transfers of a step, where there is a quantum; and parts,
  // where tensors are cut.
  int64_t max_turns = 1'000'000;
};

// The workers' links, as far as servers care: whether some are asked for, and slower than others.
struct WorkerLinks {
  bool are_given = false;
  bool are_slow = false;
};

// Adds every fault, its path below `parameter_servers.`.
ParameterServers ResolveParameterServers(const Profile& profile, const ParameterServersDraft& asked,
                                         const WorkerLinks& links,
                                         const ParameterServersLimits& limits, FaultList& faults);

}  // namespace stepcast
