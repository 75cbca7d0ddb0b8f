// The time that a collective takes, by each of the algorithms of a scenario.
//
// Below, S: bytes of the full buffer on each worker; W workers, g to a node, N = W / g nodes; L, B:
// latency and bandwidth of a link between nodes (of the slowest worker's, where they differ, and of
// what racks leave of it), Li, Bi inside one; c: seconds to add a received byte.
// Sources: Patarasuk and Yuan, "Bandwidth optimal all-reduce algorithms", JPDC 2009 (ring); Thakur
// et al., IJHPCA 2005 (halving and doubling); BlueConnect, SysML 2019 (hierarchical); Sanders et
// al., Parallel Computing 2009 (double binary tree); NCCL 2.30.7, src/graph/tuning.cc; gloo's
// allreduce.cc. With halving and doubling an all-reduce begins with the nearest (MPICH 4, gloo), a
// reduce-scatter with the farthest.
// Threads: immutable; share it freely.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/base/time.h"
#include "core/model/scenario.h"
#include "core/network/message_link.h"

namespace stepcast {

// The links of racks to the spine, as collectives of several algorithms share them.
//
// Workers stand in racks in their order. In each direction a rack has one link, which the messages
// that leave it, or come into it, at the same time share equally. A message goes at the rate of its
// workers' link, or at its share of the fullest rack's link, whichever is less.
// Threads: immutable; share it freely.

class RackLinks {
 public:
  // `members`: workers or nodes, which stand in racks of `per_rack`. 0: all are in one rack.
  RackLinks(int32_t members, int32_t per_rack, double bytes_per_second)
      : members_(members), per_rack_(per_rack), bytes_per_second_(bytes_per_second) {}
  // The racks of a scenario's workers. REQUIRES: it was resolved, and is of collectives.
  explicit RackLinks(const Scenario& scenario)
      : RackLinks(scenario.workers, scenario.all_reduce().workers_per_rack,
                  scenario.all_reduce().rack_bandwidth_bytes_per_second) {}

  bool are_several() const { return per_rack_ > 0 && members_ > per_rack_; }

  // Bytes per second of a message whose workers' links have `link`, 1 or more, in each pattern.

  // A ring: one message at a time leaves each rack.
  double OfRing(double link) const {
    return are_several() ? std::min(link, bytes_per_second_) : link;
  }
  // Pairs whose numbers differ by the bit `distance`, which all exchange at once. O(members).
  double OfPairs(double link, int32_t distance) const;
  // A double binary tree, each of which has half of the bytes: the two messages that an inner
  // member takes at once, as one. O(members). The trees are NCCL's (src/graph/trees.cc): the second
  // is the first one mirrored, or, with an odd number of members, shifted by one.
  double OfDoubleTree(double link) const;

 private:
  int32_t RackOf(int32_t member) const { return member / per_rack_; }

  int32_t members_;
  int32_t per_rack_;
  double bytes_per_second_;
};

// The parts of a collective's time, one after the other: T = latencies L + sent_bytes / B +
// added_bytes c.
struct CollectiveParts {
  double latencies = 0;
  double sent_bytes = 0;
  double added_bytes = 0;

  double Seconds(double latency, double seconds_per_byte, double addition) const {
    return latencies * latency + sent_bytes * seconds_per_byte + added_bytes * addition;
  }
};
// Parts of RING, with links that are all alike.
CollectiveParts RingParts(Collective kind, double bytes, double workers);
// Parts of GLOO, with links that are all alike: the critical path of its messages, which depends on
// how long each part takes. Within ticks of CollectiveTimes. REQUIRES: 1 < workers <= 1e6.
CollectiveParts GlooParts(Collective kind, int64_t bytes, int32_t workers, double latency,
                          double seconds_per_byte, double addition);
// Rounded to the nearest tick; kEndOfTime's ticks where it is longer. REQUIRES: seconds >= 0.
Span SpanOf(double seconds);

// The link of a ring as fitted to measured collectives: least squares of relative errors.
struct FittedRing {
  double latency_seconds = 0;
  double bandwidth_bytes_per_second = 0;
};
// REQUIRES: not empty; every point is valid.
FittedRing FitRing(const std::vector<MeasuredCollective>& points);

// NCCL's choice for one collective.
struct NcclChoice {
  enum class Algorithm : uint8_t { kTree, kRing };
  enum class Protocol : uint8_t { kLl, kLl128, kSimple };

  Algorithm algorithm = Algorithm::kRing;
  Protocol protocol = Protocol::kSimple;
  double seconds = 0;
};
// The time of an all-reduce by that algorithm and protocol, by NCCL's tuning model, in seconds;
// infinite where it would not use them. REQUIRES: workers > 1.
double NcclSeconds(const Scenario& scenario, int64_t bytes, NcclChoice::Algorithm algorithm,
                   NcclChoice::Protocol protocol);
// The one that takes the least.
NcclChoice NcclBest(const Scenario& scenario, Collective kind, int64_t bytes);

// The times of a collective that contends with computation, if some worker computes all along, and
// if none does.
struct ContendingTimes {
  Span overlapped;
  Span alone;

  Span least() const { return std::min(overlapped, alone); }
};

class CollectiveTimes {
 public:
  // REQUIRES: the scenario was resolved, and is of collectives.
  explicit CollectiveTimes(const Scenario& scenario);
  CollectiveTimes(const CollectiveTimes&) = delete;
  CollectiveTimes& operator=(const CollectiveTimes&) = delete;

  // launch_seconds and what the algorithm takes, of a collective that has the links to itself; with
  // contention the least that it takes. `threads`: 0: the scenario's.
  Span TimeOf(Collective kind, int64_t bytes, int32_t threads = 0) const;
  // A ring's at the rates with so many threads. REQUIRES: the scenario has contention.
  ContendingTimes ContendingTimesOf(Collective kind, int64_t bytes, int32_t threads = 0) const;
  // The same without launch_seconds, in seconds; 0 with one worker. REQUIRES: no contention.
  double SecondsOf(Collective kind, int64_t bytes) const;
  // With GLOO: the messages that the links share. Nothing with one worker.
  RingMessages MessagesOf(Collective kind, int64_t bytes) const;
  Span launch() const { return launch_; }

 private:
  // A ring's time with every round at its slowest hop.
  double RingSeconds(Collective kind, double bytes, double workers, double latency,
                     double bandwidth) const;
  double FlatRing(Collective kind, double bytes) const;
  double Hierarchical(Collective kind, double bytes) const;
  double HalvingDoubling(Collective kind, double bytes) const;
  double Tree(Collective kind, double bytes) const;
  double Measured(Collective kind, int64_t bytes) const;

  Scenario scenario_;
  const AllReduce& job_;
  int32_t workers_;
  bool on_one_node_;
  double latency_;  // of the links that all of a node's neighbours are reached by
  RackLinks racks_;
  double bandwidth_;                 // of the links likewise, as a ring has them
  double tree_bandwidth_ = 0;        // as a double binary tree has them
  std::vector<double> by_distance_;  // with HALVING_DOUBLING and racks: of pairs 1, 2, 4 .. apart
  Span launch_;
  std::optional<FittedRing> fitted_;
};

}  // namespace stepcast
