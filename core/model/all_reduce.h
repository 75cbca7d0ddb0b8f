// A job whose workers meet in collectives: how long a collective takes, and how gradients are
// fused.
#pragma once

#include <cmath>
#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "core/base/error.h"
#include "core/model/profile.h"

namespace stepcast {

// The contention of computation and communication for a GPU's threads and memory, as LIBRA models
// it: a collective that runs with more threads moves its bytes faster and slows the computation
// beside it more.
//
// Sources: Liu et al., "LIBRA", INFOCOM 2023, Eq. 5-7; NCCL 2.30.7, src/graph/tuning.cc (threads).

// The rate of a ring's transfers with r threads: gamma1 - gamma2 exp(-gamma3 r^gamma4) bytes per
// second (Eq. 6).
struct TransferRate {
  double gamma1 = 0;
  double gamma2 = 0;
  double gamma3 = 0;

  friend bool operator==(const TransferRate&, const TransferRate&) = default;
};

// Checked: with every number of threads that is asked about, rates are those of a link, and
// computation has a speed above 0 and at most 1.
struct Contention {
  double alpha1 = 1;
  double alpha2 = 0;
  TransferRate overlapped;  // while some worker computes (p)
  TransferRate alone;       // while none does (q)
  double gamma4 = 0.6;

  friend bool operator==(const Contention&, const Contention&) = default;
};

// The speed of computation beside a collective with so many threads, of what it is without one
// (1/g of Eq. 5).
inline double ComputationSpeed(const Contention& contention, int32_t threads) {
  return contention.alpha1 - contention.alpha2 * threads;
}

// Bytes per second with so many threads.
inline double BytesPerSecond(const TransferRate& rate, double gamma4, int32_t threads) {
  return rate.gamma1 - rate.gamma2 * std::exp(-rate.gamma3 * std::pow(threads, gamma4));
}

// Channels of NCCL where nobody says how many.
inline constexpr int32_t kNcclChannels = 2;

// The threads that NCCL gives to a collective of so many bytes, over all of its channels, protocol
// Simple: as many channels as have 64 bytes for each of 512 threads, one at least, whose threads
// are then halved down to 64, and a warp besides. No fewer for more bytes.
inline int32_t NcclThreads(double bytes, int32_t channels) {
  constexpr int32_t kThreads = 512;
  constexpr int32_t kLeastThreads = 64;
  constexpr int32_t kWarp = 32;
  constexpr double kBytesOfThread = 64;
  int32_t threads = kThreads;
  const auto are_too_many = [&] { return bytes < kBytesOfThread * channels * threads; };
  while (channels > 1 && are_too_many()) --channels;
  while (threads > kLeastThreads && are_too_many()) threads /= 2;
  return channels * (threads + kWarp);
}

// The algorithm of a collective: core/communication/collective_time.h has the formulas.
enum class CollectiveAlgorithm : uint8_t {
  kRing,
  kHierarchical,
  kHalvingDoubling,
  kTree,
  kMeasured,
  kGloo,
  kNccl,
};
// "RING".
const char* NameOf(CollectiveAlgorithm algorithm);

// The state that workers keep shares of, instead of the whole: ZeRO-1, -2 and -3 (FSDP).
enum class Sharding : uint8_t { kNone, kOptimizer, kGradients, kFull };

// The closeness with which a collective is simulated: as one event, or round by round.
enum class Fidelity : uint8_t { kCollapsed, kExpanded };

// A point of a benchmark of collectives.
struct MeasuredCollective {
  Collective kind = Collective::kAllReduce;
  int32_t workers = 0;     // at least 2
  int64_t size_bytes = 0;  // of the full buffer, at least 1
  double seconds = 0;      // above 0

  friend bool operator==(const MeasuredCollective&, const MeasuredCollective&) = default;
};

// Horovod's defaults (0.21 on): the fusion buffer, and from one cycle's start to the next.
inline constexpr int64_t kHorovodFusionBytes = 134'217'728;
inline constexpr double kHorovodCycleSeconds = 0.001;

// Every cycle, what is ready on all workers is sent in buffers of up to so many bytes.
struct Horovod {
  int64_t fusion_bytes = kHorovodFusionBytes;
  double cycle_seconds = kHorovodCycleSeconds;

  friend bool operator==(const Horovod&, const Horovod&) = default;
};
struct HorovodDraft {
  std::optional<int64_t> fusion_bytes;
  std::optional<double> cycle_seconds;

  friend bool operator==(const HorovodDraft&, const HorovodDraft&) = default;
};

// The machines as NCCL's tuning model knows them.
struct Nccl {
  enum class Architecture : uint8_t { kVolta, kAmpere, kHopper };
  enum class Path : uint8_t { kNvlink, kPci };

  Architecture architecture = Architecture::kVolta;
  Path intra_node_path = Path::kNvlink;
  int32_t channels = 2;
  double channel_bandwidth_bytes_per_second = 0;  // 0: the link's, over the channels
  bool amd = false;                               // else Intel's processors

  friend bool operator==(const Nccl&, const Nccl&) = default;
};

// The gradients that one all-reduce carries, by name, in graph order.
struct GradientGroup {
  std::vector<std::string> operations;
  std::optional<int32_t> threads;  // with contention; empty: AllReduce::threads

  friend bool operator==(const GradientGroup&, const GradientGroup&) = default;
};

// Every gradient of the profile in one group, in graph order.
struct GradientGroups {
  std::vector<GradientGroup> groups;

  friend bool operator==(const GradientGroups&, const GradientGroups&) = default;
};

// ByteScheduler's default credit: 4,000,000 parameters of 4 bytes.
inline constexpr int64_t kByteSchedulerCreditBytes = 16'000'000;

// Gradients by themselves, those that the next forward pass uses first before the others, so many
// bytes let in at once, and no barrier between a backward pass and the next forward one.
struct ByteScheduler {
  int64_t credit_bytes = kByteSchedulerCreditBytes;

  friend bool operator==(const ByteScheduler&, const ByteScheduler&) = default;
};
struct ByteSchedulerDraft {
  std::optional<int64_t> credit_bytes;

  friend bool operator==(const ByteSchedulerDraft&, const ByteSchedulerDraft&) = default;
};

// The latency where none is asked for, seconds a message.
// Between nodes, of TCP over a cluster's Ethernet.
inline constexpr double kTypicalLatencySeconds = 25e-6;
// Inside a node, the one that NCCL's tuning model has for a hop of a ring over NVLink, protocol
// Simple. Source: src/graph/tuning.cc, NCCL 2.30.7.
inline constexpr double kTypicalIntraNodeLatencySeconds = 3.4e-6;

// Gradients as they stand in the profile, each by itself.
struct Unfused {
  friend bool operator==(const Unfused&, const Unfused&) = default;
};

// The way of fusing that is asked for. Nothing: as recorded, or DistributedDataParallel's default.
using FusionDraft = std::variant<std::monostate, Buckets, HorovodDraft, GradientGroups,
                                 ByteSchedulerDraft, Unfused>;

// Fields as asked for: what is empty has its default.
struct AllReduceDraft {
  std::optional<CollectiveAlgorithm> algorithm;
  std::optional<double> latency_seconds;
  std::optional<int32_t> workers_per_node;
  std::optional<double> intra_node_bandwidth_bytes_per_second;
  std::optional<double> intra_node_latency_seconds;
  std::optional<double> reduction_seconds_per_byte;
  std::optional<double> launch_seconds;
  FusionDraft fusion;
  std::vector<MeasuredCollective> measured;
  std::optional<int32_t> concurrent_collectives;
  std::optional<int64_t> partition_bytes;
  std::optional<Sharding> sharding;
  std::optional<double> overlap_slowdown;
  std::optional<double> collective_slowdown;
  std::optional<Nccl> nccl;
  std::optional<Fidelity> fidelity;
  std::optional<int32_t> workers_per_rack;
  std::optional<double> rack_bandwidth_bytes_per_second;
  std::optional<Contention> contention;
  std::optional<int32_t> threads;
  std::optional<int32_t> thread_channels;  // 1 to 64

  friend bool operator==(const AllReduceDraft&, const AllReduceDraft&) = default;
};

// The fusing of gradients: as they stand in the graph; in the recorded buckets; by a rule; by
// Horovod; in given groups; not at all, by ByteScheduler.
using Fusion =
    std::variant<std::monostate, RecordedBuckets, Buckets, Horovod, GradientGroups, ByteScheduler>;

// Every worker has the model, and they meet in collectives.
struct AllReduce {
  CollectiveAlgorithm algorithm = CollectiveAlgorithm::kRing;
  double latency_seconds = 0;
  int32_t workers_per_node = 1;
  double intra_node_bandwidth_bytes_per_second = 0;
  double intra_node_latency_seconds = 0;
  double reduction_seconds_per_byte = 0;
  double launch_seconds = 0;
  Fusion fusion;
  std::vector<MeasuredCollective> measured;
  int32_t concurrent_collectives = 1;
  int64_t partition_bytes = 0;  // 0: nothing is cut
  Sharding sharding = Sharding::kNone;
  double overlap_slowdown = 1;
  // While some worker computes; not with contention, kExpanded, or several of kGloo at once.
  double collective_slowdown = 1;
  Nccl nccl;
  Fidelity fidelity = Fidelity::kCollapsed;
  int32_t workers_per_rack = 0;                // 0: all are in one
  double rack_bandwidth_bytes_per_second = 0;  // with racks: of each one's link in each direction
  std::optional<Contention> contention;        // with kRing, kCollapsed, one collective at a time
  // With contention: of what has none of its own; 0: all have, or NCCL's rule gives them.
  int32_t threads = 0;
  int32_t thread_channels = 0;  // without `threads`: of that rule; 0: all have their own

  friend bool operator==(const AllReduce&, const AllReduce&) = default;
};

// The threads of a collective of so many bytes. `of_group`: 0: its group has none of its own.
// REQUIRES: contention.
int32_t ThreadsOf(const AllReduce& job, double bytes, int32_t of_group = 0);

struct AllReduceLimits {
  double max_latency_seconds = 10;
  double max_reduction_seconds_per_byte = 1e-3;
  double max_overlap_slowdown = kMaxOverlapSlowdown;
  double max_collective_slowdown = kMaxCollectiveSlowdown;
  int32_t max_concurrent_collectives = 16;
  int32_t max_threads = 65'536;
  int64_t max_measured = 10'000;
  // Pieces that partition_bytes may make of a step's collectives.
  int64_t max_pieces = 100'000;
  // Operations of a worker's step with kExpanded.
  int64_t max_expanded_operations = 1'000'000;
  // The same times the recorded steps, each of which has its own times.
  int64_t max_expanded_times = 20'000'000;
  // Workers without gradients have nothing to meet for. A pipeline is one without, too,
  // and is refused parameter servers by itself.
  bool needs_gradients = true;
};

// Adds every fault, its path below `all_reduce.`, that is not of the number of workers.
// `bandwidth_bytes_per_second`: the scenario's, of a link between nodes.
AllReduce ResolveAllReduce(const Profile& profile, const AllReduceDraft& draft,
                           double bandwidth_bytes_per_second, FaultList& faults,
                           const AllReduceLimits& limits = {});

// True if a collective of so many workers goes over links inside nodes, as its algorithm has it.
bool UsesLinksInsideNodes(int32_t workers, const AllReduce& job);

// True if so many workers fill nodes: they are on one, or on whole ones.
bool FillsNodes(int32_t workers, const AllReduce& job);

// True if so many can meet in this way.
bool CanMeet(int32_t workers, const AllReduce& job);

// Adds a fault at `path` where so many workers cannot meet in this way.
void CheckWorkers(const char* path, int32_t workers, const AllReduce& job, FaultList& faults);

// The checks of what a scenario of collectives is given (all_reduce_checks.cc).

// Groups of gradients: the reason why a recording has none but its own, and the check of those that
// are given by name.

// True of what is summed over all workers: gradients that are all-reduced; of a profile of
// parameter servers, what its workers upload.
bool IsUploadedOrSummed(const Profile& profile, const Operation& operation);

// The reason why gradients cannot be grouped otherwise than they were recorded: the import of a
// trace knew the sizes of buckets alone, called each `bucket/B` and named no parameter. Empty: they
// can.
std::string WhyNoOtherBuckets(const Profile& profile);

// Faults unless every gradient is in one group, in graph order. `path`: of the groups. What is not
// known, or stands twice, is said of all; else what is missing; else the first that stands in
// another place.
void CheckGroups(const Profile& profile, const std::vector<GradientGroup>& groups,
                 const std::string& path, FaultList& faults);

// The number of workers whose measured points of that kind say most of `workers`: the nearest by
// ratio, the least of equals. 0: there are none.
int32_t NearestMeasured(const std::vector<MeasuredCollective>& points, Collective kind,
                        int32_t workers);

// The points by kind, workers and size, and faults for what is no measurement; none of them where
// there are more than `max_points`. `are_used`: then there must be an all-reduce.
std::vector<MeasuredCollective> CheckedPoints(std::vector<MeasuredCollective> points, bool are_used,
                                              const std::string& path, int64_t max_points,
                                              FaultList& faults);

}  // namespace stepcast
