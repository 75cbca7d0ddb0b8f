// The graph of one training step as the engine runs it: operations on lanes, in arrays.
//
// Made from a profile and a scenario (ICPE 2020, 3.2.1, 3.4 and 5): every transfer's work is its
// size at the scenario's bandwidth, its parsing overhead is an operation of its own on the receiver
// right after it, and parameters are placed on the scenario's servers. A lane is one worker's
// connection or processor: it runs one chunk at a time. The engine knows lanes and links, not what
// they stand for. Threads: immutable after Build; share it freely between runs. Cost: about 40
// bytes an operation and dependency, and 8 bytes a recorded computation.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "absl/status/statusor.h"

#include "core/base/stop_check.h"
#include "core/base/time.h"
#include "core/model/profile.h"
#include "core/model/scenario.h"

namespace stepcast {

// Index of an operation of a StepGraph; its order is the graph order that breaks ties.
using OpIndex = int32_t;
// Index of one worker's lane.
using LaneIndex = int32_t;

// Where the lanes of one worker lie, given the number of servers.
struct LaneMap {
  int32_t servers = 1;

  static constexpr LaneIndex kWorker = 0;
  LaneIndex Server(int32_t server) const { return 1 + server; }
  LaneIndex Downlink(int32_t server) const { return 1 + servers + server; }
  LaneIndex Uplink(int32_t server) const { return 1 + 2 * servers + server; }

  LaneIndex count() const { return 1 + 3 * servers; }
  // Lanes below this are processors of their own; those from it on are connections that share
  // links.
  LaneIndex first_connection() const { return 1 + servers; }
  bool IsConnection(LaneIndex lane) const { return lane >= first_connection(); }
  // The kind of a lane, and the server at its other end (0 for kWorker).
  Resource KindOf(LaneIndex lane) const;
  int32_t ServerOf(LaneIndex lane) const { return lane == kWorker ? 0 : (lane - 1) % servers; }
};

// The work of a transfer, as the time the link takes for it alone: what each of its services
// carries.
struct TransferWork {
  Span first;            // the whole, where there is but one service
  Span turn;             // each service between the first and the last
  Span last;             // where there are several
  int32_t services = 1;  // at least 1

  // REQUIRES: 0 <= service < services.
  Span OfService(int32_t service) const {
    return service == 0 ? first : service + 1 < services ? turn : last;
  }
  // Saturates at kEndOfTime.
  Span Total() const;

  friend bool operator==(const TransferWork&, const TransferWork&) = default;
};

class StepGraph {
 public:
  // A single step in which every operation takes its least recorded time (TicTac, 5), instead of
  // the recorded steps.
  enum class Times : uint8_t { kRecorded, kLeast };

  // Depends on the scenario's servers, bandwidth, parsing overhead and multiplexing only, not on
  // its workers. Linear in the profile's size. REQUIRES: scenario was resolved for this profile.
  static StepGraph Build(const Profile& profile, const Scenario& scenario,
                         Times times = Times::kRecorded);
  // The same. Failure: what `stop` returns.
  static absl::StatusOr<StepGraph> Build(const Profile& profile, const Scenario& scenario,
                                         Times times, StopCheck stop);

  OpIndex size() const { return static_cast<OpIndex>(lane_.size()); }
  const LaneMap& lanes() const { return lanes_; }
  // Number of steps to sample from.
  int32_t step_count() const { return step_count_; }

  LaneIndex lane(OpIndex op) const { return lane_[Index(op)]; }
  bool IsTransfer(OpIndex op) const { return lanes_.IsConnection(lane(op)); }
  // The profile's operation it comes from; a parsing overhead comes from its transfer.
  int32_t source(OpIndex op) const { return source_[Index(op)]; }
  bool IsParsing(OpIndex op) const { return op > 0 && source(op) == source(op - 1); }

  // What waits for it, ascending.
  std::span<const OpIndex> dependents(OpIndex op) const {
    const OpIndex* const all = dependents_.data();
    return {all + first_dependent_[Index(op)], all + first_dependent_[Index(op) + 1]};
  }
  // How many operations it waits for.
  int32_t dependency_count(OpIndex op) const { return dependency_count_[Index(op)]; }
  // The same for all, by OpIndex.
  const std::vector<int32_t>& dependency_counts() const { return dependency_count_; }
  // Operations that wait for nothing, ascending.
  const std::vector<OpIndex>& roots() const { return roots_; }
  // How many operations run on a lane.
  int32_t operations_on(LaneIndex lane) const { return operations_on_[static_cast<size_t>(lane)]; }

  // REQUIRES: IsTransfer(op).
  const TransferWork& work(OpIndex op) const { return work_[Index(op)]; }
  int64_t size_bytes(OpIndex op) const { return size_bytes_[Index(op)]; }
  // The most services that a transfer takes.
  int32_t most_services() const { return most_services_; }
  // Chunks of a step: services of transfers, and computations.
  int64_t chunk_count() const { return chunk_count_; }
  // How long a computation takes in a step. 0 for a transfer.
  Span duration(int32_t step, OpIndex op) const {
    return duration_[static_cast<size_t>(step) * lane_.size() + Index(op)];
  }
  // The longest step's operations one after the other, in ticks. May be past what a Span holds.
  double longest_step_ticks() const { return longest_step_ticks_; }
  // Of kRecorded: when a transfer ended in a recorded step, for the order RECORDED.
  int64_t recorded_end_ns(int32_t step, OpIndex op) const;

 private:
  friend class StepGraphBuilder;

  explicit StepGraph(const Profile& profile) : profile_(profile) {}
  static size_t Index(OpIndex op) { return static_cast<size_t>(op); }

  LaneMap lanes_;
  int32_t step_count_ = 0;
  std::vector<LaneIndex> lane_;
  std::vector<int32_t> source_;
  std::vector<OpIndex> dependents_;
  std::vector<int32_t> first_dependent_;  // size() + 1 entries
  std::vector<int32_t> dependency_count_;
  std::vector<OpIndex> roots_;
  std::vector<int32_t> operations_on_;  // by lane
  std::vector<TransferWork> work_;
  int32_t most_services_ = 1;
  int64_t chunk_count_ = 0;
  std::vector<int64_t> size_bytes_;
  std::vector<Span> duration_;  // step-major
  double longest_step_ticks_ = 0;
  Profile profile_;  // for recorded_end_ns
};

}  // namespace stepcast
