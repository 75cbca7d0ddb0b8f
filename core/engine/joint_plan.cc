#include "core/engine/joint_plan.h"

#include <algorithm>
#include <cstddef>
#include <functional>
#include <queue>

#include "core/engine/step_scaling.h"

namespace stepcast {

class JointPlanner {
 public:
  JointPlanner(const Program& program, const JointWork& joint)
      : program_(program),
        in_turn_(joint.concurrent == 1 && !joint.cycles.has_value() &&
                 !joint.priorities.has_value()),
        streams_(Index(program.lanes().after_compute())),
        size_(Index(program.size())),
        joint_at_(size_, -1),
        before_(size_),
        reach_(size_ * streams_, -1),
        joint_reach_(size_, -1),
        ready_reach_(size_ * streams_, -1),
        ready_joint_reach_(size_, -1),
        place_(size_, -1),
        late_(size_, 0),
        node_of_(size_, -1),
        last_on_(streams_, -1) {
    for (size_t i = 0; i < joint.ops.size(); ++i)
      joint_at_[Index(joint.ops[i])] = static_cast<int32_t>(i);
    plan_.joints_.resize(joint.ops.size());
    plan_.nodes_of_streams_.resize(streams_);
    joint_ops_ = joint.ops;
    for (OpIndex op = 0; op < program.size(); ++op) {
      for (const OpIndex after : program.dependents(op)) before_[Index(after)].push_back(op);
    }
  }

  std::optional<JointPlan> Plan() && {
    for (const OpIndex op : Order()) {
      Inherit(op);
      if (joint_at_[Index(op)] >= 0) {
        AddJoint(op);
      } else if (!AddComputation(op)) {
        return std::nullopt;
      }
    }
    FindStepEnd();
    return std::move(plan_);
  }

 private:
  // The next one is the first in graph order of those that could run; joint operations keep theirs.
  std::vector<OpIndex> Order() const {
    std::vector<int32_t> pending = program_.dependency_counts();
    for (size_t i = 1; i < joint_ops_.size(); ++i) ++pending[Index(joint_ops_[i])];
    std::priority_queue<OpIndex, std::vector<OpIndex>, std::greater<>> ready;
    for (OpIndex op = 0; op < program_.size(); ++op) {
      if (pending[Index(op)] == 0) ready.push(op);
    }
    std::vector<OpIndex> order;
    while (!ready.empty()) {
      const OpIndex op = ready.top();
      ready.pop();
      order.push_back(op);
      const auto release = [&](OpIndex after) {
        if (--pending[Index(after)] == 0) ready.push(after);
      };
      for (const OpIndex after : program_.dependents(op)) release(after);
      const int32_t position = joint_at_[Index(op)];
      if (position >= 0 && Index(position) + 1 < joint_ops_.size())
        release(joint_ops_[Index(position) + 1]);
    }
    return order;
  }

  int32_t& Reach(OpIndex op, size_t stream) { return reach_[Index(op) * streams_ + stream]; }
  int32_t& ReadyReach(OpIndex op, size_t stream) {
    return ready_reach_[Index(op) * streams_ + stream];
  }

  // Whatever has ended when `from` has ended has ended when `op` has.
  void TakeOver(OpIndex op, OpIndex from) {
    for (size_t s = 0; s < streams_; ++s) Reach(op, s) = std::max(Reach(op, s), Reach(from, s));
    joint_reach_[Index(op)] = std::max(joint_reach_[Index(op)], joint_reach_[Index(from)]);
  }
  void Inherit(OpIndex op) {
    for (const OpIndex before : before_[Index(op)]) {
      TakeOver(op, before);
      if (late_[Index(before)] != 0) late_[Index(op)] = 1;
    }
    for (size_t s = 0; s < streams_; ++s) ReadyReach(op, s) = Reach(op, s);
    ready_joint_reach_[Index(op)] = joint_reach_[Index(op)];
  }

  // True if `d` has ended whenever `by` has, by what is known of `by` so far.
  bool IsImplied(OpIndex d, OpIndex by) {
    const int32_t position = joint_at_[Index(d)];
    if (position >= 0) return in_turn_ && position <= joint_reach_[Index(by)];
    return place_[Index(d)] <= Reach(by, Index(program_.lane(d)));
  }

  void AddWait(JointPlan::Waits& waits, OpIndex before) const {
    if (joint_at_[Index(before)] >= 0) {
      waits.inputs.push_back({.is_joint = true, .index = joint_at_[Index(before)]});
    } else if (late_[Index(before)] != 0) {
      waits.inputs.push_back({.is_joint = false, .index = node_of_[Index(before)]});
    } else {
      waits.early.push_back(before);
    }
  }

  void AddJoint(OpIndex op) {
    const int32_t position = joint_at_[Index(op)];
    for (const OpIndex before : before_[Index(op)]) AddWait(plan_.joints_[Index(position)], before);
    if (in_turn_ && position > 0) TakeOver(op, joint_ops_[Index(position) - 1]);
    joint_reach_[Index(op)] = std::max(joint_reach_[Index(op)], position);
    late_[Index(op)] = 1;
  }

  // True if `next` comes behind `first` on their stream, whenever joint operations end.
  bool StaysBehind(OpIndex first, OpIndex next, size_t stream) {
    if (ReadyReach(next, stream) >= place_[Index(first)]) return true;
    // It is ready no earlier, and where at the same time then later in graph order.
    if (!in_turn_ || first > next) return false;
    for (size_t s = 0; s < streams_; ++s) {
      if (ReadyReach(first, s) > ReadyReach(next, s)) return false;
    }
    return ready_joint_reach_[Index(first)] <= ready_joint_reach_[Index(next)];
  }

  bool AddComputation(OpIndex op) {
    const auto stream = Index(program_.lane(op));
    const OpIndex previous = last_on_[stream];
    if (previous >= 0 && !StaysBehind(previous, op, stream)) return false;
    if (previous >= 0 && late_[Index(previous)] != 0) late_[Index(op)] = 1;
    if (late_[Index(op)] == 0) {
      plan_.early_.push_back(op);
      plan_.before_early_.push_back(before_[Index(op)]);
      if (previous >= 0) plan_.before_early_.back().push_back(previous);
    } else if (previous >= 0 && CanFollow(previous, op)) {
      plan_.nodes_[Index(node_of_[Index(previous)])].ops.push_back(op);
      node_of_[Index(op)] = node_of_[Index(previous)];
    } else {
      JointPlan::Node node;
      for (const OpIndex before : before_[Index(op)]) {
        const bool implied = previous >= 0 && before != previous && IsImplied(before, previous);
        if (!implied && before != previous) AddWait(node.waits, before);
      }
      if (previous >= 0) AddWait(node.waits, previous);
      node.ops.push_back(op);
      node_of_[Index(op)] = static_cast<int32_t>(plan_.nodes_.size());
      plan_.nodes_of_streams_[stream].push_back(node_of_[Index(op)]);
      plan_.nodes_.push_back(std::move(node));
    }
    if (previous >= 0) TakeOver(op, previous);
    place_[Index(op)] = previous >= 0 ? place_[Index(previous)] + 1 : 0;
    Reach(op, stream) = place_[Index(op)];
    last_on_[stream] = op;
    return true;
  }

  // True if it starts when the one before it ends, which nothing else waits for.
  bool CanFollow(OpIndex previous, OpIndex op) {
    if (late_[Index(previous)] == 0) return false;
    for (const OpIndex after : program_.dependents(previous)) {
      if (after != op) return false;
    }
    return std::all_of(before_[Index(op)].begin(), before_[Index(op)].end(), [&](OpIndex before) {
      return before == previous || IsImplied(before, previous);
    });
  }

  void FindStepEnd() {
    for (const OpIndex last : last_on_) {
      if (last >= 0) AddWait(plan_.step_end_, last);
    }
    for (size_t i = in_turn_ ? joint_ops_.size() - 1 : 0; i < joint_ops_.size(); ++i)
      AddWait(plan_.step_end_, joint_ops_[i]);
  }

  const Program& program_;
  const bool in_turn_;  // joint operations end in their order
  const size_t streams_;
  const size_t size_;
  std::vector<OpIndex> joint_ops_;
  std::vector<int32_t> joint_at_;             // position, by operation; -1: none
  std::vector<std::vector<OpIndex>> before_;  // by operation
  // By operation: the last place on each stream, and the last joint operation, that have ended when
  // it has; and when it was ready.
  std::vector<int32_t> reach_;
  std::vector<int32_t> joint_reach_;
  std::vector<int32_t> ready_reach_;
  std::vector<int32_t> ready_joint_reach_;
  std::vector<int32_t> place_;    // on its stream
  std::vector<uint8_t> late_;     // waits for a joint operation
  std::vector<int32_t> node_of_;  // of late computations
  std::vector<OpIndex> last_on_;  // by stream
  JointPlan plan_;
};

std::optional<JointPlan> JointPlan::Make(const Program& program, const JointWork& joint) {
  return JointPlanner(program, joint).Plan();
}

JointTable::JointTable(const JointPlan& plan, const Program& program,
                       const std::vector<double>& speeds, bool whole)
    : streams_(Index(program.lanes().after_compute())),
      rows_(Index(program.step_count()) * speeds.size()),
      joints_(plan.joints().size()),
      is_whole_(whole || (speeds == std::vector<double>{1} && program.is_whole())),
      node_lengths_(plan.nodes().size() * rows_),
      node_earliest_(plan.nodes().size() * rows_),
      joint_earliest_(plan.joints().size() * rows_),
      rest_earliest_(plan.joints().size() * rows_),
      end_earliest_(rows_),
      work_(streams_ * rows_),
      early_end_(rows_),
      computing_(rows_),
      early_(rows_ * streams_) {
  size_t row = 0;
  for (const double speed : speeds) {
    for (int32_t step = 0; step < program.step_count(); ++step)
      AddRow(plan, program, step, speed, row++);
  }
}

void JointTable::AddRow(const JointPlan& plan, const Program& program, int32_t recorded,
                        double speed, size_t row) {
  const auto length = [&](OpIndex op) {
    const Span at_speed = AtSpeed(program.duration(recorded, op), speed);
    return is_whole_ ? InWholeNanoseconds(at_speed) : at_speed;
  };
  std::vector<Span> end(Index(program.size()));
  const auto latest = [&](const std::vector<OpIndex>& ops) {
    Span last;
    for (const OpIndex op : ops) last = std::max(last, end[Index(op)]);
    return last;
  };
  std::vector<Stretch>& computing = computing_[row];
  for (size_t i = 0; i < plan.early_.size(); ++i) {
    const OpIndex op = plan.early_[i];
    const Span begin = latest(plan.before_early_[i]);
    const Span lasts = length(op);
    end[Index(op)] = begin + lasts;
    const auto stream = Index(program.lane(op));
    work_[stream * rows_ + row] += lasts;
    if (lasts.ticks == 0) continue;
    early_[row * streams_ + stream].emplace_back(begin, lasts);
    computing.emplace_back(begin, begin + lasts);
  }
  std::sort(computing.begin(), computing.end());
  size_t kept = 0;
  for (const auto& [begin, until] : computing) {
    if (kept > 0 && begin <= computing[kept - 1].second) {
      computing[kept - 1].second = std::max(computing[kept - 1].second, until);
    } else {
      computing[kept++] = {begin, until};
    }
  }
  computing.resize(kept);
  if (!computing.empty()) early_end_[row] = computing.back().second;
  for (size_t i = 0; i < plan.nodes().size(); ++i) {
    const JointPlan::Node& node = plan.nodes()[i];
    Span& sum = node_lengths_[i * rows_ + row];
    for (const OpIndex op : node.ops) sum += length(op);
    work_[Index(program.lane(node.ops.front())) * rows_ + row] += sum;
    node_earliest_[i * rows_ + row] = latest(node.waits.early);
  }
  for (size_t i = 0; i < plan.joints().size(); ++i)
    joint_earliest_[row * joints_ + i] = latest(plan.joints()[i].early);
  Span rest{kEndOfTime.ticks};
  for (size_t i = joints_; i-- > 0;) {
    rest = std::min(rest, joint_earliest_[row * joints_ + i]);
    rest_earliest_[i * rows_ + row] = rest;
  }
  end_earliest_[row] = latest(plan.step_end().early);
}

PreparedJoint PrepareJoint(const Program& program, const JointWork& joint) {
  PreparedJoint prepared{.plan = JointPlan::Make(program, joint), .table = std::nullopt};
  if (prepared.plan.has_value())
    prepared.table.emplace(*prepared.plan, program, std::vector<double>{1});
  return prepared;
}

}  // namespace stepcast
