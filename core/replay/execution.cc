#include "core/replay/execution.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"

#include "core/base/error.h"
#include "core/base/stop_check.h"

namespace stepcast {

namespace {

PathKind KindOf(LaneRole role) {
  switch (role) {
    case LaneRole::kCompute:
    case LaneRole::kHost:
      return PathKind::kComputation;
    case LaneRole::kHub:
      return PathKind::kServer;
    case LaneRole::kJoint:
    case LaneRole::kLink:
      return PathKind::kCommunication;
  }
  return PathKind::kComputation;
}

// The parts of a program that it does not keep: where its operations' chunks are in a step, and
// what each of them waits for.
struct ProgramLayout {
  explicit ProgramLayout(const Program& program) : waiting_for(Index(program.size())) {
    for (OpIndex op = 0; op < program.size(); ++op) {
      first_chunk.push_back(chunks);
      chunks += program.IsTransfer(op) ? program.work(op).services : 1;
      for (const OpIndex dependent : program.dependents(op))
        waiting_for[Index(dependent)].push_back(op);
    }
    first_chunk.push_back(chunks);
  }

  int32_t chunks = 0;
  std::vector<int32_t> first_chunk;               // by operation, one more
  std::vector<std::vector<OpIndex>> waiting_for;  // by operation
};

class ExecutionMaker : public TraceSink {
 public:
  ExecutionMaker(const JobGraph& job, const RunOptions& options, StopCheck stop)
      : job_(job),
        options_(options),
        also_(options.trace),
        pace_(stop),
        steps_(options.steps_per_worker) {
    for (const std::shared_ptr<const Program>& program : job.programs)
      layouts_.emplace_back(*program);
    int64_t at = 0;
    for (int32_t worker = 0; worker < job.workers(); ++worker) {
      base_.push_back(static_cast<ExecutedIndex>(std::min<int64_t>(at, kMaxExecutedOperations)));
      at += int64_t{LayoutOf(worker).chunks} * steps_;
    }
    size_ = at;
    if (job_.peer_edges.empty()) return;
    OpIndex most = 0;
    for (const std::shared_ptr<const Program>& program : job.programs)
      most = std::max(most, program->size());
    peer_edges_.resize(Index(most));
    for (const PeerEdge& edge : job_.peer_edges) peer_edges_[Index(edge.after)].push_back(edge);
  }

  absl::Status CheckSize() const {
    if (size_ <= kMaxExecutedOperations) return absl::OkStatus();
    return MakeError(
        absl::StatusCode::kInvalidArgument,
        absl::StrCat(steps_, " steps of ", job_.workers(), " workers run ", size_,
                     " operations, which is above the limit of ", kMaxExecutedOperations),
        {.reason = kExecutionTooLarge,
         .metadata = {{"operations", absl::StrCat(size_)}},
         .faults = {{.field = "workers",
                     .description = absl::StrCat(job_.workers(), " run ", size_, " operations in ",
                                                 steps_, " steps, which is above the limit of ",
                                                 kMaxExecutedOperations)}}});
  }
  void Reserve() { execution_.operations.resize(static_cast<size_t>(size_)); }

  void OnStep(std::span<const ChunkRecord> chunks) override {
    if (also_ != nullptr) also_->OnStep(chunks);
    for (const ChunkRecord& chunk : chunks) {
      if (chunk.step >= steps_) return;
      const Program& program = job_.program(chunk.worker);
      const LaneIndex lane = program.lane(chunk.op);
      ExecutedOperation& operation = execution_.operations[Index(NodeOf(
          chunk.worker, chunk.step, chunk.op, program.IsTransfer(chunk.op) ? chunk.service : 0))];
      operation = {.worker = chunk.worker,
                   .op = chunk.op,
                   .step = chunk.step,
                   .service = chunk.service,
                   .kind = KindOf(program.lanes()[lane].role),
                   .is_joint = program.lanes().IsJoint(lane),
                   .start = chunk.start,
                   .end = chunk.end};
    }
  }

  // Failure: what the stop check returns.
  absl::StatusOr<Execution> Finish(int64_t simulated_operations) {
    execution_.simulated_operations = simulated_operations;
    execution_.workers = job_.workers();
    execution_.steps = steps_;
    execution_.warmup = options_.warmup_steps;
    for (const auto stage : {&ExecutionMaker::FindStepEnds, &ExecutionMaker::FindBefores,
                             &ExecutionMaker::MakeStepMeetings, &ExecutionMaker::MakeJoint,
                             &ExecutionMaker::MakeCouplings, &ExecutionMaker::MakeGatherings,
                             &ExecutionMaker::Connect}) {
      (this->*stage)();
      // The next stage counts on it.
      if (!pace_.status().ok()) return pace_.status();
    }
    return std::move(execution_);
  }

 private:
  // The operation after which something could go on, and when; none: from the start.
  struct Before {
    ExecutedIndex operation = -1;
    Instant at;
  };

  const ProgramLayout& LayoutOf(int32_t worker) const {
    return layouts_[Index(job_.program_of_worker[Index(worker)])];
  }
  ExecutedIndex NodeOf(int32_t worker, int32_t step, OpIndex op, int32_t service) const {
    const ProgramLayout& layout = LayoutOf(worker);
    return base_[Index(worker)] + step * layout.chunks + layout.first_chunk[Index(op)] + service;
  }
  // The chunk with which the operation ends.
  ExecutedIndex LastNodeOf(int32_t worker, int32_t step, OpIndex op) const {
    const ProgramLayout& layout = LayoutOf(worker);
    return base_[Index(worker)] + step * layout.chunks + layout.first_chunk[Index(op) + 1] - 1;
  }
  const ExecutedOperation& At(ExecutedIndex index) const {
    return execution_.operations[Index(index)];
  }
  size_t CellOf(int32_t worker, int32_t step) const {
    return Index(worker) * Index(steps_) + Index(step);
  }
  void Take(ExecutedIndex index, Before& latest) const {
    if (latest.operation < 0 || At(index).end > latest.at)
      latest = {.operation = index, .at = At(index).end};
  }

  void FindStepEnds() {
    for (int32_t worker = 0; worker < job_.workers(); ++worker) {
      for (int32_t step = 0; step < steps_; ++step) {
        Before last;
        if (!pace_.GoesOn(LayoutOf(worker).chunks)) return;
        const ExecutedIndex first = NodeOf(worker, step, 0, 0);
        for (ExecutedIndex i = first; i < first + LayoutOf(worker).chunks; ++i) Take(i, last);
        step_ends_.push_back(last);
      }
      const int32_t warmup = options_.warmup_steps;
      execution_.begins.push_back(warmup > 0 ? step_ends_[CellOf(worker, warmup - 1)].at
                                             : Instant{});
      execution_.ends.push_back(step_ends_[CellOf(worker, steps_ - 1)].at);
    }
  }

  // Event that each step began after.
  void FindBefores() {
    for (int32_t worker = 0; worker < job_.workers(); ++worker) {
      step_begins_.push_back({.at = Instant{} + options_.start_offsets[Index(worker)]});
      for (int32_t step = 1; step < steps_; ++step)
        step_begins_.push_back(step_ends_[CellOf(worker, step - 1)]);
    }
    step_meeting_.assign(step_begins_.size(), -1);
  }
  void MakeStepMeetings() {
    for (const Coupling& coupling : job_.couplings) {
      if (coupling.op != kStepEnd) continue;
      const std::vector<int32_t>& members = job_.groups[Index(coupling.group)];
      for (int32_t step = 1; step < steps_; ++step) {
        std::vector<Arrival> arrivals;
        Before last;
        for (const int32_t worker : members) {
          const Before& end = step_ends_[CellOf(worker, step - 1)];
          arrivals.push_back({.worker = worker, .operation = end.operation, .at = end.at});
          Take(end.operation, last);
        }
        for (const int32_t worker : members) {
          step_begins_[CellOf(worker, step)] = last;
          step_meeting_[CellOf(worker, step)] = static_cast<int32_t>(execution_.meetings.size());
        }
        execution_.meetings.push_back(std::move(arrivals));
      }
    }
  }

  // All that an operation of the worker's step waits for, but meetings and lanes.
  template <typename Visit>
  void ForEachBefore(int32_t worker, int32_t step, OpIndex op, Visit visit) const {
    for (const OpIndex before : LayoutOf(worker).waiting_for[Index(op)])
      visit(LastNodeOf(worker, step, before));
    if (peer_edges_.empty()) return;
    for (const PeerEdge& edge : peer_edges_[Index(op)]) {
      const int32_t workers = job_.workers();
      const int32_t peer = ((worker + edge.worker_offset) % workers + workers) % workers;
      visit(LastNodeOf(peer, step, edge.before));
    }
  }
  Arrival ArrivalOf(int32_t worker, int32_t step, OpIndex op) const {
    Before latest = step_begins_[CellOf(worker, step)];
    ForEachBefore(worker, step, op, [&](ExecutedIndex before) {
      if (At(before).end >= latest.at) latest = {.operation = before, .at = At(before).end};
    });
    return {.worker = worker, .operation = latest.operation, .at = latest.at};
  }
  void Meet(int32_t step, OpIndex op, const std::vector<int32_t>& members) {
    std::vector<Arrival> arrivals;
    for (const int32_t worker : members) {
      if (!pace_.GoesOn(1)) return;
      arrivals.push_back(ArrivalOf(worker, step, op));
      execution_.operations[Index(NodeOf(worker, step, op, 0))].meeting =
          static_cast<int32_t>(execution_.meetings.size());
    }
    execution_.meetings.push_back(std::move(arrivals));
  }
  void SortByEnd(std::vector<ExecutedIndex>& list) {
    PacedStableSort(
        list, [&](ExecutedIndex a, ExecutedIndex b) { return At(a).end < At(b).end; }, pace_);
  }
  void MakeJoint() {
    std::vector<int32_t> all(Index(job_.workers()));
    for (int32_t worker = 0; worker < job_.workers(); ++worker) all[Index(worker)] = worker;
    for (int32_t step = 0; step < steps_; ++step) {
      for (const OpIndex op : job_.joint.ops) {
        Meet(step, op, all);
        // They begin and end on all workers at once; one of them stands for all.
        joint_by_end_.push_back(NodeOf(0, step, op, 0));
      }
    }
    joint_sequence_ = joint_by_end_;
    SortByEnd(joint_by_end_);
  }
  void MakeCouplings() {
    for (const Coupling& coupling : job_.couplings) {
      if (coupling.op == kStepEnd) continue;
      for (int32_t step = 0; step < steps_; ++step)
        Meet(step, coupling.op, job_.groups[Index(coupling.group)]);
    }
  }
  // A worker is there when its own operations that the gathering is of have ended.
  void MakeGatherings() {
    for (const Gathering& gathering : job_.gatherings) {
      for (int32_t step = gathering.of_last_step ? 1 : 0; step < steps_; ++step) {
        const int32_t of_step = gathering.of_last_step ? step - 1 : step;
        std::vector<Arrival> arrivals;
        for (int32_t worker = 0; worker < job_.workers(); ++worker) {
          if (!pace_.GoesOn(static_cast<int64_t>(gathering.befores.size()))) return;
          Before last;
          for (const OpIndex before : gathering.befores)
            Take(LastNodeOf(worker, of_step, before), last);
          arrivals.push_back({.worker = worker, .operation = last.operation, .at = last.at});
          ExecutedOperation& after =
              execution_.operations[Index(NodeOf(worker, step, gathering.after, 0))];
          after.meeting = static_cast<int32_t>(execution_.meetings.size());
          after.is_gathered = true;
        }
        execution_.meetings.push_back(std::move(arrivals));
      }
    }
  }

  // The last of those that took time and had ended by then; `sorted`: by end.
  std::optional<ExecutedIndex> LastBy(const std::vector<ExecutedIndex>& sorted, Instant by) const {
    auto at = std::upper_bound(sorted.begin(), sorted.end(), by,
                               [&](Instant now, ExecutedIndex i) { return now < At(i).end; });
    while (at != sorted.begin()) {
      --at;
      if (At(*at).start < At(*at).end) return *at;
    }
    return std::nullopt;
  }

  // That before it in the sequence, if that took no time, else what kept those with which it began.
  // Cost: as many at most as may be under way at once.
  void ConnectToSequence(const ExecutedOperation& operation) {
    const std::vector<OpIndex>& ops = job_.joint.ops;
    const auto position = std::lower_bound(ops.begin(), ops.end(), operation.op) - ops.begin();
    size_t at = Index(operation.step) * ops.size() + static_cast<size_t>(position);
    while (at > 0 && At(joint_sequence_[at - 1]).start == operation.start) {
      const ExecutedIndex before = joint_sequence_[--at];
      if (At(before).end == operation.start) {
        execution_.predecessors.push_back(before);
        return;
      }
      for (const Arrival& arrival : execution_.meetings[Index(At(before).meeting)]) {
        if (arrival.operation >= 0 && arrival.at == operation.start)
          execution_.predecessors.push_back(arrival.operation);
      }
    }
  }

  void Connect() {
    // By worker and lane, by end.
    const auto lanes = Index(job_.lanes().count());
    std::vector<std::vector<ExecutedIndex>> on_lane(Index(job_.workers()) * lanes);
    for (size_t i = 0; i < execution_.operations.size(); ++i) {
      if (!pace_.GoesOn(1)) return;
      const ExecutedOperation& operation = execution_.operations[i];
      if (operation.is_joint || operation.start == operation.end) continue;
      on_lane[LaneCellOf(operation)].push_back(static_cast<ExecutedIndex>(i));
    }
    for (std::vector<ExecutedIndex>& list : on_lane) SortByEnd(list);
    const bool is_sequence = !job_.joint.cycles.has_value() && !job_.joint.priorities.has_value();
    std::erase_if(joint_by_end_, [&](ExecutedIndex i) { return At(i).start == At(i).end; });
    for (size_t i = 0; i < execution_.operations.size(); ++i) {
      if (!pace_.GoesOn(1)) return;
      execution_.first_predecessor.push_back(execution_.predecessors.size());
      ExecutedOperation& operation = execution_.operations[i];
      ConnectOne(static_cast<ExecutedIndex>(i), operation);
      const std::vector<ExecutedIndex>& line =
          operation.is_joint ? joint_by_end_ : on_lane[LaneCellOf(operation)];
      if (const auto last = LastBy(line, operation.start); last.has_value())
        execution_.predecessors.push_back(*last);
      if (operation.is_joint && is_sequence) ConnectToSequence(operation);
    }
    execution_.first_predecessor.push_back(execution_.predecessors.size());
  }
  size_t LaneCellOf(const ExecutedOperation& operation) const {
    return Index(operation.worker) * Index(job_.lanes().count()) +
           Index(job_.program(operation.worker).lane(operation.op));
  }
  void ConnectOne(ExecutedIndex index, ExecutedOperation& operation) {
    const bool is_transfer = job_.program(operation.worker).IsTransfer(operation.op);
    if (is_transfer && operation.service > 0) {
      execution_.predecessors.push_back(index - 1);
      return;
    }
    if (operation.meeting >= 0 && !operation.is_gathered) return;
    bool waits = false;
    // The operation of the worker's own arrival is told at the meeting.
    const ExecutedIndex arrived =
        operation.is_gathered
            ? execution_.meetings[Index(operation.meeting)][Index(operation.worker)].operation
            : -1;
    ForEachBefore(operation.worker, operation.step, operation.op, [&](ExecutedIndex i) {
      waits = true;
      if (i != arrived) execution_.predecessors.push_back(i);
    });
    if (waits) return;
    // Nothing else: it began with its step.
    const size_t cell = CellOf(operation.worker, operation.step);
    if (operation.meeting < 0) operation.meeting = step_meeting_[cell];
    if ((operation.meeting < 0 || operation.is_gathered) && step_begins_[cell].operation >= 0)
      execution_.predecessors.push_back(step_begins_[cell].operation);
  }

  const JobGraph& job_;
  const RunOptions& options_;
  TraceSink* const also_;  // null: none
  PacedStopCheck pace_;
  const int32_t steps_;
  std::vector<ProgramLayout> layouts_;             // by program
  std::vector<ExecutedIndex> base_;                // by worker
  std::vector<std::vector<PeerEdge>> peer_edges_;  // by the operation after; empty: there are none
  int64_t size_ = 0;
  Execution execution_;
  std::vector<Before> step_ends_;              // by worker and step
  std::vector<Before> step_begins_;            // likewise
  std::vector<int32_t> step_meeting_;          // likewise: with which it began; -1: none
  std::vector<ExecutedIndex> joint_sequence_;  // step by step, in graph order
  std::vector<ExecutedIndex> joint_by_end_;    // those that take time
};

}  // namespace

const char* NameOf(PathKind kind) {
  switch (kind) {
    case PathKind::kComputation:
      return "COMPUTATION";
    case PathKind::kServer:
      return "SERVER";
    case PathKind::kCommunication:
      return "COMMUNICATION";
    case PathKind::kWaiting:
      return "WAITING";
    case PathKind::kGap:
      return "GAP";
  }
  return "";
}

absl::StatusOr<Execution> Execute(const JobGraph& job, RunOptions options, StopCheck stop) {
  ExecutionMaker maker(job, options, stop);
  if (absl::Status status = maker.CheckSize(); !status.ok()) return status;
  maker.Reserve();
  options.trace = &maker;
  options.fastest_path = EnginePath::kPlain;
  const absl::StatusOr<RunResult> result = Simulate(job, options, stop);
  if (!result.ok()) return result.status();
  return maker.Finish(result->simulated_operations);
}

}  // namespace stepcast
