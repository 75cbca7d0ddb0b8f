// The way of a worker between joint operations, where it is fixed but for when those end.
//
// The start of an operation, where the graph fixes the order of all on every stream, is the
// latest of some ends, whatever the others do. What waits for no joint operation is then the same
// for every step that repeats a recorded one, and the rest is a few nodes: operations that follow
// each other on a stream and wait for nothing else in between. So a worker's step costs its joint
// operations and nodes, not its operations.
// Threads: immutable once made.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "core/base/time.h"
#include "core/engine/job_graph.h"
#include "core/engine/program.h"

namespace stepcast {

class JointPlan {
 public:
  // The end of a joint operation, by its position in the step, or of a node.
  struct Input {
    bool is_joint = false;
    int32_t index = 0;
  };
  // The latest of some inputs, and of operations that wait for no joint one.
  struct Waits {
    std::vector<Input> inputs;
    std::vector<OpIndex> early;
  };
  struct Node {
    Waits waits;
    std::vector<OpIndex> ops;  // one after the other, without a gap
  };
  // Empty: the order on a stream depends on when joint operations end. REQUIRES: a program with
  // joint operations and without links. Cost: O(n log n) in operations and dependencies.
  static std::optional<JointPlan> Make(const Program& program, const JointWork& joint);

  const std::vector<Node>& nodes() const { return nodes_; }
  // Nodes of each stream, in the order in which they run.
  const std::vector<std::vector<int32_t>>& nodes_of_streams() const { return nodes_of_streams_; }
  const std::vector<Waits>& joints() const { return joints_; }  // by position
  const Waits& step_end() const { return step_end_; }
  // True if no joint operation waits for another one, or for a node.
  bool JointsAreEarly() const {
    return std::all_of(joints_.begin(), joints_.end(),
                       [](const Waits& waits) { return waits.inputs.empty(); });
  }

 private:
  friend class JointPlanner;
  friend class JointTable;

  std::vector<OpIndex> early_;  // operations that wait for no joint one, in an order that can run
  std::vector<std::vector<OpIndex>> before_early_;  // parallel: what each waits for, and the one
                                                    // before it on its stream
  std::vector<Node> nodes_;
  std::vector<Waits> joints_;
  Waits step_end_;
  std::vector<std::vector<int32_t>> nodes_of_streams_;
};

// The lengths and instants of a plan's recorded steps on workers of some speeds, from a step's
// begin. A row is one recorded step at one speed.
//
// Memory: some numbers an operation and row. Threads: immutable once made.
class JointTable {
 public:
  using Stretch = std::pair<Span, Span>;  // begin and end

  // One row a recorded step for each of the speeds, speed by speed. `whole`: durations are in whole
  // nanoseconds, so that rows may be scaled.
  JointTable(const JointPlan& plan, const Program& program, const std::vector<double>& speeds,
             bool whole = false);
  // True if all times are in whole nanoseconds.
  bool is_whole() const { return is_whole_; }

  // By row: the length of a node; when a node, the step's end and a joint operation may be at the
  // earliest, by the early operations they wait for.
  const Span* node_lengths(size_t node) const { return &node_lengths_[node * rows_]; }
  const Span* node_earliest(size_t node) const { return &node_earliest_[node * rows_]; }
  const Span* end_earliest() const { return end_earliest_.data(); }
  Span joint_earliest(size_t position, size_t row) const {
    return joint_earliest_[row * joints_ + position];
  }
  // The earliest times of all joint operations of a row, by position.
  const Span* joints_earliest(size_t row) const { return &joint_earliest_[row * joints_]; }
  // The least of a joint operation and those behind it.
  const Span* rest_earliest(size_t position) const { return &rest_earliest_[position * rows_]; }
  // By row: computation of the whole step on that stream.
  const Span* work(size_t stream) const { return &work_[stream * rows_]; }

  // Early computation, on any stream: merged, ascending. Of one stream it has no gaps.
  const std::vector<Stretch>& computing(size_t row) const { return computing_[row]; }
  // By row: its end.
  const Span* early_end() const { return early_end_.data(); }
  // Early computation of one stream: begins and lengths.
  const std::vector<Stretch>& early(size_t row, size_t stream) const {
    return early_[row * streams_ + stream];
  }

 private:
  void AddRow(const JointPlan& plan, const Program& program, int32_t recorded, double speed,
              size_t row);

  const size_t streams_;
  const size_t rows_;
  const size_t joints_;
  bool is_whole_;
  std::vector<Span> node_lengths_;
  std::vector<Span> node_earliest_;
  std::vector<Span> joint_earliest_;  // by row, then position
  std::vector<Span> rest_earliest_;
  std::vector<Span> end_earliest_;
  std::vector<Span> work_;
  std::vector<Span> early_end_;
  std::vector<std::vector<Stretch>> computing_;  // by row
  std::vector<std::vector<Stretch>> early_;      // by row and stream
};

// The part that runs of one program have in common, whatever the number of workers and their links.
struct PreparedJoint {
  std::optional<JointPlan> plan;    // empty: see JointPlan::Make
  std::optional<JointTable> table;  // of the plan, at the recorded speed
};

// REQUIRES, cost: as JointPlan::Make and JointTable.
PreparedJoint PrepareJoint(const Program& program, const JointWork& joint);

}  // namespace stepcast
