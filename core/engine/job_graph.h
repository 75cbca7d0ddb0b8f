// A training job as the engine sees it: the programs of its workers, the networks they share, and
// where workers meet.
//
// core/communication writes it from a profile and a scenario; the engine knows no more than what
// stands here. Threads: immutable once written; share it freely between runs.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "core/base/time.h"
#include "core/engine/program.h"
#include "core/network/link_level.h"
#include "core/network/message_link.h"
#include "core/network/path_network.h"

namespace stepcast {

struct PreparedJoint;

// Index of JobGraph::groups.
using GroupIndex = int32_t;

// The links of a network, and how they are shared.
struct NetworkSpec {
  enum class Sharing : uint8_t { kEqual, kFirstCome, kTurns };

  Sharing sharing = Sharing::kEqual;  // of the hub links
  Span turn;  // with kTurns: the work that a link does for one flow at a time, above 0
  bool from_workers = false;  // outbound: flows cross their worker's link before the hub's
  // By worker: what its own link carries, in 1/LinkLevel::kUnit of a hub's; empty: it never binds.
  std::vector<int64_t> worker_capacities;
  // One for each worker; those of hubs that a worker's link can carry all of never bind.
  std::vector<int64_t> CapacitiesOf(int32_t workers, int32_t hubs) const {
    std::vector<int64_t> capacities = worker_capacities;
    capacities.resize(Index(workers), LinkLevel::kUnit * hubs);
    return capacities;
  }
  // With kEqual, instead of hubs and workers' own links: links of any capacity, and the path of
  // each lane of the network, worker by worker.
  std::vector<PathNetwork::Link> links;
  std::vector<FlowPath> paths;
};

// The order in which a link serves transfers that have not been served yet.
struct Ranking {
  enum class Rule : uint8_t {
    kArrival,   // first come, first served
    kFixed,     // `ranks` by OpIndex
    kRecorded,  // `ranks` by recorded step, then by OpIndex
    kShuffled,  // a random order of all transfers, drawn anew for each step of each worker
  };

  static constexpr int32_t kUnranked = INT32_MAX;

  Rule rule = Rule::kArrival;
  std::vector<int32_t> ranks;  // lowest first; kUnranked: served behind those that have one
};

// A step's end, which the worker's next step waits for, in the place of an operation of a Coupling.
inline constexpr OpIndex kStepEnd = -1;

// An operation that starts when it is ready on every member of the group, each time; kStepEnd: the
// members' steps begin together. An operation is coupled in one group a worker.
struct Coupling {
  OpIndex op = kStepEnd;
  GroupIndex group = 0;
};

// An operation of worker (w + worker_offset) mod n that `after` of worker w waits for, step by
// step.
struct PeerEdge {
  OpIndex before = 0;
  OpIndex after = 0;
  int32_t worker_offset = 1;
};

// The speeds at which a joint operation and computation go on beside each other: `residual` /
// (`flows` x kUnit), above 0 and at most 1.
struct JointPace {
  LinkLevel computation;  // of every worker's kCompute lanes while the operation is under way
  LinkLevel beside_computation;  // of the operation while one of them, of any worker, is at work
  LinkLevel alone;               // of it while none is

  const LinkLevel& operation(bool computes) const { return computes ? beside_computation : alone; }
};

// Joint operations that are gathered while the job runs, instead of in a fixed order.
//
// The first cycle begins with the run, the next one `interval` after the begin of the one before,
// or when all that began in that has ended, if that is later. A cycle takes what is ready on every
// worker once nothing else happens at its first instant, in the order in which it became so, that
// of an instant in graph order, and carries it in groups, one after the other. A group is the next
// operation and those after it that can go along: of its class, as long as they come to
// `most_bytes` together. One that cannot is passed over if the group and all that was passed over
// come to `most_bytes` at most, and otherwise ends the group; what was passed over comes next.
struct JointCycles {
  Span interval;  // above 0
  int64_t most_bytes = 0;
  std::vector<int64_t> bytes;    // parallel to JointWork::ops
  std::vector<int32_t> classes;  // likewise: what may be in one group; below 0: goes alone
  // The length of a group with so many bytes that begins with the operation of that position. A
  // pure function, of any thread.
  std::function<Span(size_t position, int64_t bytes)> length_of;
  // Its pace, likewise; null: it goes on at one speed.
  std::function<JointPace(size_t position, int64_t bytes)> pace_of;
};

// Joint operations that are let in by priority, instead of in a fixed order.
//
// When all else of an instant has happened, what is ready on every worker is let in, the lowest
// rank first, of equal ranks the one that was ready first, of those the first in graph order; it is
// let in if it and all that was let in and has not ended come to `credit_bytes` at most, or that is
// nothing. What is let in begins in the order in which it was, as soon as there is room. A step
// that begins on one worker while another is still in the one before changes nothing of that.
struct JointPriorities {
  std::vector<int32_t> ranks;  // parallel to JointWork::ops
  std::vector<int64_t> bytes;  // likewise
  int64_t credit_bytes = 0;    // above 0
};

// Operations that all workers carry out together, on the lanes of role kJoint: one sequence over
// all steps. The next one begins when it is ready on every worker, those before it have begun, and
// fewer than `concurrent` are under way; it begins and ends on all workers at once. The
// programs of a job with joint operations have the same operations, on the same lanes.
struct JointWork {
  std::vector<OpIndex> ops;   // of a step, ascending: the order in which they begin
  std::vector<Span> lengths;  // parallel to ops; with messages: what goes before the first one;
                              // with cycles: of each alone
  std::vector<RingMessages> messages;  // parallel to ops, or empty: they share no link
  int32_t concurrent = 1;              // as many as there are lanes of role kJoint
  // Parallel to ops, or empty: each goes on at a speed of its own, and would last `lengths` if that
  // were 1 all along. REQUIRES, here and of JointCycles::pace_of: neither messages nor pairs; the
  // job has neither networks nor an overlapped_speed. Here: no cycles; where concurrent is not 1
  // all have the same pace.
  std::vector<JointPace> paces;
  // PrepareJoint of the program and these operations, for whoever runs it often; null: each run
  // makes its own.
  std::shared_ptr<const PreparedJoint> prepared;
  // Without messages; there are as many joint lanes as ops, and those of a group are under way at
  // once, on the first ones.
  std::optional<JointCycles> cycles;
  // Without cycles and pairs.
  std::optional<JointPriorities> priorities;
  // True: the first two of `ops` begin and end one thing that goes on in between, and so on, for
  // what is said of when it was ready, under way and over. REQUIRES: neither messages nor cycles.
  bool in_pairs = false;

  bool has_paces() const {
    return !paces.empty() || (cycles.has_value() && cycles->pace_of != nullptr);
  }
};

// The recorded step that a worker's step repeats.
enum class StepDrawing : uint8_t {
  kIndependent,  // drawn with replacement, by each worker for itself
  kJoint,        // the same for the k-th step of every worker
  kReplay,       // one after the other
};

struct JobGraph {
  // All have the same lanes and the same number of recorded steps.
  std::vector<std::shared_ptr<const Program>> programs;
  std::vector<int32_t> program_of_worker;
  std::vector<std::shared_ptr<const Ranking>> rankings;  // by program; empty: all kArrival
  std::vector<double> compute_speeds;                    // by worker, above 0; empty: 1
  std::vector<NetworkSpec> networks;                     // shared alike, or all with paths
  std::vector<std::vector<int32_t>> groups;              // of workers, ascending
  std::vector<Coupling> couplings;
  std::vector<PeerEdge> peer_edges;
  std::vector<Gathering> gatherings;  // of operations that every program has
  JointWork joint;
  StepDrawing drawing = StepDrawing::kIndependent;
  // The speed of a worker's kCompute lanes while a transfer of its own, or a joint operation, is
  // under way, of what it is
  // without: `residual` / (`flows` x kUnit), above 0 and at most 1.
  LinkLevel overlapped_speed{.residual = LinkLevel::kUnit, .flows = 1};

  int32_t workers() const { return static_cast<int32_t>(program_of_worker.size()); }
  const Program& program(int32_t worker) const {
    return *programs[Index(program_of_worker[Index(worker)])];
  }
  const Lanes& lanes() const { return programs.front()->lanes(); }
  int32_t step_count() const { return programs.front()->step_count(); }
  double compute_speed(int32_t worker) const {
    return compute_speeds.empty() ? 1 : compute_speeds[Index(worker)];
  }
  bool slows_computation() const {
    return joint.has_paces() ||
           !(overlapped_speed == LinkLevel{.residual = LinkLevel::kUnit, .flows = 1});
  }
  // True if workers are alike but for their speed, compute at one rate, and meet nowhere but in
  // networks and at the ends of their steps.
  bool StepsStandAlone() const;
};

inline bool JobGraph::StepsStandAlone() const {
  const bool meets_at_ends =
      std::all_of(couplings.begin(), couplings.end(),
                  [](const Coupling& coupling) { return coupling.op == kStepEnd; });
  const bool draws_apart = drawing != StepDrawing::kJoint;
  return programs.size() == 1 && meets_at_ends && peer_edges.empty() && gatherings.empty() &&
         joint.ops.empty() && draws_apart && !slows_computation();
}

}  // namespace stepcast
