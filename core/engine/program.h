// One step of one worker as the engine runs it: operations on lanes, in arrays.
//
// A lane is one of a worker's processors or connections and runs one chunk at a time. The engine
// knows lanes by role, not what they stand for: core/communication writes programs. Threads:
// immutable after Make; share it freely between runs. Cost: about 40 bytes an operation and
// dependency, and 8 bytes an operation and recorded step.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "absl/status/statusor.h"

#include "core/base/index.h"
#include "core/base/stop_check.h"
#include "core/base/time.h"

namespace stepcast {

// Index of an operation of a Program; its order is the graph order that breaks ties.
using OpIndex = int32_t;
// Index of a lane of a worker.
using LaneIndex = int32_t;

// The work that a lane does for its worker.
enum class LaneRole : uint8_t {
  kCompute,  // a processor whose speed is the worker's
  kHost,     // a processor beside it, which communication does not slow down
  kHub,      // a processor at the far end of links, which works for this worker alone
  kJoint,    // what all workers do together: see JointWork
  kLink,     // a connection: its transfers share the links of a network with other workers'
};

struct LaneSpec {
  LaneRole role = LaneRole::kCompute;
  int32_t index = 0;     // among the lanes of its role, of kLink: of its network; equal at kHub and
                         // the links that lead there
  int32_t network = -1;  // of kLink: index of JobGraph::networks

  friend bool operator==(const LaneSpec&, const LaneSpec&) = default;
};

// The lanes of every worker of a job.
class Lanes {
 public:
  Lanes() = default;
  // REQUIRES: roles ascend; links of one network after the other, by index from 0.
  explicit Lanes(std::vector<LaneSpec> specs);

  LaneIndex count() const { return static_cast<LaneIndex>(specs_.size()); }
  const LaneSpec& operator[](LaneIndex lane) const { return specs_[Index(lane)]; }
  // Lanes below this compute at the worker's speed.
  LaneIndex after_compute() const { return after_compute_; }
  bool IsCompute(LaneIndex lane) const { return lane < after_compute_; }
  // Lanes from this to first_link() are joint.
  LaneIndex first_joint() const { return first_joint_; }
  bool IsJoint(LaneIndex lane) const { return lane >= first_joint_ && lane < first_link_; }
  // Lanes below this are processors or joint, those from it on are links.
  LaneIndex first_link() const { return first_link_; }
  bool IsLink(LaneIndex lane) const { return lane >= first_link_; }

  int32_t networks() const { return static_cast<int32_t>(first_of_.size()); }
  LaneIndex FirstOf(int32_t network) const { return first_of_[Index(network)]; }
  int32_t CountOf(int32_t network) const {
    return (network + 1 < networks() ? FirstOf(network + 1) : count()) - FirstOf(network);
  }

 private:
  std::vector<LaneSpec> specs_;
  LaneIndex after_compute_ = 0;
  LaneIndex first_joint_ = 0;
  LaneIndex first_link_ = 0;
  std::vector<LaneIndex> first_of_;  // by network
};

// The work of a transfer, as the time the link takes for it alone: what each of its services
// carries.
struct TransferWork {
  Span first;            // the whole, where there is but one service
  Span middle;           // each service between the first and the last
  Span last;             // the last service, of several
  int32_t services = 1;  // at least 1

  // REQUIRES: 0 <= service < services.
  Span OfService(int32_t service) const {
    return service == 0 ? first : service + 1 < services ? middle : last;
  }
  // Saturates at kEndOfTime.
  Span Total() const;

  friend bool operator==(const TransferWork&, const TransferWork&) = default;
};

// An operation of each worker that waits for operations of all of them, its own among them: step by
// step, or for those of the step before.
struct Gathering {
  OpIndex after = 0;
  std::vector<OpIndex> befores;  // at least one; ascending
  // True: of the step before, so that the first step waits for nothing.
  bool of_last_step = false;

  friend bool operator==(const Gathering&, const Gathering&) = default;
};

// The parts of a Program; lists without a note are parallel, by OpIndex.
struct ProgramDraft {
  struct Dependency {
    OpIndex before = 0;
    OpIndex after = 0;
  };

  Lanes lanes;
  std::vector<LaneIndex> lane;
  std::vector<int32_t> source;
  std::vector<int64_t> size_bytes;
  std::vector<TransferWork> work;
  std::vector<Dependency> dependencies;  // ascending by `after`; no cycle
  // By `after`, each at most once; what it waits for in its own step comes before it on every way.
  std::vector<Gathering> gatherings;
  int32_t step_count = 0;
  std::vector<Span> durations;  // step-major
};

class Program {
 public:
  // Linear in the draft's size. Failure: what `stop` returns.
  static absl::StatusOr<Program> Make(ProgramDraft draft, StopCheck stop);

  OpIndex size() const { return static_cast<OpIndex>(lane_.size()); }
  const Lanes& lanes() const { return lanes_; }
  // Number of steps to sample from.
  int32_t step_count() const { return step_count_; }

  LaneIndex lane(OpIndex op) const { return lane_[Index(op)]; }
  bool IsTransfer(OpIndex op) const { return lanes_.IsLink(lane(op)); }
  // The profile's operation it comes from; a parsing overhead comes from its transfer.
  int32_t source(OpIndex op) const { return source_[Index(op)]; }
  bool IsParsing(OpIndex op) const {
    return op > 0 && source(op) == source(op - 1) && IsTransfer(op - 1) && !IsTransfer(op) &&
           !lanes_.IsJoint(lane(op));
  }

  // The operations that wait for it, ascending.
  std::span<const OpIndex> dependents(OpIndex op) const {
    const OpIndex* const all = dependents_.data();
    return {all + first_dependent_[Index(op)], all + first_dependent_[Index(op) + 1]};
  }
  // The number of operations it waits for.
  int32_t dependency_count(OpIndex op) const { return dependency_count_[Index(op)]; }
  // The same for all, by OpIndex.
  const std::vector<int32_t>& dependency_counts() const { return dependency_count_; }
  // The operations that wait for all workers of a job that has several.
  const std::vector<Gathering>& gatherings() const { return gatherings_; }
  // Operations that wait for nothing, ascending.
  const std::vector<OpIndex>& roots() const { return roots_; }
  // The number of operations on a lane.
  int32_t operations_on(LaneIndex lane) const { return operations_on_[Index(lane)]; }

  // REQUIRES: IsTransfer(op).
  const TransferWork& work(OpIndex op) const { return work_[Index(op)]; }
  int64_t size_bytes(OpIndex op) const { return size_bytes_[Index(op)]; }
  // The most services that a transfer takes.
  int32_t most_services() const { return most_services_; }
  // Chunks of a step: services of transfers, and computations.
  int64_t chunk_count() const { return chunk_count_; }
  // The duration of a computation in a step. 0 for a transfer.
  Span duration(int32_t step, OpIndex op) const {
    return duration_[static_cast<size_t>(step) * lane_.size() + Index(op)];
  }
  // The longest step's operations one after the other, in ticks. May be past what a Span holds.
  double longest_step_ticks() const { return longest_step_ticks_; }
  // True if every computation takes whole nanoseconds.
  bool is_whole() const { return is_whole_; }

  // The same step with other durations. REQUIRES: step-major, of at least one step.
  Program WithDurations(std::vector<Span> durations) const;

 private:
  explicit Program(ProgramDraft draft);

  absl::Status Connect(const std::vector<ProgramDraft::Dependency>& dependencies, StopCheck stop);
  absl::Status MeasureSteps(StopCheck stop);

  Lanes lanes_;
  int32_t step_count_;
  std::vector<LaneIndex> lane_;
  std::vector<int32_t> source_;
  std::vector<int64_t> size_bytes_;
  std::vector<TransferWork> work_;
  std::vector<Span> duration_;  // step-major
  std::vector<OpIndex> dependents_;
  std::vector<int32_t> first_dependent_;  // size() + 1 entries
  std::vector<int32_t> dependency_count_;
  std::vector<OpIndex> roots_;
  std::vector<Gathering> gatherings_;
  std::vector<int32_t> operations_on_;  // by lane
  int32_t most_services_ = 1;
  int64_t chunk_count_ = 0;
  double longest_step_ticks_ = 0;
  bool is_whole_ = true;
};

// A recorded computation on a worker `speed` times as fast as the recorded one: not shortened to
// nothing, so that no step can take no time, and not past the end of time. REQUIRES: speed > 0.
inline Span AtSpeed(Span recorded, double speed) {
  if (speed == 1 || recorded.ticks == 0) return recorded;
  return {std::llround(std::clamp(static_cast<double>(recorded.ticks) / speed, 1.0,
                                  static_cast<double>(kEndOfTime.ticks)))};
}

}  // namespace stepcast
