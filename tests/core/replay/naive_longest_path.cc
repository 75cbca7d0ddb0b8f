#include "tests/core/replay/naive_longest_path.h"

#include <algorithm>
#include <cstdint>

#include "core/base/index.h"

namespace stepcast::testing {

namespace {

class NaiveOrder {
 public:
  explicit NaiveOrder(const JobGraph& job) : job_(job) {}

  // Those without whom it cannot begin.
  std::vector<int32_t> MembersOf(const ChunkRecord& chunk) const {
    std::vector<int32_t> members{chunk.worker};
    for (int32_t worker = 0; IsJoint(chunk) && worker < job_.workers(); ++worker)
      members.push_back(worker);
    for (const Coupling& coupling : job_.couplings) {
      const std::vector<int32_t>& group = job_.groups[Index(coupling.group)];
      if (coupling.op == chunk.op && Has(group, chunk.worker))
        members.insert(members.end(), group.begin(), group.end());
    }
    return members;
  }

  bool Precedes(const ChunkRecord& a, const ChunkRecord& b) const {
    if (a.end > b.start) return false;
    const Program& program = job_.program(b.worker);
    const LaneIndex lane = program.lane(b.op);
    const bool is_joint = program.lanes().IsJoint(lane);
    if (!is_joint && a.worker == b.worker && job_.program(a.worker).lane(a.op) == lane) return true;
    if (is_joint && IsJoint(a)) return true;
    if (b.worker == a.worker && a.op == b.op && a.step == b.step) return true;  // of one stream
    if (!is_joint && b.service > 0) return false;
    if (is_joint) {
      // It begins after all of the sequence before it have, whatever these wait for.
      for (const OpIndex op : job_.joint.ops) {
        for (int32_t step = 0; step <= b.step; ++step) {
          if (step == b.step && op > b.op) continue;
          for (int32_t worker = 0; worker < job_.workers(); ++worker) {
            if (MakesReady(a, worker, step, op)) return true;
          }
        }
      }
      return false;
    }
    for (const Coupling& coupling : job_.couplings) {
      const std::vector<int32_t>& members = job_.groups[Index(coupling.group)];
      if (coupling.op != b.op || !Has(members, b.worker)) continue;
      for (const int32_t worker : members) {
        if (MakesReady(a, worker, b.step, b.op)) return true;
      }
    }
    return MakesReady(a, b.worker, b.step, b.op);
  }

 private:
  static bool Has(const std::vector<int32_t>& list, int32_t value) {
    return std::find(list.begin(), list.end(), value) != list.end();
  }
  bool IsJoint(const ChunkRecord& chunk) const {
    const Program& program = job_.program(chunk.worker);
    return program.lanes().IsJoint(program.lane(chunk.op));
  }

  // The operation of that worker's step is not ready before the chunk has ended.
  bool MakesReady(const ChunkRecord& a, int32_t worker, int32_t step, OpIndex op) const {
    if (a.worker == worker && a.step == step) {
      for (const OpIndex dependent : job_.program(worker).dependents(a.op)) {
        if (dependent == op) return true;
      }
    }
    for (const PeerEdge& edge : job_.peer_edges) {
      const int32_t workers = job_.workers();
      const int32_t peer = ((worker + edge.worker_offset) % workers + workers) % workers;
      if (edge.after == op && edge.before == a.op && peer == a.worker && a.step == step)
        return true;
    }
    for (const Gathering& gathering : job_.gatherings) {
      const std::vector<OpIndex>& befores = gathering.befores;
      if (gathering.after == op && a.step + (gathering.of_last_step ? 1 : 0) == step &&
          std::find(befores.begin(), befores.end(), a.op) != befores.end())
        return true;
    }
    // Its step has not begun.
    if (a.step + 1 != step) return false;
    if (a.worker == worker) return true;
    for (const Coupling& coupling : job_.couplings) {
      const std::vector<int32_t>& members = job_.groups[Index(coupling.group)];
      if (coupling.op == kStepEnd && Has(members, worker) && Has(members, a.worker)) return true;
    }
    return false;
  }

  const JobGraph& job_;
};

}  // namespace

Span NaiveLongestPath(const JobGraph& job, const std::vector<Span>& start_offsets,
                      const std::vector<ChunkRecord>& chunks) {
  const NaiveOrder order(job);
  std::vector<std::vector<size_t>> before(chunks.size());
  for (size_t b = 0; b < chunks.size(); ++b) {
    for (size_t a = 0; a < chunks.size(); ++a) {
      if (a != b && order.Precedes(chunks[a], chunks[b])) before[b].push_back(a);
    }
  }
  std::vector<Span> longest(chunks.size());
  for (size_t i = 0; i < chunks.size(); ++i) {
    Span start;
    for (const int32_t worker : order.MembersOf(chunks[i]))
      start = std::max(start, chunks[i].step == 0 ? start_offsets[Index(worker)] : Span{});
    longest[i] = start + (chunks[i].end - chunks[i].start);
  }
  Span most;
  for (bool changed = true; changed;) {
    changed = false;
    for (size_t b = 0; b < chunks.size(); ++b) {
      for (const size_t a : before[b]) {
        const Span through = longest[a] + (chunks[b].end - chunks[b].start);
        if (through <= longest[b]) continue;
        longest[b] = through;
        changed = true;
      }
      most = std::max(most, longest[b]);
    }
  }
  return most;
}

}  // namespace stepcast::testing
