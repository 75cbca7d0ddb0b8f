// The chunks that end in one round of an instant, by worker, and what else a worker is told by
// then.
//
// Workers come in the order in which they were first noted, a worker's lanes the last noted first.
// Cost: O(1) for each. Threads: none.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "core/base/bounded_list.h"
#include "core/engine/program.h"

namespace stepcast {

class Completions {
 public:
  explicit Completions(int32_t workers)
      : first_(static_cast<size_t>(workers), kNone), workers_(static_cast<size_t>(workers)) {}

  void Note(int32_t worker, LaneIndex lane) {
    int32_t& first = first_[static_cast<size_t>(worker)];
    if (first == kNone) workers_.Add(worker);
    chunks_.push_back({.worker = worker, .lane = lane, .next = first});
    first = static_cast<int32_t>(chunks_.size()) - 1;
  }

  bool empty() const { return chunks_.empty(); }
  // Calls see(worker, lane) for each, in the order in which they were noted; see may note others,
  // which are not seen.
  template <typename See>
  void ForEach(See see) const {
    const size_t size = chunks_.size();
    for (size_t i = 0; i < size; ++i) see(chunks_[i].worker, chunks_[i].lane);
  }
  // Calls take(worker, lane) for each chunk of a worker, then run(worker), worker by worker; empty
  // afterwards.
  template <typename Take, typename Run>
  void TakeAll(Take take, Run run) {
    for (const int32_t worker : workers_) {
      int32_t& first = first_[static_cast<size_t>(worker)];
      for (int32_t i = std::exchange(first, kNone); i != kNone;
           i = chunks_[static_cast<size_t>(i)].next) {
        take(worker, chunks_[static_cast<size_t>(i)].lane);
      }
      run(worker);
    }
    workers_.Clear();
    chunks_.clear();
  }

 private:
  static constexpr int32_t kNone = -1;

  struct Chunk {
    int32_t worker = 0;
    LaneIndex lane = 0;
    int32_t next = kNone;  // of the same worker, in chunks_
  };

  std::vector<int32_t> first_;  // by worker, in chunks_
  BoundedList<int32_t> workers_;
  std::vector<Chunk> chunks_;
};

}  // namespace stepcast
