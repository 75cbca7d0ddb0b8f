// The way of a worker between joint operations, where it is fixed but for when those end.
//
// The start of an operation, where the graph fixes the order of all on every stream, is the
// latest of some ends, whatever the others do. What waits for no joint operation is then the same
// for every step that repeats a recorded one, and the rest is a few nodes: operations that follow
// each other on a stream and wait for nothing else in between. So a worker's step costs its joint
// operations and nodes, not its operations.
// Threads: immutable once made.
#pragma once

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
  // One thing of a step after the other, so that each comes after all it waits for, and a joint
  // operation as early as that allows.
  struct Instruction {
    bool is_joint = false;
    int32_t index = 0;
  };

  // Empty: the order on a stream depends on when joint operations end. REQUIRES: a program with
  // joint operations and without links. Cost: O(n log n) in operations and dependencies.
  static std::optional<JointPlan> Make(const Program& program, const JointWork& joint);

  const std::vector<Node>& nodes() const { return nodes_; }
  const std::vector<Waits>& joints() const { return joints_; }  // by position
  const Waits& step_end() const { return step_end_; }
  const std::vector<Instruction>& instructions() const { return instructions_; }

  // The lengths and instants of one recorded step on a worker of one speed, from the step's begin.
  struct Times {
    std::vector<Span> nodes;          // lengths
    std::vector<Span> node_earliest;  // by the early operations it waits for
    std::vector<Span> joint_earliest;
    Span end_earliest;
    std::vector<std::pair<Span, Span>> computing;  // early: begin and end, merged, ascending
    std::vector<std::vector<std::pair<Span, Span>>> early;  // by stream: begins and lengths
    std::vector<Span> work;                                 // of the whole step, by stream
  };
  Times TimesOf(const Program& program, int32_t recorded, double compute_speed) const;

 private:
  friend class JointPlanner;

  std::vector<OpIndex> early_;  // operations that wait for no joint one, in an order that can run
  std::vector<std::vector<OpIndex>> before_early_;  // parallel: what each waits for, and the one
                                                    // before it on its stream
  std::vector<Node> nodes_;
  std::vector<Waits> joints_;
  Waits step_end_;
  std::vector<Instruction> instructions_;
};

}  // namespace stepcast
